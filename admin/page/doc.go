// Package page is what the operator sees in a browser: plain pages, forms and
// links, complete without JavaScript. It guarantees that nobody sees anything
// but the login without having logged in, that no GET changes anything, that
// every answer carries a policy which runs no script but ours, and that what
// came in from outside is shown as text. It decides nothing: every change goes
// through the operation that also writes the audit row. app alone may import
// it; it does not import store.
package page
