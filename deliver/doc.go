// Package deliver makes one attempt at one destination and is the only
// classifier of its outcome. It guarantees that a delivery carries the same
// identity on every attempt, that one attempt is at most one send, that every
// attempt ends within its timeouts whatever the other side does, and that no
// secret reaches an error text or a kept answer. It knows no schedule and no
// store; jobs and app import it, it imports event, config and path.
package deliver
