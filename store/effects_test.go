package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"creel/event"
)

// claimed receives an event and takes it.
func (sc *scene) claimed(id string) event.Work {
	sc.t.Helper()
	sc.receive(id)
	works := sc.claim(1)
	if len(works) != 1 || works[0].Key.ID != id {
		sc.t.Fatalf("claimed %v, want %s", works, id)
	}
	return works[0]
}

// run receives an event and finishes it with effects.
func (sc *scene) run(id string, effects ...event.Effect) event.Finished {
	sc.t.Helper()
	return sc.finish(done(sc.claimed(id), effects...))
}

// again replays an event and finishes it with effects.
func (sc *scene) again(id string, effects ...event.Effect) event.Finished {
	sc.t.Helper()
	sc.replay(event.Selector{Keys: []event.Key{key(id)}})
	works := sc.claim(1)
	if len(works) != 1 || works[0].Key.ID != id {
		sc.t.Fatalf("claimed %v, want %s", works, id)
	}
	return sc.finish(done(works[0], effects...))
}

// decided is the decision and the reason of the only rule of a finish.
func decided(t testing.TB, f event.Finished) (event.Decision, string) {
	t.Helper()
	must(t, f.Err)
	if len(f.Verdicts) != 1 {
		t.Fatalf("%d verdicts, want 1", len(f.Verdicts))
	}
	return f.Verdicts[0].Decision, f.Verdicts[0].Reason
}

func (sc *scene) decides(f event.Finished, decision event.Decision, reasons ...string) {
	sc.t.Helper()
	got, reason := decided(sc.t, f)
	want(sc.t, "decision", got, decision)
	for _, part := range reasons {
		if !strings.Contains(reason, part) {
			sc.t.Errorf("reason %q does not say %q", reason, part)
		}
	}
}

// dies sees that a finish is refused, with both values, that nothing of it is
// stored and that its event is dead.
func (sc *scene) dies(id string, f event.Finished, kind error, parts ...string) {
	sc.t.Helper()
	if !errors.Is(f.Err, kind) {
		sc.t.Fatalf("%v, want %v", f.Err, kind)
	}
	d := sc.detail(id)
	want(sc.t, "state of "+id, d.State, event.Dead)
	for _, part := range parts {
		if !strings.Contains(d.Error, part) {
			sc.t.Errorf("error %q does not have %q", d.Error, part)
		}
	}
	if sc.open1(event.CauseDeadEvent, "r") == nil {
		sc.t.Error("no incident")
	}
}

// undecided sees that nothing of a finish was stored and that its claim holds.
func (sc *scene) undecided(w event.Work, f event.Finished, kind error) {
	sc.t.Helper()
	if !errors.Is(f.Err, kind) {
		sc.t.Fatalf("%v, want %v", f.Err, kind)
	}
	d := sc.detail(w.Key.ID)
	want(sc.t, "state", d.State, event.Claimed)
	want(sc.t, "verdicts of this run", sc.number(`SELECT count(*) FROM verdict WHERE event = ? AND run = ?`, w.Seq, w.Run), 0)
}

// rows is a table whole, but for the columns that a second run may change.
func (sc *scene) rows(query string) string {
	sc.t.Helper()
	var b strings.Builder
	must(sc.t, sc.list(context.Background(), query, nil, func(r row) error {
		fmt.Fprintln(&b, r.values)
		return nil
	}))
	return b.String()
}

// effects are all tables that effects write.
func (sc *scene) effects() string {
	sc.t.Helper()
	var b strings.Builder
	for _, table := range []string{"delivery", "record", "ledger", "balance", "state", "transition", "operation"} {
		b.WriteString(table + ":\n" + sc.rows(`SELECT * FROM `+table))
	}
	return b.String()
}

func recordOf(k string, fields ...string) event.Record {
	e := event.Record{Key: k, Rule: "r", Of: "order"}
	for i := 0; i < len(fields); i += 2 {
		e.Fields = append(e.Fields, event.Field{Name: fields[i], Value: fields[i+1]})
	}
	return e
}

func grantOf(k string, amount int64) event.Grant {
	return event.Grant{Key: k, Rule: "r", To: "acct_1", Unit: "credits", Amount: amount}
}

