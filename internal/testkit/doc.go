// Package testkit is what tests need around the real thing: a clock that they
// set, senders that sign without our own code, destinations and mail servers
// that misbehave on request, and the real binary as a process. It guarantees
// that nothing in it is a mock of SQLite, HTTP, SMTP or the file system, and
// that it is never part of the binary: tests alone may import it, and it
// imports nothing of ours, so that it can judge every room.
package testkit
