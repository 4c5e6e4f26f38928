// Package receiver is the edge that senders see. It guarantees that nothing is
// stored before it is verified, that a 2xx means what the contract says (the
// event is durable, was already, is not wanted, or it was a handshake), that
// every other answer is a constant that tells a stranger nothing, and that
// what unverified traffic costs in memory, time, log lines and disk is bounded.
// Only app imports it; it imports event, source and config, and learns of the
// store through the interface Inbox.
package receiver
