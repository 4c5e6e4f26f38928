package event

// The names of the fields in log lines. One name, one meaning: the same key
// finds an event from its receipt to its last attempt.
const (
	FieldEvent       = "event"
	FieldSource      = "source"
	FieldType        = "type"
	FieldRule        = "rule"
	FieldKey         = "business_key"
	FieldDelivery    = "delivery"
	FieldDestination = "destination"
	FieldRun         = "run"
	FieldAttempt     = "attempt"
	FieldOutcome     = "outcome"
	FieldStatus      = "status"
	FieldReason      = "reason"
	FieldCause       = "cause"
	FieldDuplicates  = "duplicates"
	FieldState       = "state"
	FieldHint        = "hint"
	FieldCount       = "count"
	FieldSecret      = "secret_index"
	FieldDuration    = "duration_ms"
	FieldAction      = "action"
	FieldActor       = "actor"
	FieldPath        = "path"
	FieldPeer        = "peer"
)
