// Package house keeps the house: it guarantees that imports point down, that
// every folder says what it guarantees, that files stay small, that no package
// keeps state, and that every gate has its test. It has tests only: no room
// may import it. What it demands stands in docs/architecture.md.
package house
