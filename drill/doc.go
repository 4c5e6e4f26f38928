// Package drill tries the owner's own rules out: the same event five times, two
// ids for one thing, other orders, every rule twice, kills at random moments. It
// guarantees that nothing is sent or fetched, that the owner's database is only
// read, and that all it writes is in a folder of its own, which is gone at the
// end unless it is to be kept. cli imports it, and nobody else.
package drill
