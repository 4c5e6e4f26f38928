package store

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"creel/event"
)

const (
	// alertMark begins the key of every alert. A rule can not make such a key:
	// one that begins with "=" is stored with another, and the short form of an
	// event's own goes on with a number.
	alertMark = shortMark + "incident/"
	// returnWithin is how long an incident may have been over to be the same one
	// when it comes back, and how long the notice of its end waits for that.
	returnWithin = 2 * time.Minute

	overUnsent = "it was over before it was sent"

	// The unique key makes it one alert for each moment and recipient. One that
	// was withdrawn may come again.
	sqlInsertAlert = `INSERT INTO delivery (event, incident, rule, key, destination, target, message, state, created_at, next_at)
		VALUES (NULL, ?1, '', ?2, ?3, ?4, ?5, 'ready', ?6, ?7)
		ON CONFLICT (key, destination, target) DO UPDATE SET state = 'ready', message = excluded.message,
			created_at = excluded.created_at, next_at = excluded.next_at, finished_at = NULL, error = '', run = run + 1, attempts = 0, tries = 0
		WHERE state = 'discarded'`
	// Whether a recipient may have had it: its answer may have been lost.
	sqlAlertsOf = `SELECT id, destination, target, state, EXISTS (SELECT 1 FROM attempt WHERE delivery = delivery.id AND outcome = 'unknown')
		FROM delivery WHERE key = ?`
	sqlWithdrawAlert = `UPDATE delivery SET state = 'discarded', next_at = NULL, finished_at = ?1, error = ?2
		WHERE id = ?3 AND (state = 'ready' OR state = 'dead')`
	// Those that were never begun.
	sqlWithdrawUnsent = `UPDATE delivery SET state = 'discarded', next_at = NULL, finished_at = ?1, error = ?2
		WHERE key = ?3 AND state = 'ready' AND tries = 0`
	sqlReviveAlerts = `UPDATE delivery SET state = 'ready', next_at = ?1, finished_at = NULL, error = '',
		run = run + 1, attempts = 0, tries = 0 WHERE key = ?2 AND state = 'discarded'`
	sqlAlerted    = `UPDATE incident SET alerted_at = ifnull(alerted_at, ?1), told_level = level WHERE id = ?2`
	sqlNotified   = `UPDATE incident SET notified_at = ?1 WHERE id = ?2 AND notified_at IS NULL`
	sqlSetMessage = `UPDATE delivery SET message = ?1 WHERE id = ?2 AND message <> ?1`

	// What is being sent to one that is down is a probe, and waits no less.
	sqlWaitingFor = `SELECT min(?2, (SELECT count(*) FROM (SELECT 1 FROM delivery INDEXED BY delivery_due
		WHERE state = 'ready' AND destination = ?1 LIMIT ?2)) + (SELECT count(*) FROM delivery INDEXED BY delivery_open
		WHERE state = 'sending' AND state <> 'sent' AND destination = ?1))`

	// An incident that has ended a short while ago, and whose end was told to
	// nobody yet.
	sqlReturns = `SELECT id FROM incident INDEXED BY incident_over WHERE family = ?1 AND subject = ?2 AND resolved_at > ?3
		AND alerted_at IS NOT NULL AND acknowledged_at IS NULL
		AND NOT EXISTS (SELECT 1 FROM delivery WHERE key = '` + alertMark + `' || incident.id || '/resolved'
			AND (delivery.state <> 'ready' OR delivery.tries > 0))
		ORDER BY resolved_at DESC LIMIT 1`
	// A lane is parked by what is dead or in doubt: who was told of that knows.
	sqlSaidElse = `SELECT count(*) FROM incident INDEXED BY incident_open
		WHERE family IN ('dead_event', 'dead_delivery', 'destination') AND subject = ?1 AND resolved_at IS NULL`
	// Who was told of dead letters a short while ago knows that much failed.
	sqlSaidDead = `SELECT (SELECT count(*) FROM incident INDEXED BY incident_open
			WHERE family = 'dead_delivery' AND subject = ?1 AND resolved_at IS NULL AND last_at > ?2)
		+ (SELECT count(*) FROM incident INDEXED BY incident_over
			WHERE family = 'dead_delivery' AND subject = ?1 AND resolved_at > ?2 AND last_at > ?2)`
	sqlForgetIncident = `DELETE FROM incident WHERE id = ?`
	sqlReopenIncident = `UPDATE incident SET resolved_at = NULL, count = count + max(?2, 1), last_at = ?1, dead = dead + ?2,
		cause = ?3, level = ?4, detail = ?5, death = ?5, down_since = ?7, back_at = NULL WHERE id = ?6`
)

