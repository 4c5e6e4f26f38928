package deliver

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// A destination that is another kind by now gets what waited for it as its kind
// does: the event, or nothing. What belongs to the old kind is no alert.
func TestAnotherKindByNow(t *testing.T) {
	t.Parallel()
	run := shipment()
	run.Message = event.Run{Fields: []event.Field{{Name: "order", Value: "17"}}}.Message()
	file := shipment()
	file.Target = "a/b.json"
	for name, s := range map[string]event.Shipment{"a run": run, "a file": file} {
		got := sentTo(t, config.Destination{}, s)
		if string(got.Body) != string(s.Payload.Body) || got.Header.Get("Creel-Event") != "stripe//evt_1" {
			t.Errorf("%s as a request: %s with %v", name, got.Body, got.Header)
		}
		got = sentTo(t, config.Destination{Body: bodyOf(t, `
body.text = "{id} {source}{alert.subject?}"`)}, s)
		if string(got.Body) != "evt_1 stripe" {
			t.Errorf("%s as a request of the owner's: %s", name, got.Body)
		}
	}
	folder(t, "").outcome(t, run, event.Permanent, "no folder then")
	alert := event.Shipment{Delivery: event.Delivery{ID: 1, Alert: 3, Key: "=incident/3/opened", Destination: "job", Run: 1, Tries: 1},
		Message: event.Alert{Subject: "down"}.Message()}
	d := shell(t, "touch ran")
	if got := attempt(t, d, alert); got.Attempt.Outcome != event.Permanent || !strings.Contains(got.Attempt.Error, "alert") {
		t.Errorf("an alert as a run: %+v", got.Attempt)
	}
	if _, err := os.Stat(filepath.Join(d.folder, "ran")); err == nil {
		t.Error("the command ran for an alert")
	}
}

// A path that leads over a link of the owner's is a matter of its event alone:
// it says nothing about the folder.
func TestLinksAreOfTheirPathAlone(t *testing.T) {
	t.Parallel()
	d := folder(t, "")
	for link, to := range map[string]string{"out": t.TempDir(), "loop": "loop", "dangling": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(d.folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, told := range map[string]string{"out/x": "a link on the way leads out of the folder", "loop/x": "symbolic links", "dangling/x": "no such file"} {
		got := d.Attempt(t.Context(), document("k", path, "body"), time.Now())
		if got.Attempt.Outcome != event.Transient || !got.Alive || !strings.Contains(got.Attempt.Error, told) {
			t.Errorf("%s: %+v, alive %t", path, got.Attempt, got.Alive)
		}
	}
	if err := os.Rename(d.folder, d.folder+"-gone"); err != nil {
		t.Fatal(err)
	}
	if got := d.Attempt(t.Context(), document("k", "x", "body"), time.Now()); got.Attempt.Outcome != event.Transient || got.Alive {
		t.Errorf("no folder: %+v, alive %t", got.Attempt, got.Alive)
	}
}

// What the system says about a program that is there and was not started names
// something else than what is missing.
func TestWhyAProgramWasNotStarted(t *testing.T) {
	t.Parallel()
	for text, told := range map[string]string{
		"#!/no/such/shell\n":      "its first line names /no/such/shell, which is not there",
		"#!/bin/sh\r\nexit 0\r\n": "ends with CR LF",
		"#!/usr/bin/no such\n":    "its first line names /usr/bin/no, which is not there",
		"exit 0\n":                "a script begins with a line such as #!/bin/sh",
	} {
		name := filepath.Join(t.TempDir(), "job")
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		got := attempt(t, command(t, config.Destination{Command: []string{name}}, noEnv), order(nil))
		if got.Attempt.Outcome != event.Transient || !strings.Contains(got.Attempt.Error, told) {
			t.Errorf("%q: %+v", text, got.Attempt)
		}
	}
	name := filepath.Join(t.TempDir(), "job")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	d := command(t, config.Destination{Command: []string{name}}, noEnv)
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := attempt(t, d, order(nil)); !strings.Contains(got.Attempt.Error, "chmod +x") {
		t.Errorf("%+v", got.Attempt)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if got := attempt(t, d, order(nil)); !strings.Contains(got.Attempt.Error, "job was not started: "+name+" is not there") {
		t.Errorf("%+v", got.Attempt)
	}
}

// Not every 3xx is a redirect.
func TestAnswersWithoutALocation(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: app.URL})
	for _, status := range []int{http.StatusMultipleChoices, http.StatusNotModified, http.StatusTemporaryRedirect} {
		app.Script(testkit.Answer{Status: status})
		got := d.Attempt(t.Context(), shipment(), time.Now()).Attempt
		if got.Outcome != event.Transient || !strings.Contains(got.Error, http.StatusText(status)) || !strings.Contains(got.Error, "no Location") {
			t.Errorf("%d: %s", status, got.Error)
		}
	}
}
