// Package path is the one language that names a place in a request:
// {body.a.b.0.c}, {header.x-foo}, {query.x}, {form.x}. It guarantees that
// presets, keys, templates and conditions read the same text at the same
// place, with every digit kept, and that a member written twice on a path
// that is used is an error instead of a guess. It imports event and the
// standard library; source, handlers and deliver import it.
//
// # The language
//
// A path is a root and the steps below it, separated by dots. A backslash
// takes the next character as it is: body.a\.b is the member "a.b". A question
// mark at the end (body.x?) says that the place may be empty.
//
//   - body.a.0.c walks the JSON of the body: a step is the name of an object's
//     member or, in digits, the index of an array's element from 0. body alone
//     is the whole JSON value.
//   - header.x-foo is the first line of that header, letter case ignored.
//   - query.x and form.x are a field of the query or of the urlencoded body,
//     decoded. Everything after the first dot is the name: query.hub.mode.
package path
