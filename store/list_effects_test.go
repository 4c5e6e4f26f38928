package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"creel/event"
)

// Everything that effects stored can be listed, page by page, and shows its
// keys as rules made them.
func TestEffectsAreListed(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ctx := context.Background()
	for i := range 7 {
		w := sc.claimed(numbered("e", i))
		k := w.Key.String() + "/r"
		other := event.Grant{Key: k + "/other", Rule: "r", To: "acct_" + fmt.Sprint(i), Unit: "points", Amount: 3}
		must(t, sc.finish(done(w, recordOf(k, "n", fmt.Sprint(i)), grantOf(k, int64(i+1)), other, stateOf(fmt.Sprint("s", i), fmt.Sprint(i)))).Err)
	}
	must(t, sc.run("back", reversalOf("back/1", "gen//e-00006/r", 0)).Err)

	records, err := sc.Records(ctx, RecordFilter{Kind: "order"}, event.Page{Limit: 3})
	must(t, err)
	want(t, "records", len(records), 3)
	want(t, "key", records[0].Key, "gen//e-00006/r")
	want(t, "field", records[0].Fields[0], event.Field{Name: "n", Value: "6"})
	records, err = sc.Records(ctx, RecordFilter{}, event.Page{Limit: 30, Before: records[2].ID})
	must(t, err)
	want(t, "the records behind them", len(records), 4)
	records, err = sc.Records(ctx, RecordFilter{Key: "gen//e-00002/r", Kind: "order"}, event.Page{})
	must(t, err)
	want(t, "records of a key", len(records), 1)
	records, err = sc.Records(ctx, RecordFilter{Kind: "alert"}, event.Page{})
	must(t, err)
	want(t, "records of another kind", len(records), 0)

	var amounts []int64
	page := event.Page{Limit: 3}
	for {
		entries, err := sc.Ledger(ctx, "acct_1", "credits", page)
		must(t, err)
		for _, n := range entries {
			amounts = append(amounts, n.Amount)
		}
		if len(entries) < page.Limit {
			break
		}
		page.Before = entries[len(entries)-1].ID
	}
	want(t, "entries", fmt.Sprint(amounts), "[-7 7 6 5 4 3 2 1]")
	all, err := sc.Ledger(ctx, "", "", event.Page{})
	must(t, err)
	want(t, "all entries", len(all), 15)
	want(t, "reversal", all[0].Key+" "+fmt.Sprint(all[0].Reverses, all[0].Balance), fmt.Sprint("back/1 ", all[2].ID, 21))
	none, err := sc.Ledger(ctx, "nobody", "credits", event.Page{})
	must(t, err)
	want(t, "entries of nobody", len(none), 0)

	balances, err := sc.Balances(ctx, "", event.Balance{}, 3)
	must(t, err)
	want(t, "balances", len(balances), 3)
	rest, err := sc.Balances(ctx, "", balances[2], 30)
	must(t, err)
	want(t, "the balances behind them", len(rest), 5)
	own, err := sc.Balances(ctx, "acct_1", event.Balance{}, 0)
	must(t, err)
	want(t, "balances of one", fmt.Sprint(own[0].Unit, own[0].Amount, own[1].Unit, own[1].Amount), "credits21points3")

	state, err := sc.ObjectState(ctx, "order/1")
	must(t, err)
	want(t, "state", state.State+" "+state.Version+" "+state.Event.ID, "s6 6 e-00006")
	if _, err := sc.ObjectState(ctx, "order/2"); !errors.Is(err, event.ErrNotFound) {
		t.Errorf("no object: %v", err)
	}
	history, err := sc.ObjectHistory(ctx, "order/1", event.Page{Limit: 4})
	must(t, err)
	want(t, "history", len(history), 4)
	want(t, "newest", history[0].From+" → "+history[0].State, "s5 → s6")
	history, err = sc.ObjectHistory(ctx, "order/1", event.Page{Before: history[3].ID})
	must(t, err)
	want(t, "history behind it", len(history), 3)
	want(t, "first", history[2].From+" → "+history[2].State, " → s0")

	d := sc.detail("e-00003")
	want(t, "effects of an event", fmt.Sprint(len(d.Records), len(d.Entries), len(d.Transitions)), "1 2 1")
}

// What apps read: the columns of the views are a promise, and so is what they
// say.
func TestViews(t *testing.T) {
	t.Parallel()
	sc := newOwnScene(t)
	id := "a/b%c"
	w := sc.claimed(id)
	long := strings.Repeat("k", 300)
	must(t, sc.finish(done(w, recordOf(w.Key.String()+"/r", "a", "1"), grantOf("=g", 100), stateOf("paid", "7"),
		forward(w, "app"), mailOf(long, "ann@example.com"), sqlOf("s", field("id", "ann"), insertAccount))).Err)
	for view, wanted := range map[string]struct{ columns, row string }{
		"v_event": {"seq key source account id type object version state error run attempts duplicates conflicts origin received_at finished_at",
			"1 gen//a%2Fb%25c gen  a/b%c invoice.paid   done  1 1 0 0 webhook 1772366400000 1772366400000"},
		"v_record": {"id event_seq event rule kind key fields at",
			`1 1 gen//a%2Fb%25c r order gen//a%2Fb%25c/r {"a":"1"} 1772366400000`},
		"v_operation": {"id event_seq event rule key params at", `1 1 gen//a%2Fb%25c r s {"id":"ann"} 1772366400000`},
		"v_balance":   {"holder unit amount at", "acct_1 credits 100 1772366400000"},
		"v_ledger": {"id event_seq event rule key holder unit amount balance reverses at",
			"1 1 gen//a%2Fb%25c r =g acct_1 credits 100 100 <nil> 1772366400000"},
		"v_state": {"object state fields version event_seq event at", "order/1 paid {} 7 1 gen//a%2Fb%25c 1772366400000"},
		"v_delivery": {"id event_seq event rule key destination target state run attempts status error created_at next_at finished_at",
			"1 1 gen//a%2Fb%25c r gen//a%2Fb%25c/r app  ready 1 0 0  1772366400000 1772366400000 <nil>"},
	} {
		got := sc.rows("SELECT * FROM " + view + " LIMIT 1")
		want(t, view, strings.TrimSuffix(got, "\n"), "["+wanted.row+"]")
		columns := sc.rows("SELECT group_concat(name, ' ') FROM pragma_table_info('" + view + "')")
		want(t, "columns of "+view, strings.TrimSuffix(columns, "\n"), "["+wanted.columns+"]")
	}
	want(t, "long key", sc.rows("SELECT key FROM v_delivery WHERE target <> ''"), "["+long+"]\n")
}
