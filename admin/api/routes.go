package api

import (
	"net/http"

	"creel/admin"
	"creel/event"
	"creel/source"
)

// route is one address of the API. The description is made from this table, and
// a test holds the two together.
type route struct {
	method, path string // below Prefix
	text         string // what it is for
	query        []string
	ask          any // of what type the body is; nil without one
	answer       any // of what type a success is
	do           func(*call) (any, error)
}

// acts tells whether the route changes anything, or may cost as much.
func (r route) acts() bool { return r.method != http.MethodGet }

// showsBody tells whether the answer has what an event carried.
func (r route) showsBody() bool {
	return r.path == "/event" || r.path == "/event/body" || r.path == "/rejects/:id"
}

// list is a page of a list.
type list[T any] struct {
	Items []T `json:"items"`
	// Next is where the next page begins; it is not there on the last one.
	Next string `json:"next,omitempty"`
	// Partial says that the search was stopped before the page was full: it
	// goes on at Next.
	Partial bool `json:"partial,omitempty"`
}

// figures stands for the statistics, which are made in another room.
type figures struct{}

// by are the parameters of a list by pages.
func by(names ...string) []string { return append(names, "limit", "cursor") }

func routes() []route {
	return append(append(reads(), keeps()...), acts()...)
}

// reads are the lists and details of what came in and goes out.
func reads() []route {
	const get = http.MethodGet
	filters := append([]string{"q"}, event.Filters()...)
	return []route{
		{get, "/openapi.json", "This description.", nil, nil, plain{kind: "application/json"}, describe},
		{get, "/stats", "Signals, rates, latencies, what waits, sizes: what creel stats prints.", nil, nil, figures{}, stats},
		{get, "/signals", "What is measured against its thresholds, as it was measured last.", nil, nil, signalsLine{}, signals},
		{get, "/events", "Events, the newest first, found by filters or by one query (q).", by(filters...), nil, list[admin.EventLine]{}, events},
		{get, "/events.jsonl", "All events that are found, each on a line as /events has it, the newest first: what is there when its page is read. An answer that breaks off is not all.", filters, nil, plain{kind: jsonLines, line: admin.EventLine{}}, allEvents},
		{get, "/event", "One event whole: body, verdicts, effects, deliveries with their attempts, actions.", []string{"key"}, nil, admin.DetailLine{}, oneEvent},
		{get, "/event/body", "The body of an event as its deliveries carry it, byte for byte, but for what its source redacts.", []string{"key"}, nil, plain{kind: "*/*"}, eventBody},
		{get, "/deliveries", "Deliveries, the newest first.", by("event", "source", "destination", "key", "state", "error"), nil, list[admin.DeliveryLine]{}, deliveries},
		{get, "/deliveries/:id", "One delivery with its attempts.", nil, nil, admin.AttemptedLine{}, oneDelivery},
		{get, "/failures", "The groups of dead letters that failed alike, the largest first.", by("kind", "source", "destination", "error"), nil, list[event.Failure]{}, failures},
		{get, "/failures/:id", "One group of dead letters.", nil, nil, event.Failure{}, oneFailure},
		{get, "/dead-letters", "Dead letters one by one, the last to die first.", by(filters...), nil, list[letterLine]{}, deadLetters},
		{get, "/dead-letters.jsonl", "All dead letters that are found, each on a line as /dead-letters has it, the last to die first: what is dead when its page is read. An answer that breaks off is not all.", filters, nil, plain{kind: jsonLines, line: letterLine{}}, allDeadLetters},
		{get, "/duplicates", "Events that came more than once, the one that came again last first.", by(), nil, list[admin.EventLine]{}, duplicates},
		{get, "/conflicts", "Events under whose key other bodies came.", by(), nil, list[conflictLine]{}, conflicts},
		{get, "/lanes", "Lanes whose head waits for a person.", by(), nil, list[admin.LaneLine]{}, lanes},
		{get, "/incidents", "The open incidents, the newest first; with all=true those that are over too.", by("all"), nil, list[event.OpenIncident]{}, incidents},
		{get, "/sources", "The sources of the configuration, with their last hour.", nil, nil, list[sourceLine]{}, sources},
		{get, "/destinations", "The destinations and how they are doing, with their last hour.", nil, nil, list[destinationLine]{}, destinations},
		{get, "/rejects", "Requests that failed their verification, the newest first, as far as they are kept.", []string{"source", "cause", "limit"}, nil, list[admin.Reject]{}, rejects},
		{get, "/rejects/:id", "One rejected request, with what may be shown of it.", nil, nil, admin.RejectDetail{}, oneReject},
		{get, "/rejects/:id/verify", "Why a rejected request fails, now or as of another time.", []string{"at"}, nil, source.Diagnosis{}, verifyReject},
	}
}