func reversalOf(k, of string, amount int64) event.Grant {
	return event.Grant{Key: k, Rule: "r", Reverse: of, Amount: amount}
}

func mailOf(k, to string) event.Email {
	return event.Email{Key: k, Rule: "r", To: to, Subject: "100 credits added", Text: "Thank you."}
}

func stateOf(to, version string) event.SetState {
	return event.SetState{Key: "s", Rule: "r", Object: "order/1", To: to, Version: version}
}

func moveOf(k, to string, from ...string) event.SetState {
	return event.SetState{Key: k, Rule: "r", Object: "order/1", To: to, From: from}
}

// Two event ids for one invoice: two receipts, one grant, one balance change,
// one confirmation mail.
func TestGateA1OneInvoiceUnderTwoIds(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	effects := []event.Effect{
		grantOf("stripe/acct/in_1/initial-credit-grant", 100),
		mailOf("stripe/acct/in_1/initial-credit-grant", "ann@example.com"),
	}
	sc.decides(sc.run("evt_1", effects...), event.Applied)
	sc.decides(sc.run("evt_2", effects...), event.AlreadyApplied, "evt_1 did this operation")
	want(t, "receipts", sc.number(`SELECT count(*) FROM event WHERE state = 'done'`), 2)
	want(t, "grants", sc.number(`SELECT count(*) FROM ledger`), 1)
	want(t, "balance", sc.number(`SELECT amount FROM balance WHERE holder = 'acct_1' AND unit = 'credits'`), 100)
	want(t, "mails", sc.number(`SELECT count(*) FROM delivery WHERE destination = 'mail' AND target = 'ann@example.com' AND state = 'ready'`), 1)
	d, found, err := sc.DeliveryTo(context.Background(), "stripe/acct/in_1/initial-credit-grant", event.Mail, "ann@example.com")
	must(t, err)
	if !found || d.Event.ID != "evt_1" {
		t.Errorf("found %t, the mail of %s", found, d.Event)
	}
}

// The same with the default of a key: each event is an operation of its own.
func TestBugDUP05OneEventUnderTwoIds(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for i, id := range []string{"a", "b"} {
		got := sc.run(id, recordOf("order/7/v3", "total", "10"), grantOf("order/7/v3", 5))
		sc.decides(got, []event.Decision{event.Applied, event.AlreadyApplied}[i])
	}
	want(t, "inbox rows", sc.number(`SELECT count(*) FROM event`), 2)
	want(t, "records", sc.number(`SELECT count(*) FROM record`), 1)
	want(t, "grants", sc.number(`SELECT count(*) FROM ledger`), 1)
	for _, id := range []string{"c", "d"} {
		w := sc.claimed(id)
		sc.decides(sc.finish(done(w, grantOf(w.Key.String()+"/r", 5))), event.Applied)
	}
	want(t, "balance", sc.number(`SELECT amount FROM balance`), 15)
}

// Every effect a second time, in any combination of kinds, leaves every table
// as it was.
func TestGateA2EveryEffectTwice(t *testing.T) {
	t.Parallel()
	effects := map[string]func(w event.Work) event.Effect{
		"forward": func(w event.Work) event.Effect { return forward(w, "app") },
		"record":  func(w event.Work) event.Effect { return recordOf(w.Key.String()+"/r", "b", "<2>", "a", "é\"1") },
		"grant":   func(w event.Work) event.Effect { return grantOf(w.Key.String()+"/r", 7) },
		"reverse": func(w event.Work) event.Effect { return reversalOf(w.Key.String()+"/r", "grant/0", 20) },
		"state":   func(w event.Work) event.Effect { return stateOf("paid", "7") },
		"set":     func(w event.Work) event.Effect { return moveOf(w.Key.String()+"/r", "paid", "", "paid") },
		"email":   func(w event.Work) event.Effect { return mailOf(w.Key.String()+"/r", "ann@example.com") },
		"run": func(w event.Work) event.Effect {
			return event.Run{Key: w.Key.String() + "/r", Rule: "r", Destination: "tool", Fields: []event.Field{{Name: "a", Value: "1"}}}
		},
		"file": func(w event.Work) event.Effect {
			return event.File{Key: w.Key.String() + "/r", Rule: "r", Destination: "dir", Path: "a/b.json"}
		},
	}
	effects["sql"] = func(w event.Work) event.Effect {
		return sqlOf(w.Key.String()+"/r", field("id", "ann"), insertAccount)
	}
	own := ownFolder(t, ownTables)
	all := []string{"forward", "record", "grant", "state", "email", "run", "file", "sql"}
	sets := map[string][]string{"all": all}
	for kind := range effects {
		sets[kind] = []string{kind}
	}
	for name, kinds := range sets {
		sc := newScene(t)
		must(t, sc.bring(own))
		must(t, sc.run("first", grantOf("grant/0", 50)).Err)
		w := sc.claimed("a")
		var list []event.Effect
		for _, kind := range kinds {
			list = append(list, effects[kind](w))
		}
		sc.decides(sc.finish(done(w, list...)), event.Applied)
		before := sc.effects()
		sc.later(time.Hour)
		sc.decides(sc.again("a", list...), event.AlreadyApplied)
		if after := sc.effects(); after != before {
			t.Errorf("%s: a second run changed\n%s\nto\n%s", name, before, after)
		}
		want(t, name+": incidents", sc.number(`SELECT count(*) FROM incident`), 0)
	}
}

