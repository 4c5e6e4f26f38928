// Package app is the composition root: the only room that sees all others. It
// guarantees one order of start and stop (listener, intake, loops, attempts,
// store; undone in reverse by the same stack), one clock, and that a new
// configuration is applied whole or not at all. cli imports it, and so may
// the main package of a custom binary.
package app
