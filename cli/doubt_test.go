package cli_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"creel/internal/testkit"
)

// doubtful is a site with a destination of each kind that may lose an answer,
// all of which keep it for a person: a forward, a mail and a command. A folder
// is beside them: of a file nothing is in doubt.
func doubtful(t *testing.T, mail *testkit.MailServer) *site {
	t.Helper()
	s := newSite(t, "")
	folder := filepath.Join(s.Dir, "archive")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	// The command notes its run, and until it finds a file nobody knows how it
	// ended.
	program := "cat >> runs; echo \" $CREEL_DELIVERY\" >> runs; test -e well || kill -9 $$"
	s.configure(t, plain(s.app.URL, `on_doubt = "review"`)+fmt.Sprintf(`
[smtp]
host     = %q
from     = "creel@example.com"
on_doubt = "review"

[[rule]]
name = "all the rest"
  [rule.email]
  to      = "ann@example.net"
  subject = "{id}"
  text    = "{id}"
  [rule.run]
  to = "print"
  [rule.file]
  to   = "archive"
  path = "{id}.json"

[destination.print]
max_in_flight = 1
command        = ["/bin/sh", "-c", %q]
working_folder = %q

[destination.archive]
folder = "archive"
`, mail.Addr, program, s.Dir))
	return s
}

func runsOf(t *testing.T, s *site) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(string(text)))
}

// TestInDoubtOfEachKind loses the answers of a forward, a mail and a command,
// lists what is in doubt, and decides: with a server, and on the file.
func TestInDoubtOfEachKind(t *testing.T) {
	t.Parallel()
	for name, running := range map[string]bool{"through the server": true, "on the file": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mail := testkit.NewMailServer(t, testkit.MailOptions{})
			s := doubtful(t, mail)
			s.app.Script(testkit.Answer{Fault: testkit.Close})
			mail.Script(testkit.MailAnswer{Stage: testkit.AtMessage, Drop: true})
			s.Start(t)
			for _, id := range []string{"a", "b", "c"} {
				s.send(t, fmt.Sprintf(`{"id":%q,"type":"order.paid"}`, id))
			}
			await(t, s.Process, 9, "deliveries", "--state", "in_doubt", "--json")
			await(t, s.Process, 3, "deliveries", "--destination", "archive", "--state", "sent", "--json")
			if out := command(t, s.Process, 0, "health"); !strings.Contains(out, "in_doubt") || !strings.Contains(out, "creel resolve") {
				t.Errorf("health: %s", out)
			}
			// From here on all answers arrive.
			s.app.Script(testkit.Answer{})
			mail.Script(testkit.MailAnswer{})
			write(t, filepath.Join(s.Dir, "well"), nil)
			if !running {
				s.Terminate()
			}
			decideAll(t, s)
			if !running {
				s.Start(t)
			}
			decided(t, s, mail)
			if exit := s.Terminate(); exit.Code != 0 {
				t.Errorf("stop: %+v", exit)
			}
		})
	}
}

// decideAll says of each destination's deliveries that the one of event a was
// sent, that of b is to be sent again, and that of c is dead; and once more
// that a was sent.
func decideAll(t *testing.T, s *site) {
	t.Helper()
	decisions := map[string]string{"shop//a": "sent", "shop//b": "again", "shop//c": "dead"}
	for _, destination := range []string{"app", "mail", "print"} {
		doubts := lines[deliveryLine](t, s.Process, "deliveries", "--state", "in_doubt", "--destination", destination, "--json")
		if len(doubts) != 3 {
			t.Fatalf("%s: %+v", destination, doubts)
		}
		for _, d := range doubts {
			if d.Error == "" || d.Attempts != 1 {
				t.Errorf("nothing says why: %+v", d)
			}
			number := strconv.FormatInt(d.ID, 10)
			command(t, s.Process, 0, "resolve", decisions[d.Event], number, "--reason", "asked "+destination)
			if d.Event == "shop//a" {
				command(t, s.Process, 4, "resolve", "dead", number, "--reason", "asked twice")
			}
		}
	}
}

// decided waits for what was decided, and looks at the audit trail and at what
// the destinations got.
func decided(t *testing.T, s *site, mail *testkit.MailServer) {
	t.Helper()
	await(t, s.Process, 3, "deliveries", "--state", "dead", "--json")
	await(t, s.Process, 9, "deliveries", "--state", "sent", "--json") // three of them files
	command(t, s.Process, 4, "deliveries", "--state", "in_doubt")
	trail := map[string]int{}
	for _, a := range lines[actionLine](t, s.Process, "audit", "--json") {
		if !strings.HasPrefix(a.Actor, "cli:") || a.Target == "" {
			t.Errorf("%+v", a)
		}
		trail[fmt.Sprint(a.Action, ", ", a.Reason, ", ", a.Done)]++
	}
	want := map[string]int{"resolve dead, asked twice, 0": 3}
	for _, destination := range []string{"app", "mail", "print"} {
		for _, kind := range []string{"sent", "again", "dead"} {
			want[fmt.Sprint("resolve ", kind, ", asked ", destination, ", 1")] = 1
		}
	}
	if fmt.Sprint(trail) != fmt.Sprint(want) {
		t.Errorf("audited\n%v, want\n%v", trail, want)
	}
	times := func(what string, counts map[string]int) {
		t.Helper()
		if got := slices.Sorted(maps.Values(counts)); !slices.Equal(got, []int{1, 1, 2}) {
			t.Errorf("%s: %v", what, counts)
		}
	}
	times("requests", s.app.Counts())
	mails, runs := map[string]int{}, map[string]int{}
	for _, m := range mail.Mails() {
		mails[string(m.Data[strings.Index(string(m.Data), "Message-ID"):][:64])]++
	}
	times("mails", mails)
	for _, run := range runsOf(t, s) {
		runs[run]++
	}
	times("runs", runs)
}
