package store

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"creel/event"
)

// A refund takes its grant back once, at most its amount, under its own key; a
// balance that would fall under its floor is refused with both figures.
func TestGateA14ARefundReversesItsGrantOnce(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	balance := func(amount int) {
		t.Helper()
		want(t, "balance", sc.number(`SELECT amount FROM balance WHERE holder = 'acct_1'`), amount)
	}
	must(t, sc.run("paid", grantOf("in_1", 100)).Err)
	must(t, sc.run("other", grantOf("in_2", 10)).Err)
	balance(110)
	sc.dies("more", sc.run("more", reversalOf("re_0", "in_1", 101)), event.ErrRefused, "100 credits", "101 credits")
	sc.decides(sc.run("refund", reversalOf("re_1", "in_1", 60)), event.Applied)
	balance(50)
	sc.decides(sc.run("refund under another id", reversalOf("re_1", "in_1", 60)), event.AlreadyApplied, "60 credits taken back from acct_1")
	sc.dies("another amount", sc.run("another amount", reversalOf("re_1", "in_1", 61)), event.ErrMismatch, "60 credits", "61 credits")
	sc.dies("twice", sc.run("twice", reversalOf("re_2", "in_1", 40)), event.ErrRefused, "100 credits", `"re_1"`)
	sc.dies("of a reversal", sc.run("of a reversal", reversalOf("re_3", "re_1", 0)), event.ErrRefused, `"re_1" is a reversal`)
	floor := int64(45)
	overdraft := reversalOf("re_4", "in_2", 0)
	overdraft.Floor = &floor
	sc.dies("overdraft", sc.run("overdraft", overdraft), event.ErrRefused, "fall to 40 credits", "floor is 45")
	balance(50)
	floor = 40
	sc.decides(sc.again("overdraft", overdraft), event.Applied)
	balance(40)
	floor = 1000
	sc.decides(sc.again("overdraft", overdraft), event.AlreadyApplied) // what is done is not judged again
	balance(40)
	want(t, "ledger rows", sc.number(`SELECT count(*) FROM ledger`), 4)
}

// A reversal names its grant by any form of its key, and may say whose it is.
func TestReversalFindsItsGrant(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	paid := sc.claimed("paid")
	text := paid.Key.String() + "/r" // stored short
	w := sc.claimed("early")
	early := sc.finish(done(w, recordOf("rec"), reversalOf("re_1", text, 0)))
	sc.undecided(w, early, event.ErrNotYet)
	want(t, "records of a finish that waits", sc.number(`SELECT count(*) FROM record`), 0)
	must(t, sc.finish(done(paid, grantOf(text, 100))).Err)
	wrong := reversalOf("re_1", text, 0)
	wrong.To = "acct_2"
	got := sc.finish(done(w, wrong))
	sc.dies("early", got, event.ErrMismatch, "100 credits to acct_1", "from acct_2")
	right := reversalOf("re_1", text, 0)
	right.To, right.Unit = "acct_1", "credits"
	sc.decides(sc.again("early", recordOf("rec"), right), event.Applied)
	sc.decides(sc.again("early", recordOf("rec"), reversalOf("re_1", text, 100)), event.AlreadyApplied)
	want(t, "balance", sc.number(`SELECT amount FROM balance`), 0)
	lone := sc.claimed("lone")
	sc.undecided(lone, sc.finish(done(lone, reversalOf("re_2", "in_9", 0))), event.ErrNotYet)
}

func TestGrantIsComparedAndBounded(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	must(t, sc.run("a", grantOf("g", 100)).Err)
	other := grantOf("g", 100)
	other.To = "acct_2"
	sc.dies("b", sc.run("b", other), event.ErrMismatch, "100 credits to acct_1", "100 credits to acct_2")
	sc.dies("c", sc.run("c", grantOf("g", 99)), event.ErrMismatch, "100 credits", "99 credits")
	sc.dies("d", sc.run("d", reversalOf("g", "g", 0)), event.ErrMismatch, "to acct_1", "from acct_1")
	for i, amount := range []int64{0, -5, event.MaxAmount + 1} {
		id := numbered("amount", i)
		sc.dies(id, sc.run(id, grantOf(id, amount)), event.ErrRefused, fmt.Sprint(amount))
	}
	sc.dies("e", sc.run("e", grantOf("big", event.MaxAmount)), event.ErrRefused, "is 100 credits", fmt.Sprint(event.MaxAmount))
	want(t, "ledger rows", sc.number(`SELECT count(*) FROM ledger`), 1)
	must(t, sc.run("f", event.Grant{Key: "whole", Rule: "r", To: "rich", Unit: "credits", Amount: event.MaxAmount}).Err)
	sc.decides(sc.run("h", event.Grant{Key: "whole", Rule: "r", To: "rich", Unit: "credits", Amount: event.MaxAmount}), event.AlreadyApplied)
}

