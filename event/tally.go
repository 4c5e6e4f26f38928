package event

// TallyKind is what is counted by the minute, to be summed over the last hour.
type TallyKind string

// What is counted. The subject of the first ones is a destination, that of the
// next a source.
const (
	TallySent           TallyKind = "sent"            // attempts that were sent
	TallyFailed         TallyKind = "failed"          // attempts that were not
	TallyDeadDeliveries TallyKind = "dead_deliveries" // deliveries that became dead letters

	TallyReceipts   TallyKind = "receipts"    // verified requests whose events are stored
	TallyNew        TallyKind = "new"         // events that were new
	TallyDuplicates TallyKind = "duplicates"  // events that were there before
	TallyConflicts  TallyKind = "conflicts"   // events that were there before with another content
	TallyRejects    TallyKind = "rejects"     // requests that failed verification
	TallyUnverified TallyKind = "unverified"  // requests that were refused before: too large, or compressed
	TallyDeadEvents TallyKind = "dead_events" // events that became dead letters
	TallyRetries    TallyKind = "retries"     // attempts at events that will be made again

	TallyGuesses TallyKind = "guesses" // wrong passwords and tokens; of the server, whose subject is ""
)

// TallyKinds lists what is counted of a source, of a destination and of the
// server.
func TallyKinds() (source, destination, server []TallyKind) {
	return []TallyKind{TallyReceipts, TallyNew, TallyDuplicates, TallyConflicts, TallyRejects, TallyUnverified, TallyDeadEvents, TallyRetries},
		[]TallyKind{TallySent, TallyFailed, TallyDeadDeliveries},
		[]TallyKind{TallyGuesses}
}

// MinuteCount is how often something happened within one minute.
type MinuteCount struct {
	Kind    TallyKind
	Subject string // a source or destination of the configuration; "" for the server
	Minute  int64  // since 1970
	N       int64
}
