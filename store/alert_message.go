package store

import (
	"context"
	"fmt"
	"time"

	"creel/event"
)

// fillAlert makes a shipment of an alert: its text says what is known when it
// goes out, so that what grew since it was written is told at once. A recipient
// that the configuration knows no more gets what was written.
func fillAlert(t *tx, now int64, s *event.Shipment) error {
	id, moment := alertOf(s.Key)
	s.Type = "incident." + string(moment)
	incident, err := standingIncident(t, id)
	if err != nil {
		return err
	}
	if teller := t.teller(); teller != nil {
		if incident.Waiting, err = waitingFor(t, &incident.Incident); err != nil {
			return err
		}
		for _, a := range teller(incident.OpenIncident, moment) {
			if a.Destination == s.Destination && a.Target == s.Target {
				s.Message = a.Message
			}
		}
		s.CreatedAt = time.UnixMilli(now).UTC() // of what it says
		if _, err := t.exec(sqlSetMessage, s.Message, s.ID); err != nil {
			return fmt.Errorf("store the text of alert %d: %w", s.ID, err)
		}
	}
	if s.Tries > 1 {
		s.Doubts, err = doubts(t, s.ID, s.Run)
	}
	return err
}

// waitingFor counts what waits for the destination that an incident is about.
func waitingFor(t *tx, i *event.Incident) (n int, err error) {
	if i.Cause.Family() != event.FamilyDestination {
		return 0, nil
	}
	err = t.query(sqlWaitingFor, []any{i.Subject, event.MaxWaiting}, func(r row) error {
		n = r.int(0)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("count what waits for %s: %w", i.Subject, err)
	}
	return n, nil
}

// standing is an incident with what tells of it.
type incidentRow struct {
	event.OpenIncident
	level, told int
}

const sqlIncident = `SELECT ` + incidentColumns + `, level, told_level FROM incident WHERE id = ?`

func standingIncident(t *tx, id int64) (s incidentRow, err error) {
	err = t.query(sqlIncident, []any{id}, func(r row) error {
		s = incidentRow{incidentOf(r), r.int(incidentCells), r.int(incidentCells + 1)}
		return nil
	})
	if err == nil && s.ID == 0 {
		err = event.ErrNotFound
	}
	if err != nil {
		return incidentRow{}, fmt.Errorf("read incident %d: %w", id, err)
	}
	return s, nil
}

const sqlDeadAlerts = `SELECT ` + deliveryColumns + `, '', '', '' FROM delivery INDEXED BY delivery_dead
	WHERE event IS NULL AND state = 'dead' ORDER BY id DESC LIMIT ?`

// DeadAlerts lists the alerts of open incidents that could not be sent, newest
// first, at most 500. Nobody is told of them in any other way.
func (r *Reader) DeadAlerts(ctx context.Context) ([]event.Delivery, error) {
	list, err := r.deliveries(ctx, sqlDeadAlerts, maxPage)
	if err != nil {
		return nil, fmt.Errorf("list dead alerts: %w", err)
	}
	return list, nil
}
