package cli

import (
	"context"
	"errors"

	"creel/admin"
	"creel/event"
	"creel/source"
	"creel/store"
)

// sentEvent is an event of a request that was sent, and what the inbox made of
// it: "" where it can not be seen.
type sentEvent struct {
	Key    event.Key    `json:"key"`
	Result event.Result `json:"result,omitempty"`
}

// onlooker sees in the inbox of this machine's server what became of what is
// sent to it. The nil one sees nothing.
type onlooker struct {
	source *source.Source
	reader *store.Reader
}

// onlooker looks on where a server of this configuration runs here, which is
// the one that is sent to.
func (f *frame) onlooker(ctx context.Context, s *setup, compiled *source.Source, url string) (*onlooker, error) {
	o := &onlooker{source: compiled}
	if url != "" {
		return o, nil
	}
	if _, err := admin.Dial(ctx, store.SocketPath(s.config.Database)); err != nil {
		return o, nil //nolint:nilerr // what can not be asked is not told
	}
	reader, err := store.OpenRead(ctx, s.config.Database)
	if err != nil {
		return nil, failed("", "%w", err)
	}
	o.reader = reader
	return o, nil
}

func (o *onlooker) close() {
	if o.reader != nil {
		_ = o.reader.Close() // it has only read
	}
}

// sight is what the inbox has under a key: nothing where it is not there.
type sight struct {
	there      bool
	duplicates int
}

func (o *onlooker) look(ctx context.Context, key event.Key) (sight, error) {
	if o.reader == nil {
		return sight{}, nil
	}
	found, err := o.reader.Find(ctx, key)
	if errors.Is(err, event.ErrNotFound) {
		return sight{}, nil
	}
	return sight{there: err == nil, duplicates: found.Duplicates}, err
}

// around sends a request by do, and tells what became of its events.
func (o *onlooker) around(ctx context.Context, items []event.Item, do func() (sentLine, error)) (sentLine, error) {
	before := make([]sight, len(items))
	for i := range items {
		var err error
		if before[i], err = o.look(ctx, items[i].Key); err != nil {
			return sentLine{}, failed("", "%w", err)
		}
	}
	line, err := do()
	if err != nil || line.Status >= 300 {
		return line, err
	}
	for i := range items {
		after, err := o.look(ctx, items[i].Key)
		if err != nil {
			return line, failed("", "%w", err)
		}
		one := sentEvent{Key: items[i].Key}
		switch {
		case !after.there: // it can not be seen, or is another event's body
		case !before[i].there:
			one.Result = event.New
		case after.duplicates > before[i].duplicates:
			one.Result = event.Duplicate
		default:
			one.Result = event.Conflict
		}
		line.Events = append(line.Events, one)
	}
	return line, nil
}