// SetTeller says who is told of incidents from now on; nil is nobody.
func (s *Store) SetTeller(tell event.Teller) {
	if tell == nil {
		s.desk.teller.Store(nil)
		return
	}
	s.desk.teller.Store(&tell)
}

// teller is who is told at the moment; nil where there is nobody, or where the
// database is not that of a server.
func (t *tx) teller() event.Teller {
	if t.desk == nil {
		return nil
	}
	if tell := t.desk.teller.Load(); tell != nil {
		return *tell
	}
	return nil
}

func alertKey(incident int64, m event.Moment) string {
	return alertMark + strconv.FormatInt(incident, 10) + "/" + string(m)
}

// alertOf reads an alert's key; 0 is a key of anything else.
func alertOf(key string) (incident int64, m event.Moment) {
	text, is := strings.CutPrefix(key, alertMark)
	number, moment, parts := strings.Cut(text, "/")
	incident, err := strconv.ParseInt(number, 10, 64)
	if !is || !parts || err != nil {
		return 0, ""
	}
	return incident, event.Moment(moment)
}

// tell writes the alert of an incident that has begun or become worse, where
// there is anybody to tell. It goes out like any delivery. A crash before the
// commit leaves neither the incident nor its alert, a crash after it both.
func tell(t *tx, now, id int64) error {
	teller := t.teller()
	if teller == nil {
		return nil
	}
	s, err := standingIncident(t, id)
	if err != nil || s.Over() || !s.AcknowledgedAt.IsZero() {
		return err
	}
	if said, err := saidElse(t, now, &s.Incident); err != nil || said {
		return err
	}
	moment, known := event.MomentOpened, map[recipient]bool{}
	if !s.AlertedAt.IsZero() {
		if s.level <= s.told || s.level < event.CauseDestinationDisabled.Level() {
			return nil
		}
		moment = event.MomentEscalated
		if known, err = unsent(t, alertKey(id, event.MomentOpened)); err != nil {
			return err // who has not heard of it yet hears of it as it is now
		}
	}
	written := false
	for _, a := range teller(s.OpenIncident, moment) {
		written = true
		if known[recipient{a.Destination, a.Target}] {
			continue
		}
		if err := insertAlert(t, now, id, moment, a, a.Wait); err != nil {
			return err
		}
	}
	if !written {
		return nil
	}
	if _, err := t.exec(sqlAlerted, now, id); err != nil {
		return fmt.Errorf("note alert of incident %d: %w", id, err)
	}
	return nil
}

