package deliver

import "creel/event"

// Exit codes with a meaning of their own, as sysexits.h of BSD has them.
const (
	exitUsage = 64 // EX_USAGE: the command was called in a wrong way
	exitData  = 65 // EX_DATAERR: the input was wrong
)

// Exit is all that the outcome of a command depends on.
type Exit struct {
	Started bool
	Code    int   // its exit code, where it ended by itself
	Err     error // why there is no exit code
	// Unsendable says that no command could be made of the delivery; another
	// attempt can not be better.
	Unsendable bool
}

// ClassifyExit is the one function that says what a run of a command came to.
//
// Exit code 0 is OK. 64 (usage) and 65 (data) are permanent: the command knows
// that this event can never do. EX_TEMPFAIL (75) and every other code are
// transient: what most scripts end with says nothing about the next attempt. A
// command that could not be started is transient, because that is for its
// owner to repair and no fault of the event. One that was ended from outside,
// by its timeout, the stop of the server or a signal, is unknown.
func ClassifyExit(e Exit) event.Outcome {
	switch {
	case e.Unsendable:
		return event.Permanent
	case e.Started && e.Err != nil:
		return event.Unknown
	case e.Err != nil:
		return event.Transient
	case e.Code == 0:
		return event.OK
	case e.Code == exitUsage, e.Code == exitData:
		return event.Permanent
	default:
		return event.Transient
	}
}
