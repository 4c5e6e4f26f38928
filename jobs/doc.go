// Package jobs is when things happen: the worker that applies rules, the
// dispatcher that sends deliveries, the retry policies and the holding of
// destinations that are down. It guarantees that nothing is written while
// nothing is due, that no attempt comes before its slot, that at most one
// incident is opened for one outage, and that a stop gives back what it did
// not do. Each job is a loop around Step(ctx, now). app imports it; it imports
// event, config, deliver and handlers, and says itself what it needs of the
// store.
package jobs
