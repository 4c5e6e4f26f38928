// Package source is what is known about senders. It guarantees that nothing
// becomes an event unless its sender is proved over the raw bytes, in constant
// time, by the scheme that the configuration names and by no other; that every
// authentic event gets a key of its own or a reason why it has none; and that
// a request can do no more than be refused. It is pure: it stores nothing,
// logs nothing and calls nobody. It imports event, config and path; receiver,
// jobs, admin, app and cli may import it.
//
// A sender is described by data (config.Scheme): the presets are embedded TOML
// in the same language that an owner writes under [source.verify], read by the
// same strict decoder.
package source
