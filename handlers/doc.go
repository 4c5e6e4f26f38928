// Package handlers says what an event means: it guarantees that the same event
// under the same configuration always comes to the same decision, and that
// whatever an event contains, the decision is one of done, ignored, dead with
// its reason, try again, or ask for the current object first. It decides and
// does nothing: an event goes in, effects come out. It imports event, path and
// config; the composition root, the worker and custom binaries import it.
//
// # Expressions
//
// The when of a rule and the amount of a grant are expressions (expr-lang/expr)
// over body, header, query, form and the names source, account, tenant, id,
// type, object, version and event. body.a.b reads the place that {body.a.b}
// reads in a template; a place where nothing stands is an error of the event
// unless it is reached by ?. (body.a?.b). A whole number is exact: one that does
// not fit 64 bits is the text of its digits, and a sum that does not fit is an
// error. The functions are those of Functions: none of them reads a clock or can
// make more out of an event than it holds.
package handlers
