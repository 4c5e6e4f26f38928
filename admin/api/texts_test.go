package api_test

import "regexp"

var pathParameter = regexp.MustCompile(`:(\w+)`)

const about = "What the page and the command line show and do, for programs. " +
	"Every request shows a token (Authorization: Bearer TOKEN); one of the scope read may look, one of the scope operate may act as well, under its name in the audit trail. " +
	"Lists come by pages: give next of one page as cursor of the next. Parameters and members that are not known are refused. " +
	"Answers are only ever added to: expect members and values that do not stand here. Times are RFC 3339 in UTC. " +
	"Events are delivered at least once and applied once per business key."

const onceText = "A text of your own, new for each act and the same when you repeat one: a repeat by the same token is answered with the action of the first, and nothing is done again."

func problems() map[string]string {
	return map[string]string{
		"400": "The Idempotency-Key is missing or too long.",
		"401": "No token that holds was shown. The answer is the same for every cause.",
		"403": "The token may only look, or it is a session of the page.",
		"404": "There is nothing of that name or number.",
		"413": "The body is larger than 1 MiB.",
		"415": "The body is not sent as JSON.",
		"422": "It is understood and can not be done as it is: the text says why.",
		"429": "Too many tokens were tried that do not hold; see Retry-After.",
		"503": "The store can not answer now; see Retry-After.",
	}
}

// parameterTexts are by name, and by path and name where it means another thing
// there.
func parameterTexts() map[string]string {
	return map[string]string{
		"q":           `One text that finds events: source:stripe type:invoice.* error:"connect refused" since:24h in_1Qx. The other filters narrow it further.`,
		"state":       "State of the event; dead finds events with a dead delivery too.",
		"source":      "Name of a source.",
		"account":     "The sender's account.",
		"type":        "Type of the event; * stands for anything: invoice.*",
		"id":          "Beginning of the sender's id.",
		"object":      "What the event is about, or the beginning of it.",
		"destination": "Name of a destination.",
		"error":       "Part of the error.",
		"failure":     "Number of a group of dead letters.",
		"kind":        "event or delivery: what of a dead letter is dead.",
		"key":         "Key of an event: source/account/id, with an empty account source//id.",
		"since":       "Received at or after: 2026-11-01, 2026-11-01T10:00:00Z, or how long ago as 24h or 7d.",
		"until":       "Received before, in the same forms.",
		"limit":       "How many rows a page has at most.",
		"cursor":      "Where the page begins: next of the page before.",
		"all":         "Those that are over too.",
		"cause":       "Why it was rejected.",
		"at":          "As of this time instead of when it came, in the forms of since.",
		"holder":      "Who has it.",
		"unit":        "What of.",
		"event":       "Key of the event that it delivers.",

		"/deliveries key":   "The business key.",
		"/deliveries state": "State of the delivery.",
		"/records key":      "The business key.",
		"/records kind":     "Kind of the record.",
		"/object object":    "The object, exactly.",

		"/object/history object": "The object, exactly.",
	}
}
