// Package event is the leaf of the house: the words every other room speaks.
// It guarantees that a key, a state and an outcome mean the same thing in Go,
// in SQL, in logs and on the page. Every room may import it; it imports the
// standard library alone.
package event
