// Package cli is the command line: one file a command, each of which parses,
// calls app, and prints. It guarantees the exit codes 0 ok, 1 failed, 2 usage
// or configuration, 3 partly done, 4 nothing matched, and that --json prints
// one documented object a line. main imports it, and so may the main package
// of a custom binary.
package cli
