package event_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"creel/event"
)

func TestKeysThatDifferPrintDifferently(t *testing.T) {
	t.Parallel()
	keys := []event.Key{
		{Source: "a", Account: "b/c", ID: "d"}, {Source: "a", Account: "b", ID: "c/d"},
		{Source: "a/b", Account: "c", ID: "d"}, {Source: "a", Account: "b%2Fc", ID: "d"},
		{Source: "a", Account: "", ID: "b"}, {Source: "a", Account: "b", ID: "B"}, {Source: "a", Account: "b", ID: "b"},
		{Source: "a", ID: "\xff"}, {Source: "a", ID: "\ufffd"}, {Source: "a", ID: "%FF"}, {Source: "a", ID: "x\x1b[2J"},
		{Source: "a", ID: "n\x00l"}, {Source: "a", ID: "line\nbreak"}, {Source: "a", ID: "\u2028"}, {Source: "a", ID: "\u0085é🚀"},
	}
	seen := map[string]event.Key{}
	for _, key := range keys {
		text := key.String()
		if other, ok := seen[text]; ok {
			t.Errorf("%+v and %+v both print as %s", key, other, text)
		}
		seen[text] = key
		var through event.Key
		line, err := json.Marshal(key)
		if err == nil {
			err = json.Unmarshal(line, &through)
		}
		if err != nil || through != key {
			t.Errorf("%+v comes back from JSON as %+v, %v", key, through, err)
		}
		back, err := event.ParseKey(text)
		if err != nil || back != key {
			t.Errorf("ParseKey(%q) = %+v, %v; want %+v", text, back, err, key)
		}
	}
}

func TestParseKeyRefusesWhatIsNoKey(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "stripe", "/a/b", "a/b/", "a/b/c/d", "a/%zz/c"} {
		if key, err := event.ParseKey(text); err == nil {
			t.Errorf("ParseKey(%q) = %+v, want an error", text, key)
		}
	}
	short, err := event.ParseKey("stripe/evt_1")
	if err != nil || short != (event.Key{Source: "stripe", ID: "evt_1"}) {
		t.Errorf("the short form gave %+v, %v", short, err)
	}
}

func TestLongKeysAreFoldedAndStayReadable(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", event.MaxKey+1)
	stored, readable := event.Fold(long)
	if !strings.HasPrefix(stored, "sha256:") || readable != long {
		t.Errorf("Fold gave %q, %q", stored, readable)
	}
	if stored, readable := event.Fold("x"); stored != "x" || readable != "" {
		t.Errorf("Fold of a short key gave %q, %q", stored, readable)
	}
}

func TestEveryStateHasAWayOutOrIsAnEnd(t *testing.T) {
	t.Parallel()
	for _, state := range event.States() {
		for _, to := range event.States() {
			if event.CanMove(state, to) && state == event.Discarded {
				t.Errorf("a discarded event may become %s", to)
			}
		}
	}
	if event.CanMove(event.Done, event.Claimed) || !event.CanMove(event.Dead, event.Pending) {
		t.Error("the table of moves is not the one of docs/states.md")
	}
}

func ExampleKey() {
	key := event.Key{Source: "stripe", Account: "acct_1", ID: "evt_1M2"}
	text, _ := json.Marshal(key)
	fmt.Println(key, string(text))
	// Output: stripe/acct_1/evt_1M2 "stripe/acct_1/evt_1M2"
}
