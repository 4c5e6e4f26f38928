package store

import (
	"fmt"

	"creel/event"
)

const (
	sqlBalance = `SELECT amount, last FROM balance WHERE holder = ? AND unit = ?`
	sqlEntry   = `INSERT INTO ledger (event, rule, key, long_key, holder, unit, amount, balance, reverses, previous, at)
		VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (key) DO NOTHING`
	sqlSetBalance = `INSERT INTO balance (holder, unit, amount, last, at) VALUES (?,?,?,?,?)
		ON CONFLICT (holder, unit) DO UPDATE SET amount = excluded.amount, last = excluded.last, at = excluded.at`
	sqlExistingEntry = `SELECT ledger.id, ledger.event, ledger.long_key, ledger.holder, ledger.unit, ledger.amount, ledger.reverses,
		event.source, event.account, event.id FROM ledger JOIN event ON event.seq = ledger.event WHERE ledger.key = ?`
	sqlReversalOf = `SELECT ledger.key, ledger.long_key, event.source, event.account, event.id
		FROM ledger JOIN event ON event.seq = ledger.event WHERE ledger.reverses = ?`
)

// entry is a row of the ledger, as it is to be or as it is.
type entry struct {
	earlierEffect
	id           int64
	holder, unit string
	amount       int64
	reverses     int64 // 0 for a grant
}

func (n *entry) String() string {
	if n.amount < 0 {
		return fmt.Sprintf("%d %s taken back from %s", -n.amount, n.unit, n.holder)
	}
	return fmt.Sprintf("%d %s to %s", n.amount, n.unit, n.holder)
}

// grant writes a row of the ledger and changes the balance with it.
func (a *application) grant(t *tx, e event.Grant) (answer, error) {
	key, long, err := keyFor(t, ledgerKeys, a.finish.Seq, a.of, e.Key)
	if err != nil {
		return answer{}, err
	}
	n, err := a.intended(t, e, key)
	if err != nil {
		return answer{}, err
	}
	return a.book(t, e, key, long, &n)
}

// intended is the entry that an effect asks for.
func (a *application) intended(t reading, e event.Grant, key string) (entry, error) {
	switch {
	case e.Reverse != "":
		return a.reversing(t, e, key)
	case e.To == "" || len(e.To) > event.MaxKey || e.Unit == "" || len(e.Unit) > event.MaxKey:
		return entry{}, denied(e, "a grant needs a holder and a unit of 1 to %d bytes", event.MaxKey)
	case e.Amount <= 0 || e.Amount > event.MaxAmount:
		return entry{}, denied(e, "an amount is from 1 to %d, this one is %d; to take something back, reverse the grant", event.MaxAmount, e.Amount)
	}
	return entry{holder: e.To, unit: e.Unit, amount: e.Amount}, nil
}

// book writes one row, unless its key is there. A floor holds for what takes
// away.
func (a *application) book(t *tx, e event.Grant, key, long string, n *entry) (answer, error) {
	after, last, no, err := a.weigh(t, e, n)
	if err != nil {
		return answer{}, err
	}
	if no != nil {
		if have, err := existingEntry(t, key); err != nil || have.id != 0 {
			return a.booked(e, key, long, &have, n, err)
		}
		return answer{}, no
	}
	id, inserted, err := t.insert(sqlEntry, a.finish.Seq, e.Rule, key, long, n.holder, n.unit, n.amount, after,
		orNull(n.reverses), orNull(last), a.at)
	if err != nil {
		return answer{}, fmt.Errorf("insert into the ledger: %w", err)
	}
	if inserted == 0 {
		have, err := existingEntry(t, key)
		return a.booked(e, key, long, &have, n, err)
	}
	if _, err := t.exec(sqlSetBalance, n.holder, n.unit, after, id, a.at); err != nil {
		return answer{}, fmt.Errorf("change balance: %w", err)
	}
	return answer{}, nil
}

