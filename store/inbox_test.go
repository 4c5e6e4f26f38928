package store

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"creel/event"
)

func TestAcceptStoresARequestByteForByte(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	body := "{\"id\":\"a\",\"s\":\"\x00\xff\"}\r\n"
	r := sc.receipt(body, item("a\x00b", body))
	r.Header, r.Query = "X-Odd: \xff", "a=%00&b"
	got := sc.accept(r)[0]
	want(t, "result", got.Result, event.New)
	work, err := sc.Work(context.Background(), got.Seq)
	must(t, err)
	want(t, "body", string(work.Body), body)
	want(t, "header", work.Header, r.Header)
	want(t, "query", work.Query, r.Query)
	want(t, "id", work.Key.ID, "a\x00b")
	want(t, "received", work.ReceivedAt, start)
	want(t, "state", work.State, event.Pending)
}

func TestAcceptAnEmptyBody(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	r := sc.receipt("", item("a", ""))
	r.Body = nil
	got := sc.accept(r)[0]
	work, err := sc.Work(context.Background(), got.Seq)
	must(t, err)
	want(t, "length", len(work.Body), 0)
	want(t, "result again", sc.accept(r)[0].Result, event.Duplicate)
}

// One request with several events, the same again, and with one more.
func TestBugHTTP16SeveralEventsInOneRequest(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	first := `[{"id":"e1"},{"id":"e2"},{"id":"e2"}]`
	items := []event.Item{item("e1", "e1"), item("e2", "e2"), item("e2", "e2")}
	for i := range items {
		items[i].Part = "body." + string(rune('0'+i))
	}
	results := func(got []event.AcceptedItem) string {
		var words []string
		for _, g := range got {
			words = append(words, string(g.Result))
		}
		return strings.Join(words, " ")
	}
	want(t, "first", results(sc.accept(sc.receipt(first, items...))), "new new duplicate")
	want(t, "again", results(sc.accept(sc.receipt(first, items...))), "duplicate duplicate duplicate")
	third := `[{"id":"e1"},{"id":"e2"},{"id":"e2"},{"id":"e3"}]`
	more := item("e3", "e3")
	more.Part = "body.3"
	want(t, "third", results(sc.accept(sc.receipt(third, append(items, more)...))), "duplicate duplicate duplicate new")
	want(t, "events", sc.number("SELECT count(*) FROM event"), 3)
	want(t, "bytes kept", sc.number("SELECT sum(length(data)) FROM payload"), len(first)+len(third)+2*len("Content-Type: application/json"))
	for _, w := range sc.claim(10) {
		whole := first
		if w.Key.ID == "e3" {
			whole = third
		}
		want(t, "body of "+w.Key.ID, string(w.Body), whole)
	}
}

// The rows of one request commit together or not at all.
func TestAcceptIsOneTransaction(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	bad := item("", "x") // the schema refuses an empty id
	_, err := sc.Accept(context.Background(), sc.receipt("x", item("a", "a"), bad))
	if err == nil {
		t.Fatal("an empty id was stored")
	}
	want(t, "events", sc.number("SELECT count(*) FROM event"), 0)
	want(t, "payloads", sc.number("SELECT count(*) FROM payload"), 0)
}

func TestAcceptKeepsNoBodyOfIgnoredTypes(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	it := item("a", "secret")
	it.State, it.Error, it.DropBody = event.Ignored, "its type is ignored by configuration", true
	got := sc.accept(sc.receipt("secret", it))[0]
	want(t, "payloads", sc.number("SELECT count(*) FROM payload"), 0)
	work, err := sc.Work(context.Background(), got.Seq)
	must(t, err)
	want(t, "body", len(work.Body), 0)
	want(t, "state", work.State, event.Ignored)
	want(t, "error", work.Error, it.Error)
	want(t, "claimed", len(sc.claim(10)), 0)
	want(t, "again", sc.accept(sc.receipt("secret", it))[0].Result, event.Duplicate)
}

func TestAcceptKeepsTheUnreadableDead(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for range 2 {
		it := item("sha256:1", "{")
		it.State, it.Error = event.Dead, "the body is not JSON"
		got := sc.accept(sc.receipt("{", it))[0]
		if got.Revived {
			t.Error("an event that is dead as it came was revived")
		}
	}
	d := sc.detail("sha256:1")
	want(t, "state", d.State, event.Dead)
	want(t, "duplicates", d.Duplicates, 1)
	want(t, "body", string(d.Body), "{")
	if i := sc.open1(event.CauseUnreadable, "gen"); i == nil || i.Count != 1 {
		t.Errorf("incident %v, want one with a count of 1", i)
	}
}

// The claim is born with the row: what is handed over is what a claim would
// have read back.
func TestHandoffGivesTheClaimWithTheRow(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	m := &memory{places: 2}
	sc.SetHandoff(m)
	ignored := item("ignored", "i")
	ignored.State = event.Ignored
	sc.accept(sc.receipt("abc", item("a", "a"), ignored, item("b", "b"), item("c", "c")))
	sc.accept(sc.receipt("abc", item("a", "a")))
	// A later write is behind the answers of the earlier ones.
	waiting := sc.claim(10)
	want(t, "handed", len(m.works), 2)
	want(t, "waiting", len(waiting), 1)
	want(t, "free places", m.free(), 0)
	for _, w := range m.works {
		read, err := sc.Work(context.Background(), w.Seq)
		must(t, err)
		want(t, "claim", w.Claim, read.Claim)
		want(t, "attempts", w.Attempts, read.Attempts)
		want(t, "state", w.State, read.State)
		want(t, "key", w.Key, read.Key)
		want(t, "received", w.ReceivedAt, read.ReceivedAt)
		if !bytes.Equal(w.Body, read.Body) {
			t.Errorf("body %q, stored %q", w.Body, read.Body)
		}
		must(t, sc.finish(done(w)).Err)
	}
}

func TestHandoffPlacesComeBack(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	m := &memory{places: 8}
	sc.SetHandoff(m)
	sc.accept(sc.receipt("a", item("a", "a")))
	sc.accept(sc.receipt("a", item("a", "a")))
	if _, err := sc.Accept(context.Background(), sc.receipt("x", item("", "x"))); err == nil {
		t.Fatal("an empty id was stored")
	}
	sc.claim(1)
	want(t, "after a duplicate and a failure", m.free(), 7)
	must(t, sc.Close())
	if _, err := sc.Accept(context.Background(), sc.receipt("b", item("b", "b"))); !errors.Is(err, event.ErrUnavailable) {
		t.Errorf("closed store: %v, want ErrUnavailable", err)
	}
	want(t, "after a refusal", m.free(), 7)
}

func TestAcceptRingsForWhatNobodyHas(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.receive("a")
	select {
	case <-sc.EventsReady():
	case <-time.After(5 * time.Second):
		t.Fatal("nobody was woken")
	}
}
