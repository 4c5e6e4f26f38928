package app

import (
	"creel/config"
	"creel/event"
	"creel/receiver"
	"creel/source"
)

// sourceNames lists the sources of a configuration.
func sourceNames(cfg *config.Config) []string {
	names := make([]string, len(cfg.Sources))
	for i := range cfg.Sources {
		names[i] = cfg.Sources[i].Name
	}
	return names
}

// countReceipt counts what became of a receipt that is stored.
func (a *App) countReceipt(receipt *event.Receipt, accepted event.Accepted) {
	if receipt.Origin != event.FromWebhook {
		return // what an operator brought says nothing of its sender
	}
	var fresh, duplicates, conflicts, dead int
	for i := range accepted.Items {
		switch accepted.Items[i].Result {
		case event.New:
			fresh++
			if i < len(receipt.Items) && receipt.Items[i].State == event.Dead {
				dead++ // it can not be read
			}
		case event.Duplicate:
			duplicates++
		case event.Conflict:
			conflicts++
		}
	}
	a.tally.Count(event.TallyReceipts, receipt.Source, 1)
	a.tally.Count(event.TallyNew, receipt.Source, fresh)
	a.tally.Count(event.TallyDuplicates, receipt.Source, duplicates)
	a.tally.Count(event.TallyConflicts, receipt.Source, conflicts)
	a.tally.Count(event.TallyDeadEvents, receipt.Source, dead)
}

// countRejected is told of every request that failed verification, or was
// refused before it, which says nothing of signatures.
func (a *App) countRejected(r receiver.Rejected) {
	kind := event.TallyRejects
	if source.Cause(r.Cause).Unverified() {
		kind = event.TallyUnverified
	}
	a.tally.Count(kind, r.Source, 1)
}

// countGuess is told of every wrong password and every token that does not hold.
func (a *App) countGuess() { a.tally.Count(event.TallyGuesses, "", 1) }
