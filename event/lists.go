package event

// Outcomes lists every outcome of an attempt.
func Outcomes() []Outcome { return []Outcome{OK, Transient, Permanent, Unknown} }

// DestinationStates lists every state of a destination.
func DestinationStates() []DestinationState {
	return []DestinationState{DestinationEnabled, DestinationHeld, DestinationDisabled, DestinationPaused}
}
