package event

import "time"

// ActionAck is an operator's word that an incident is seen to: the action's
// target is its number, or "all".
const ActionAck ActionKind = "ack"

// AllIncidents is the target of an ActionAck that means every open incident.
const AllIncidents = "all"

// Moment is the moment in the life of an incident that is told.
type Moment string

// The moments. Each is told at most once to each recipient.
const (
	MomentOpened    Moment = "opened"
	MomentEscalated Moment = "escalated" // what was told has become worse
	MomentResolved  Moment = "resolved"  // told to those alone who were told that it began
)

// Telling is one alert for one recipient: a delivery without an event.
type Telling struct {
	Destination string
	Target      string // the recipient of a mail; "" at any other destination
	Message     string // see Alert.Message
	// Wait is how long it is left to grow, or to pass, before it goes out.
	Wait time.Duration
}

// Teller says who is told of an incident, and what. It is called inside a
// transaction: it looks at nothing but its arguments.
type Teller func(i OpenIncident, m Moment) []Telling
