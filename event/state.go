package event

import "slices"

// State is where an event stands.
type State string

// The states of an event. Pending waits for its time, Claimed is in the hands
// of one worker, the others are ends; Dead can be replayed or discarded, Done
// can be replayed.
const (
	Pending   State = "pending"
	Claimed   State = "claimed"
	Done      State = "done"
	Ignored   State = "ignored"
	Dead      State = "dead"
	Discarded State = "discarded"
)

// DeliveryState is where a delivery stands.
type DeliveryState string

// The states of a delivery. Waiting stands behind the head of its lane; Ready
// may be claimed when its time has come; Sending is in flight; InDoubt waits
// for a person because its answer was lost.
const (
	DeliveryWaiting   DeliveryState = "waiting"
	DeliveryReady     DeliveryState = "ready"
	DeliverySending   DeliveryState = "sending"
	DeliverySent      DeliveryState = "sent"
	DeliveryDead      DeliveryState = "dead"
	DeliveryInDoubt   DeliveryState = "in_doubt"
	DeliveryDiscarded DeliveryState = "discarded"
)

var moves = map[State][]State{
	Pending: {Claimed},
	Claimed: {Done, Ignored, Dead, Pending},
	Done:    {Pending},
	Ignored: {Pending},
	Dead:    {Pending, Discarded},
}

var deliveryMoves = map[DeliveryState][]DeliveryState{
	DeliveryWaiting: {DeliveryReady, DeliveryDiscarded},
	DeliveryReady:   {DeliverySending, DeliveryDead, DeliveryWaiting, DeliveryDiscarded},
	DeliverySending: {DeliverySent, DeliveryReady, DeliveryDead, DeliveryInDoubt},
	DeliveryInDoubt: {DeliverySent, DeliveryReady, DeliveryDead, DeliveryDiscarded},
	DeliveryDead:    {DeliveryReady, DeliveryWaiting, DeliveryDiscarded},
	DeliverySent:    {DeliveryReady},
	// An alert that was withdrawn, because its incident seemed to be over.
	DeliveryDiscarded: {DeliveryReady},
}

// CanMove tells whether an event may go from one state to another. SQL says
// the same in its WHERE clauses.
func CanMove(from, to State) bool { return slices.Contains(moves[from], to) }

// CanMoveDelivery tells whether a delivery may go from one state to another.
func CanMoveDelivery(from, to DeliveryState) bool {
	return slices.Contains(deliveryMoves[from], to)
}

// States lists every event state, in the order of an event's life.
func States() []State {
	return []State{Pending, Claimed, Done, Ignored, Dead, Discarded}
}

// DeliveryStates lists every delivery state, in the order of its life.
func DeliveryStates() []DeliveryState {
	return []DeliveryState{DeliveryWaiting, DeliveryReady, DeliverySending, DeliverySent,
		DeliveryDead, DeliveryInDoubt, DeliveryDiscarded}
}

// Outcome is what one attempt came to. Its text is the log value, the metric
// label and what the attempt row says.
type Outcome string

// The outcomes of an attempt. Unknown means that the request was written and
// its answer was lost.
const (
	OK        Outcome = "ok"
	Transient Outcome = "transient"
	Permanent Outcome = "permanent"
	Unknown   Outcome = "unknown"
)

// Decision is what a run of a rule decided about an event.
type Decision string

// The decisions of a verdict.
const (
	Applied        Decision = "applied"
	AlreadyApplied Decision = "already applied"
	Stale          Decision = "stale"
	Skipped        Decision = "ignored"
	Later          Decision = "waiting"
	Failed         Decision = "dead"
)
