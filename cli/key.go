package cli

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"creel/event"
	"creel/store"
)

// mostKeys is how many keys a hint names.
const mostKeys = 3

// lookedAt reads the key of an event that is looked at. The id alone, which is
// what the sender shows, stands for the one event that has it.
func lookedAt(ctx context.Context, reader *store.Reader, command, text string) (event.Key, error) {
	key, err := event.ParseKey(text)
	if err == nil {
		return key, nil
	}
	keys, err := withID(ctx, reader, text, err)
	if err != nil || len(keys) == 1 {
		return append(keys, key)[0], err
	}
	return key, usage(tryKeys(command, keys), "%q is the id of %s", text, many(keys))
}

// actedOn refuses an id in the place of a key: an act names what it is about
// whole. It leads to the keys that were meant.
func actedOn(ctx context.Context, reader *store.Reader, command, text string) error {
	_, err := event.ParseKey(text)
	if err == nil {
		return nil
	}
	keys, err := withID(ctx, reader, text, err)
	if err != nil {
		return err
	}
	if len(keys) == 1 {
		return usage(tryKeys(command, keys), "%q is the id of an event, not its key", text)
	}
	return usage(tryKeys(command, keys), "%q is the id of %s, and the key of none", text, many(keys))
}

// keyFor is actedOn for a command that has no database open. bad is what it
// refuses where there is none.
func (f *frame) keyFor(ctx context.Context, command string, args []string, bad error) error {
	reader, _, err := f.reader(ctx)
	if err != nil {
		return bad
	}
	defer reader.Close()
	for _, text := range args {
		if err := actedOn(ctx, reader, command, text); err != nil {
			return err
		}
	}
	return bad
}

// withID finds the events that a text without a slash may mean, at least one.
// bad is what the text is otherwise.
func withID(ctx context.Context, reader *store.Reader, text string, bad error) ([]event.Key, error) {
	if text == "" || strings.Contains(text, "/") {
		return nil, usage("creel events", "%w", bad)
	}
	keys, all, err := reader.WithID(ctx, text, mostKeys+1)
	switch {
	case err != nil:
		return nil, failed("", "%w", err)
	case len(keys) == 0 && !all:
		return nil, usage("creel events --query "+queryWord(text), "%w", bad)
	case len(keys) == 0:
		return nil, &exit{code: exitNothing, err: fmt.Errorf("no event has the id %q", text), hint: "creel events --query " + queryWord(text)}
	case !all && len(keys) == 1: // another one may have it too
		return nil, usage("creel events "+keys[0].String(), "%w", bad)
	}
	return keys, nil
}

func many(keys []event.Key) string {
	if len(keys) > mostKeys {
		return "several events"
	}
	return plural(len(keys), "event", "events")
}

func tryKeys(command string, keys []event.Key) string {
	var all []string
	for _, key := range keys[:min(len(keys), mostKeys)] {
		all = append(all, command+" "+key.String())
	}
	return strings.Join(all, ", or ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_.=-]+$`)

// queryWord writes a word as a shell and a query take it.
func queryWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
	return "'" + strings.ReplaceAll(printable(quoted), "'", `'\''`) + "'"
}
