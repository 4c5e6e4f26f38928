// Package config is the shape of the configuration file: structs, defaults,
// strict loading and secrets. It guarantees that what was loaded has no key
// that nobody reads, no number without its unit, and that every problem of a
// file is reported at once with its place. It knows no meaning (whether a
// scheme can be compiled, whether a rule makes sense) and imports nothing of
// ours; every room above the leaf may import it.
package config
