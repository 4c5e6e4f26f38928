package event

import "time"

// ParkedLane is a lane, or the part of one that leads to a target, whose head
// waits for an operator, and what is behind it with it.
type ParkedLane struct {
	Lane        string    `json:"lane"`
	Destination string    `json:"destination"`        // "" where it is the events that wait
	Target      string    `json:"target,omitempty"`   // who or what at the destination, where it has several
	Event       Key       `json:"event"`              // the head, or the event that the head is a delivery of
	Delivery    int64     `json:"delivery,omitempty"` // the head, where it is one
	State       string    `json:"state"`              // of the head
	Error       string    `json:"error"`
	Since       time.Time `json:"since"`
	Waiting     int       `json:"waiting"` // behind it, counted as far as MaxWaiting
}

// MaxWaiting is how far those that wait in a parked lane are counted.
const MaxWaiting = 1000
