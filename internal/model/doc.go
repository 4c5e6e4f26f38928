// Package model holds the real store, worker and dispatcher against a small
// model of them: it guarantees that no random history of receipts, runs, sends,
// crashes, clock jumps and operators' acts leaves more, less or other than the
// contract says. It has tests only: no room may import it.
//
// -steps says how many steps are run, 2,000 where it is left out. A failure is
// shrunk and its history kept under testdata/rapid: -rapid.failfile=… runs it
// again, and -rapid.seed=… the whole run, whose seed is logged.
package model