// A record that is there has to say the same; whose rule it is does not matter.
func TestRecordIsCompared(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	must(t, sc.run("a", recordOf("k", "total", "10", "who", "ann")).Err)
	sameButRule := recordOf("k", "who", "ann", "total", "10")
	sameButRule.Rule = "another rule"
	sc.decides(sc.run("b", sameButRule), event.AlreadyApplied)
	sc.dies("c", sc.run("c", recordOf("k", "total", "99", "who", "ann")), event.ErrMismatch, `total = "10"`, `total = "99"`)
	sc.dies("d", sc.run("d", recordOf("k", "total", "10")), event.ErrMismatch, `who = "ann"`, "no who")
	sc.dies("e", sc.run("e", recordOf("k", "total", "10", "who", "ann", "zip", "1")), event.ErrMismatch, `zip = "1"`, "no zip")
	alert := recordOf("k", "total", "99")
	alert.Of = "alert"
	sc.decides(sc.run("f", alert), event.Applied)
	sc.dies("g", sc.run("g", event.Record{Key: "k", Rule: "r"}), event.ErrRefused)
	want(t, "records", sc.number(`SELECT count(*) FROM record`), 2)
}

// A mail has its recipient for identity: another text is the same mail, another
// recipient another one. It waits until mail has a route.
func TestMailIsOneForARecipient(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	must(t, sc.run("a", mailOf("k", "ann@example.com"), mailOf("k", "bob@example.com")).Err)
	other := mailOf("k", "ann@example.com")
	other.Text = "Another text."
	sc.decides(sc.run("b", other), event.AlreadyApplied)
	want(t, "mails", sc.number(`SELECT count(*) FROM delivery WHERE destination = 'mail'`), 2)
	waiting, err := sc.WaitingDestinations(context.Background())
	must(t, err)
	want(t, "waiting", fmt.Sprint(waiting), "[mail]")
	_, shipments := sc.ship(nil, event.ShipmentClaim{Destination: event.Mail, Max: 9})
	want(t, "shipments", len(shipments), 2)
	want(t, "recipient", shipments[0].Target, "ann@example.com")
	want(t, "message", shipments[0].Message, `{"subject":"100 credits added","text":"Thank you."}`)
	sc.dies("c", sc.run("c", mailOf("k", "")), event.ErrRefused)
}

// An alert about a dead letter says what to do, and quotes nothing of what an
// event carried.
func TestIncidentQuotesNoValue(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	must(t, sc.run("a", recordOf("k", "secret", "canary-1")).Err)
	sc.dies("b", sc.run("b", recordOf("k", "secret", "canary-2")), event.ErrMismatch, "canary-1", "canary-2")
	i := sc.open1(event.CauseDeadEvent, "r")
	if strings.Contains(i.Detail, "canary") || !strings.Contains(i.Detail, "gen//b") || !strings.Contains(i.Detail, "replay") {
		t.Errorf("the incident says %q", i.Detail)
	}
}
