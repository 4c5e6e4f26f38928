package cli

import (
	"bytes"
	"testing"
	"time"

	"creel/admin"
	"creel/app"
	"creel/event"
)

// What health prints as JSON is a contract: fields are only ever added.
func TestHealthContract(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 7, 22, 0, 0, 0, time.UTC)
	status := app.Status{
		Destinations: []event.DestinationHealth{{Name: "app", State: event.DestinationHeld, Since: at, Reason: "connection refused"}, {Name: "ops", State: event.DestinationEnabled}},
		Stranded:     []string{"old"}, InDoubt: 2,
		Incidents: []event.OpenIncident{
			{ID: 7, Incident: event.Incident{Cause: event.CauseDestinationDown, Subject: "app", Detail: "why"}, Count: 3, OpenedAt: at, NotifiedAt: at},
			{ID: 8, Incident: event.Incident{Cause: event.CauseDestinationDown, Subject: "ops", Detail: "it was"}, Count: 1, OpenedAt: at, AcknowledgedAt: at, AcknowledgedBy: "ana"},
			{ID: 9, Incident: event.Incident{Cause: event.SignalSilence.Cause(), Subject: "shop", Detail: "quiet"}, Count: 1, OpenedAt: at},
		},
		DeadAlerts: []event.Delivery{{ID: 5, Alert: 7, Destination: event.Mail, Target: "owner@example.com", FinishedAt: at, Error: "550 no such user"}},
		Signals: []event.Signal{{Name: event.SignalSilence, Subject: "shop", Value: 9000, Threshold: 7200, Unit: "seconds", Firing: true, Since: at, Note: "usual pause 1h0m0s"},
			{Name: event.SignalDisk, Value: 1 << 30, Threshold: 1 << 28, Unit: "bytes"}},
	}
	var out bytes.Buffer
	f := &frame{out: &out, asJSON: true}
	line := healthLine{Readiness: admin.Report([]admin.Check{{Name: "store"}}), Trouble: troubles(&status), Signals: status.Signals}
	if err := f.printHealth(line); err != nil {
		t.Fatal(err)
	}
	const want = `{"ready":true,"checks":{"store":"ok"},"trouble":[` +
		`{"what":"destination_down","about":"app","incident":7,"notified_at":"2026-03-07T22:00:00.000Z","since":"2026-03-07T22:00:00.000Z","count":1,"why":"connection refused"},` +
		`{"what":"destination_gone_from_configuration","about":"old","since":"","count":1,"why":"deliveries wait for it: put it back under that name"},` +
		`{"what":"in_doubt","about":"deliveries","since":"","count":2,"why":"creel deliveries --state in_doubt, then creel resolve"},` +
		`{"what":"destination_down","about":"ops","incident":8,"acknowledged_by":"ana","since":"2026-03-07T22:00:00.000Z","count":1,"why":"it was"},` +
		`{"what":"silence","about":"shop","incident":9,"since":"2026-03-07T22:00:00.000Z","count":1,"why":"quiet"},` +
		`{"what":"alert_not_sent","about":"mail owner@example.com","incident":7,"since":"2026-03-07T22:00:00.000Z","count":1,"why":"550 no such user"}],` +
		`"signals":[{"name":"silence","subject":"shop","value":9000,"threshold":7200,"unit":"seconds","firing":true,"since":"2026-03-07T22:00:00Z","note":"usual pause 1h0m0s"},` +
		`{"name":"disk_free","value":1073741824,"threshold":268435456,"unit":"bytes","firing":false}]}` + "\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