// The ledger only grows, whoever writes to the file.
func TestLedgerAndTransitionsOnlyGrow(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	must(t, sc.run("a", grantOf("g", 100), stateOf("paid", "1")).Err)
	for _, query := range []string{`UPDATE ledger SET amount = 1`, `DELETE FROM ledger`, `UPDATE transition SET state = 'x'`, `DELETE FROM transition`} {
		err := sc.write(context.Background(), work, 1, func(t *tx) error {
			_, err := t.exec(query)
			return err
		})
		if err == nil {
			t.Errorf("%s was taken", query)
		}
	}
}

// Whatever is granted, taken back, repeated, refused, replayed and interrupted:
// each balance is the sum of its ledger rows, each row says the balance after
// it, and the model has the same.
func TestLedgerIsTheSumOfBalances(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	n, boots := 0, 1
	type operation struct {
		holder   string
		amount   int64
		reversed bool
	}
	granted := map[string]*operation{}
	balances := map[string]int64{}
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.IntRange(1, 12).Draw(rt, "steps")
		for range steps {
			n++
			id := fmt.Sprintf("e%d", n)
			k := fmt.Sprintf("g%d", rapid.IntRange(0, 40).Draw(rt, "key"))
			var e event.Grant
			expected := error(nil)
			if rapid.Bool().Draw(rt, "reverse") {
				e = reversalOf("re-"+k, k, rapid.Int64Range(0, 50).Draw(rt, "back"))
				if rapid.Bool().Draw(rt, "floored") {
					floor := rapid.Int64Range(0, 60).Draw(rt, "floor")
					e.Floor = &floor
				}
			} else {
				e = grantOf(k, rapid.Int64Range(1, 40).Draw(rt, "amount"))
				e.To = rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "to")
			}
			op := granted[k]
			switch {
			case e.Reverse == "" && op == nil:
				granted[k] = &operation{holder: e.To, amount: e.Amount}
				balances[e.To] += e.Amount
			case e.Reverse == "" && (op.holder != e.To || op.amount != e.Amount):
				expected = event.ErrMismatch
			case e.Reverse == "":
			case op == nil:
				expected = event.ErrNotYet
			case e.Amount > op.amount:
				expected = event.ErrRefused
			case op.reversed:
				expected = errors.ErrUnsupported // applied before, or another amount: see below
			default:
				back := e.Amount
				if back == 0 {
					back = op.amount
				}
				if e.Floor != nil && balances[op.holder]-back < *e.Floor {
					expected = event.ErrRefused
					break
				}
				op.reversed = true
				balances[op.holder] -= back
			}
			w := sc.claimed(id)
			if rapid.IntRange(0, 9).Draw(rt, "crash") == 0 {
				boots++
				sc.crash(fmt.Sprintf("boot%d", boots))
				_, err := sc.Recover(context.Background(), sc.now, nil)
				must(t, err)
				w = sc.claim(1)[0]
			}
			got := sc.finish(done(w, e))
			switch {
			case errors.Is(expected, errors.ErrUnsupported):
				if got.Err != nil && !errors.Is(got.Err, event.ErrMismatch) {
					rt.Fatalf("%+v: %v", e, got.Err)
				}
			case !errors.Is(got.Err, expected) || expected == nil && got.Err != nil:
				rt.Fatalf("%+v: %v, want %v", e, got.Err, expected)
			}
			if errors.Is(got.Err, event.ErrNotYet) {
				must(t, sc.finish(dead(w)).Err)
			}
		}
		for holder, amount := range balances {
			if stored := sc.number(`SELECT ifnull(sum(amount), 0) FROM balance WHERE holder = ?`, holder); int64(stored) != amount {
				rt.Fatalf("balance of %s: %d, want %d", holder, stored, amount)
			}
		}
		if n := sc.number(`SELECT count(*) FROM balance AS b WHERE amount <> (SELECT sum(amount) FROM ledger AS l
			WHERE l.holder = b.holder AND l.unit = b.unit) OR last <> (SELECT max(id) FROM ledger AS l WHERE l.holder = b.holder AND l.unit = b.unit)`); n != 0 {
			rt.Fatalf("%d balances are not the sum of their rows", n)
		}
		if n := sc.number(`SELECT count(*) FROM ledger AS l WHERE balance <> amount + ifnull((SELECT balance FROM ledger AS p WHERE p.id = l.previous), 0)
			OR previous IS NOT (SELECT max(id) FROM ledger AS p WHERE p.id < l.id AND p.holder = l.holder AND p.unit = l.unit)`); n != 0 {
			rt.Fatalf("%d rows do not follow from the one before them", n)
		}
	})
}
