// Package path is the one language that names a place in a request:
// {body.a.b.0.c}, {header.x-foo}, {query.x}, {form.x}. It guarantees that
// presets, keys, templates and conditions read the same text at the same
// place, with every digit kept, and that a member written twice on a path
// that is used is an error instead of a guess. It imports event and the
// standard library; source, handlers and deliver import it.
package path
