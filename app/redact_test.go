package app

import (
	"net/http"
	"strings"
	"testing"

	"creel/config"
	"creel/event"
	"creel/path"
	"creel/source"
)

func redactionsOf(t *testing.T, change func(*config.Source)) Redactions {
	t.Helper()
	cfg := config.Default()
	own := config.DefaultSource()
	own.Name = "shop"
	change(&own)
	cfg.Sources = []config.Source{own}
	all, problems := RedactionsOf(cfg)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return all
}

// Where the events of a source stand inside of a request, a place is one of
// theirs, in a request that could not be taken apart too.
func TestRedactionOfBatches(t *testing.T) {
	t.Parallel()
	list := redactionsOf(t, func(s *config.Source) {
		s.Verify = &config.Scheme{Split: "body.entry.*.changes.*"}
		s.Redact, s.RedactStored = []string{"body.name"}, []string{"body.card.cvc"}
	})
	form := redactionsOf(t, func(s *config.Source) {
		s.Verify = &config.Scheme{Unwrap: "form.payload"}
		s.Redact, s.RedactStored = []string{"body.name", "form.text"}, []string{"body.card.cvc"}
	})
	const formType = "Content-Type: application/x-www-form-urlencoded\n"
	for name, c := range map[string]struct {
		by              Redactions
		parts           string // of the items, separated by blanks
		header          string
		body, kept, see string // as it comes, is kept, and is shown
	}{
		"two events": {list, "body.entry.0.changes.0 body.entry.1.changes.0", "",
			`{"entry":[{"changes":[{"name":"canary","card":{"cvc":"canary"}}]},{"changes":[{"card":{"cvc":"canary"}}]}],"names":1}`,
			`{"entry":[{"changes":[{"name":"canary","card":{"cvc":"[redacted]"}}]},{"changes":[{"card":{"cvc":"[redacted]"}}]}],"names":1}`,
			`{"entry":[{"changes":[{"name":"[redacted]","card":{"cvc":"[redacted]"}}]},{"changes":[{"card":{"cvc":"[redacted]"}}]}],"names":1}`},
		"not taken apart": {list, " ", "",
			`{"entry":[{"changes":[{"name":"canary","card":{"cvc":"canary"}}]},7],"card":{"cvc":"canary"}}`,
			`{"entry":[{"changes":[{"name":"canary","card":{"cvc":"[redacted]"}}]},7],"card":{"cvc":"[redacted]"}}`,
			`{"entry":[{"changes":[{"name":"[redacted]","card":{"cvc":"[redacted]"}}]},7],"card":{"cvc":"[redacted]"}}`},
		"not read": {list, " ", "", `{"entry":[{"changes":[{"name":"canary"`, path.RedactedWhole, path.RedactedWhole},
		"in a form": {form, "form.payload", formType, "payload=%7B%22name%22%3A%22canary%22%2C%22card%22%3A%7B%22cvc%22%3A%22canary%22%7D%7D&text=canary",
			"payload=%7B%22name%22%3A%22canary%22%2C%22card%22%3A%7B%22cvc%22%3A%22%5Bredacted%5D%22%7D%7D&text=canary",
			"payload=%7B%22name%22%3A%22%5Bredacted%5D%22%2C%22card%22%3A%7B%22cvc%22%3A%22%5Bredacted%5D%22%7D%7D&text=%5Bredacted%5D"},
		"a form without it": {form, " ", formType, "text=canary&a=1", "text=canary&a=1", "text=%5Bredacted%5D&a=1"},
		"JSON instead":      {form, " ", "", `{"name":"canary","card":{"cvc":"canary"}}`, `{"name":"canary","card":{"cvc":"[redacted]"}}`, `{"name":"[redacted]","card":{"cvc":"[redacted]"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			receipt := &event.Receipt{Source: "shop", Body: []byte(c.body), Header: c.header}
			for part := range strings.SplitSeq(c.parts, " ") {
				receipt.Items = append(receipt.Items, event.Item{Part: part})
			}
			c.by.keep(receipt)
			if string(receipt.Body) != c.kept {
				t.Errorf("kept  %s\nwant  %s", receipt.Body, c.kept)
			}
			for _, item := range receipt.Items {
				payload := event.Payload{Body: receipt.Body, Header: c.header, Part: item.Part}
				if got := c.by.Payload("shop", payload); string(got.Body) != c.see || got.Part != item.Part {
					t.Errorf("shown %s (%s)\nwant  %s", got.Body, got.Part, c.see)
				}
			}
			request := &source.Request{Body: []byte(c.body), Header: http.Header{}}
			if c.header != "" {
				request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			if c.by.Request("shop", request); string(request.Body) != c.see {
				t.Errorf("shown of a request %s\nwant  %s", request.Body, c.see)
			}
		})
	}
}

// What is not kept is no matter of identity: the same event is a duplicate, and
// another body under its id a conflict, whose body is not kept whole either.
func TestRedactStoredKeepsIdentity(t *testing.T) {
	t.Parallel()
	p := newPremises(t, `silence = "0s"`)
	all, _ := RedactionsOf(&config.Config{Sources: []config.Source{{Name: "shop", RedactStored: []string{"body.canary"}}}})
	p.snapshot.Load().redact = all
	for range 2 {
		p.again("order.paid", 1)
	}
	p.again("order.other", 1)
	found, err := p.store.Event(t.Context(), event.Key{Source: "shop", ID: "evt_1"})
	p.must(err)
	if found.Duplicates != 1 || found.OtherBodies != 1 {
		t.Errorf("%d duplicates, %d other bodies", found.Duplicates, found.OtherBodies)
	}
	for _, body := range [][]byte{found.Payload.Body, found.Conflicts[0].Body} {
		if !strings.Contains(string(body), `"canary":"[redacted]"`) || strings.Contains(string(body), "canary-in-a-body") {
			t.Errorf("kept %s", body)
		}
	}
	p.asked(1)
	if got := p.app.Requests()[0].Body; string(got) != string(found.Payload.Body) {
		t.Errorf("the app got %s", got)
	}
}

func TestRedactionProblems(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Sources = []config.Source{{Name: "shop", Redact: []string{"body.fine", "card.number", "body.a?"}, Index: []string{"body.card.cvc"},
		RedactStored: []string{"cookie.x", "body.card.cvc", "body.items.*.x"}}, {Name: "plain"}}
	cfg.Rules = []config.Rule{{Name: "reads", Match: config.Match{Source: config.StringList{"sh*"}}, Key: "{source}/{body.card.cvc}"},
		{Name: "of another", Match: config.Match{Source: config.StringList{"plain"}}, Key: "{body.card.cvc}"}}
	all, problems := RedactionsOf(cfg)
	said := problems.Error()
	for _, want := range []string{"source[0].redact[1]", "source[0].redact[2]", "source[0].redact_stored[0]", "source[0].redact_stored[1]: index lists it too", `the rule "reads" names it`} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not told:\n%s", want, said)
		}
	}
	if strings.Contains(said, "of another") || len(problems.Warnings()) != 2 {
		t.Errorf("told:\n%s", said)
	}
	// Whoever goes on hides more.
	if got := all.Payload("shop", event.Payload{Body: []byte(`{"a":1}`)}); string(got.Body) != `"[redacted]"` {
		t.Errorf("shown %s", got.Body)
	}
	if got := all.Payload("plain", event.Payload{Body: []byte(`{"a":1}`)}); string(got.Body) != `{"a":1}` {
		t.Errorf("shown %s", got.Body)
	}
}