// weigh tells what a balance would come to, its newest row, and what there is
// to object. No sum overflows: both figures are within event.MaxAmount.
func (a *application) weigh(t reading, e event.Grant, n *entry) (after, last int64, no *objection, err error) {
	var balance int64
	err = t.query(sqlBalance, []any{n.holder, n.unit}, func(r row) error {
		balance, last = r.int64(0), r.int64(1)
		return nil
	})
	if err != nil {
		return 0, 0, nil, fmt.Errorf("read balance: %w", err)
	}
	after = balance + n.amount
	switch {
	case after > event.MaxAmount || after < -event.MaxAmount:
		no = denied(e, "the balance of %s is %d %s and would come to %d, the limit is %d", n.holder, balance, n.unit, after, event.MaxAmount)
	case n.amount < 0 && e.Floor != nil && after < *e.Floor:
		no = denied(e, "the balance of %s would fall to %d %s, the floor is %d", n.holder, after, n.unit, *e.Floor)
	}
	return after, last, no, nil
}

func orNull(id int64) any {
	if id == 0 {
		return nil
	}
	return id
}

func existingEntry(t reading, key string) (n entry, err error) {
	err = t.query(sqlExistingEntry, []any{key}, func(r row) error {
		n = entry{
			id: r.int64(0), earlierEffect: earlierEffect{seq: r.int64(1), long: r.text(2), of: keyOf(r, 7)},
			holder: r.text(3), unit: r.text(4), amount: r.int64(5), reverses: r.int64(6),
		}
		return nil
	})
	if err != nil {
		return n, fmt.Errorf("read the ledger: %w", err)
	}
	return n, nil
}

// booked compares the row that has the key with the one that was asked for.
func (a *application) booked(e event.Grant, key, long string, have, want *entry, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	if err := have.sameKey(e, key, long); err != nil {
		return answer{}, err
	}
	if have.holder != want.holder || have.unit != want.unit || have.amount != want.amount || have.reverses != want.reverses {
		return answer{}, mismatch(e, have.String(), want.String())
	}
	return have.answer(a.finish.Seq, have.String()+" is in the ledger"), nil
}

// reversing is the entry that takes a grant back, in whole or in part, once.
func (a *application) reversing(t reading, e event.Grant, key string) (entry, error) {
	if e.Amount < 0 {
		return entry{}, denied(e, "a reversal of %d: what it takes back is a positive amount", e.Amount)
	}
	granted, err := a.granted(t, e)
	if err != nil {
		return entry{}, err
	}
	want := entry{holder: granted.holder, unit: granted.unit, amount: -granted.amount, reverses: granted.id}
	if e.Amount != 0 {
		want.amount = -e.Amount
	}
	if e.To != "" && e.To != want.holder || e.Unit != "" && e.Unit != want.unit {
		asked := want
		asked.holder, asked.unit = orElse(e.To, want.holder), orElse(e.Unit, want.unit)
		return entry{}, mismatch(e, granted.String(), asked.String())
	}
	if -want.amount > granted.amount {
		return entry{}, denied(e, "%s was granted, %d %s can not be taken back", granted.String(), -want.amount, want.unit)
	}
	other, err := a.reversal(t, granted.id)
	if err != nil {
		return entry{}, err
	}
	if other.stored != "" && other.stored != key {
		return entry{}, denied(e, "%s was taken back already by %s", granted.String(), other.text())
	}
	return want, nil
}

// granted finds the grant that a reversal names.
func (a *application) granted(t reading, e event.Grant) (entry, error) {
	forms, err := formsOf(t, e.Reverse)
	if err != nil {
		return entry{}, err
	}
	for _, key := range forms {
		n, err := existingEntry(t, key)
		if err != nil {
			return entry{}, err
		}
		if n.id == 0 {
			continue
		}
		if n.amount < 0 {
			return entry{}, denied(e, "%s is a reversal itself: %s", quoted(e.Reverse), n.String())
		}
		return n, nil
	}
	return entry{}, &objection{e.Rule, event.ErrNotYet, fmt.Sprintf("no grant has the key %s", quoted(e.Reverse))}
}

// namedKey is a stored key with what it takes to show it.
type namedKey struct {
	stored, long string
	of           event.Key
}

func (k *namedKey) text() string {
	key, long := showKey(k.stored, k.long, k.of)
	return quoted(orElse(long, key))
}

// reversal finds the key of the row that takes a grant back.
func (a *application) reversal(t reading, id int64) (k namedKey, err error) {
	err = t.query(sqlReversalOf, []any{id}, func(r row) error {
		k = namedKey{r.text(0), r.text(1), keyOf(r, 2)}
		return nil
	})
	if err != nil {
		return k, fmt.Errorf("look for a reversal: %w", err)
	}
	return k, nil
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
