// Package store is the only room with SQL and the driver. It guarantees that
// a write which was answered with success is committed and synced to disk,
// that one writer decides in one order, that a failing write hurts nobody
// else, and that a store which can not write says so in bounded time and
// comes back by itself when the cause is gone. App and cli may import it;
// receiver, jobs and admin declare the few methods that they call. It imports
// event.
//
// One goroutine owns the one write connection (writer.go). Whoever writes
// hands it a unit, a function of the open transaction that may run twice. The
// writer takes all that waits, runs it in one transaction, commits with one
// sync, and answers then. Readers have a pool of their own and never wait for
// it.
package store
