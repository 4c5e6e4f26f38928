package jobs

import (
	"context"

	"creel/deliver"
	"creel/handlers"
)

// Rulebook is the rules of one configuration with what they fetch by: a reload
// changes both at once.
type Rulebook struct {
	*handlers.Rules
	Fetchers map[string]*deliver.Fetcher // by rule
}

// Fetch implements Rules.
func (b *Rulebook) Fetch(ctx context.Context, request handlers.FetchRequest) ([]byte, error) {
	fetcher, ok := b.Fetchers[request.Rule]
	if !ok {
		return nil, &deliver.FetchError{Permanent: true, Reason: "the rule has no fetch"}
	}
	return fetcher.Fetch(ctx, request.URL)
}

// Close drops the connections that are kept for the next fetch.
func (b *Rulebook) Close() {
	for _, fetcher := range b.Fetchers {
		fetcher.Close()
	}
}