// keeps are what rules keep in the database, and what operators did.
func keeps() []route {
	const get = http.MethodGet
	return []route{
		{get, "/records", "Rows that rules inserted once.", by("kind", "key"), nil, list[admin.RecordLine]{}, records},
		{get, "/balances", "What holders have.", by("holder"), nil, list[admin.BalanceLine]{}, balances},
		{get, "/ledger", "Grants and reversals, the newest first.", by("holder", "unit"), nil, list[admin.EntryLine]{}, ledger},
		{get, "/object", "The current state of an object.", []string{"object"}, nil, admin.StateLine{}, object},
		{get, "/object/history", "How an object came to its state, the newest first.", by("object"), nil, list[admin.TransitionLine]{}, history},
		{get, "/actions", "The audit trail: who did what, the newest first.", by(), nil, list[event.Action]{}, actions},
		{get, "/actions/:id", "One action, as far as it is.", nil, nil, event.Action{}, oneAction},
		{get, "/actions/:id/items", "The events of an action, and what came of each.", by(), nil, list[event.ActionItem]{}, actionItems},
		{get, "/plans/:id", "A plan that was made within the last half hour, and what it became.", nil, nil, planLine{}, onePlan},
	}
}

// acts are what changes something. A token has to be allowed to operate.
func acts() []route {
	const post = http.MethodPost
	return []route{
		{post, "/plans", "Freezes what a replay or a discard would select and looks at what would happen. Nothing is changed.", nil, askPlan{}, planLine{}, makePlan},
		{post, "/plans/:id/carry", "Does what a plan says, once: whoever asks again gets the same action.", nil, askReason{}, event.Action{}, carryPlan},
		{post, "/replay", "Runs the rules of events again and sends their dead deliveries. Needs an Idempotency-Key.", nil, askReplay{}, event.Action{}, replay},
		{post, "/discard", "Takes events, or what is dead of them, off the dead letters. Needs an Idempotency-Key.", nil, askDiscard{}, event.Action{}, discard},
		{post, "/resolve", "Decides about a delivery whose answer was lost.", nil, askResolve{}, event.Action{}, resolve},
		{post, "/pause", "Stops the deliveries to a destination until it is resumed.", nil, askDestination{}, event.Action{}, pause},
		{post, "/resume", "Lets the deliveries to a destination go on, whatever stopped them.", nil, askDestination{}, event.Action{}, resume},
		{post, "/lanes/skip", "Lets those pass that wait in a lane; what is dead stays so.", nil, askLane{}, event.Action{}, skipLane},
		{post, "/lanes/retry", "Runs the events again that hold up a lane.", nil, askLane{}, event.Action{}, retryLane},
		{post, "/ack", "Says that somebody sees to an incident: no alert of it goes out any more.", nil, askAck{}, event.Action{}, acknowledge},
		{post, "/rejects/retry", "Verifies rejected requests again and stores what verifies now.", nil, askRejects{}, list[admin.RetriedReject]{}, retryRejects},
	}
}
