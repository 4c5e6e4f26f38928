// Command load measures the server: it sends signed events from few cores,
// counts what was acknowledged, and compares, side by side in one run, with
// the HTTP ceiling (the same check without a store) and with peers. It
// guarantees that a figure is a ratio or a median of interleaved rounds and
// that latency in the open loop counts from the intended time of a send. No
// room may import it.
//
//	go run ./internal/load bench            all figures of docs/performance.md
//	go run ./internal/load bench -only P1   some of them
//	go run ./internal/load send -url URL    a load on a server that runs
//	go run ./internal/load ceiling          the HTTP ceiling, to be measured by hand
//	go run ./internal/load sink             a destination that counts
//	go run ./internal/load compare NAME=URL …  receivers that run, side by side (P2)
//
// All traffic goes to addresses of this machine.
package main