// saidElse tells whether what an incident follows from has one that says enough,
// so that it needs no alert of its own.
func saidElse(t *tx, now int64, i *event.Incident) (said bool, err error) {
	query, args := "", []any{i.Subject}
	switch i.Cause {
	case event.CauseLaneParked:
		query = sqlSaidElse
	case event.CauseDestinationFailing:
		query, args = sqlSaidDead, append(args, now-time.Hour.Milliseconds())
	default:
		return false, nil
	}
	err = t.query(query, args, func(r row) error {
		said = r.int(0) > 0
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("look for what an incident follows from: %w", err)
	}
	return said, nil
}

// recipient is who gets an alert.
type recipient struct{ destination, target string }

func insertAlert(t *tx, now, id int64, m event.Moment, a event.Telling, wait time.Duration) error {
	_, err := t.exec(sqlInsertAlert, id, alertKey(id, m), a.Destination, a.Target, a.Message, now, now+wait.Milliseconds())
	if err != nil {
		return fmt.Errorf("insert alert of incident %d: %w", id, err)
	}
	t.desk.alerted.Store(true)
	return nil
}

// sentAlert is an alert as it stands.
type sentAlert struct {
	id    int64
	to    recipient
	state event.DeliveryState
	doubt bool // an answer was lost: it may have arrived
}

func (a *sentAlert) mayBeKnown() bool {
	return a.state == event.DeliverySent || a.state == event.DeliveryInDoubt || a.doubt
}

func alertsOf(t *tx, key string) (list []sentAlert, err error) {
	err = t.query(sqlAlertsOf, []any{key}, func(r row) error {
		list = append(list, sentAlert{r.int64(0), recipient{r.text(1), r.text(2)}, event.DeliveryState(r.text(3)), r.bool(4)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	return list, nil
}

func unsent(t *tx, key string) (map[recipient]bool, error) {
	list, err := alertsOf(t, key)
	waiting := map[recipient]bool{}
	for i := range list {
		waiting[list[i].to] = list[i].state == event.DeliveryReady && !list[i].doubt
	}
	return waiting, err
}

// over follows the end of an incident. Whoever was told that it began is told
// that it is over; an alert that nobody has had is withdrawn, and nothing is
// said of its end. One that is in the air decides when it lands: see landed.
func over(t *tx, now, id int64) error {
	if t.desk == nil {
		return nil
	}
	for _, m := range []event.Moment{event.MomentOpened, event.MomentEscalated} {
		list, err := alertsOf(t, alertKey(id, m))
		if err != nil {
			return err
		}
		for i := range list {
			if err := endAlert(t, now, id, &list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func endAlert(t *tx, now, id int64, a *sentAlert) error {
	if a.state == event.DeliveryReady || a.state == event.DeliveryDead {
		if _, err := t.exec(sqlWithdrawAlert, now, overUnsent, a.id); err != nil {
			return fmt.Errorf("withdraw alert %d: %w", a.id, err)
		}
	}
	if a.state == event.DeliverySending || !a.mayBeKnown() {
		return nil
	}
	return tellOver(t, now, id, a.to)
}

// tellOver writes the notice of the end for one recipient, unless the
// configuration knows him no more. It waits until the incident would be
// another one if it came back.
func tellOver(t *tx, now, id int64, to recipient) error {
	teller := t.teller()
	if teller == nil {
		return nil
	}
	s, err := standingIncident(t, id)
	if err != nil {
		return err
	}
	for _, a := range teller(s.OpenIncident, event.MomentResolved) {
		if to == (recipient{a.Destination, a.Target}) {
			wait := max(returnWithin-time.Duration(now-s.ResolvedAt.UnixMilli())*time.Millisecond, 0)
			return insertAlert(t, now, id, event.MomentResolved, a, wait)
		}
	}
	return nil
}

// landed follows the end of an attempt at an alert.
func landed(t *tx, now, delivery, incident int64) error {
	if incident == 0 {
		return nil
	}
	const sqlLanded = `SELECT key, destination, target, state, EXISTS (SELECT 1 FROM attempt WHERE delivery = delivery.id AND outcome = 'unknown')
		FROM delivery WHERE id = ?`
	var a sentAlert
	var moment event.Moment
	err := t.query(sqlLanded, []any{delivery}, func(r row) error {
		_, moment = alertOf(r.text(0))
		a = sentAlert{delivery, recipient{r.text(1), r.text(2)}, event.DeliveryState(r.text(3)), r.bool(4)}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read alert %d: %w", delivery, err)
	}
	if a.state == event.DeliverySent && moment == event.MomentOpened {
		if _, err := t.exec(sqlNotified, now, incident); err != nil {
			return fmt.Errorf("note that incident %d is known: %w", incident, err)
		}
	}
	if moment == event.MomentResolved {
		return nil
	}
	s, err := standingIncident(t, incident)
	if err != nil || !s.Over() {
		return err
	}
	return endAlert(t, now, incident, &a)
}

// returned makes an incident that has just been opened the one that was over a
// moment ago, where there is one that was told: what comes and goes has one
// alert.
func returned(t *tx, now, fresh int64, i event.Incident, dead int) (id int64, err error) {
	if t.teller() == nil {
		return fresh, nil
	}
	err = t.query(sqlReturns, []any{i.Cause.Family(), i.Subject, now - returnWithin.Milliseconds()}, func(r row) error {
		id = r.int64(0)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("look for an incident that returns: %w", err)
	}
	if id == 0 {
		return fresh, nil
	}
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{sqlForgetIncident, []any{fresh}},
		{sqlReopenIncident, []any{now, dead, string(i.Cause), i.Cause.Level(), i.Detail, id, ms(i.DownFrom)}},
		{sqlWithdrawUnsent, []any{now, "it came back", alertKey(id, event.MomentResolved)}},
		{sqlReviveAlerts, []any{now, alertKey(id, event.MomentOpened)}},
	} {
		if _, err := t.exec(step.sql, step.args...); err != nil {
			return 0, fmt.Errorf("reopen incident %d: %w", id, err)
		}
	}
	t.desk.alerted.Store(true)
	return id, nil
}
