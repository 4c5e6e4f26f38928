// Package api is what programs ask over the network: the lists, details and
// acts of the page and of the command line as JSON, below /api/v1 on the
// operator's listener. It guarantees that nothing is answered to whoever shows
// no token that holds and has no session of the page, that only a token which
// may operate changes anything, and that an act which is asked for again under
// one key is done once. It reads through the interfaces of the page and decides
// nothing. app alone may import it; it does not import store.
package api
