package deliver

import "time"

// limits are what the dispatcher wants to know about a command or a folder.
type limits struct {
	name     string
	inFlight int
	rate     float64
	review   bool
}

// Name is the name of the destination in the configuration.
func (l *limits) Name() string { return l.name }

// InFlight is how many attempts may run at once.
func (l *limits) InFlight() int { return l.inFlight }

// Rate is how many attempts may start in a second; 0 is no limit.
func (l *limits) Rate() float64 { return l.rate }

// MaxRetryAfter is 0: there is no answer that could ask for a wait.
func (l *limits) MaxRetryAfter() time.Duration { return 0 }

// Review tells whether an attempt whose end was not seen waits for a person
// instead of being repeated.
func (l *limits) Review() bool { return l.review }
