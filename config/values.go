package config

import "time"

// Duration is a length of time, written with its unit: "10s", "5m", "168h".
type Duration time.Duration

// Size is a number of bytes, written with its unit: "256KB", "1MiB".
type Size int64

// Rate is a number of events in a time, written "50/s", "100/m"; 0 is no limit.
type Rate float64

// StringList is a list that may be written as one string.
type StringList []string

// Secret is a reference to something that must not be shown: "env:NAME",
// "file:PATH", "credential:NAME" or a literal. It prints as [secret].
type Secret struct{ ref string }
