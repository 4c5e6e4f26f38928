// Package admin is what an operator reaches: the health answers on both
// listeners and the control socket beside the database, through which the
// command line acts on a running server. It guarantees that every change goes
// through the one store method that also writes its audit row, and that
// nothing here is reachable without the file system's permission (the socket
// has mode 0600) but for answers that tell nothing, and for the body of an event
// at an address that this server has signed and that is not over. app and cli may import
// it; it does not import store.
package admin
