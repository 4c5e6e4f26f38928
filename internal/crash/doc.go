// Package crash proves what survives a process that dies: it kills and stops
// the real binary under load and compares what senders were told, what the
// destination received and what the database says. It guarantees nothing to
// other rooms and none may import it.
//
//	go test ./internal/crash -kills=150 -stops=50 -outage=3m
//
// runs the long form; without the flags a short one runs with all other tests.
package crash
