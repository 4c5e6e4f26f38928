package path

import (
	"errors"
	"testing"

	"creel/event"
)

func each(t *testing.T, payload event.Payload, place string) ([]string, int, error) {
	t.Helper()
	split, err := ParseSplit(place)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDocument(payload)
	elements, missed, err := d.Each(split)
	var parts []string
	for _, e := range elements {
		parts = append(parts, e.Part+"="+string(e.Raw))
		payload.Part = e.Part
		again, err := NewDocument(payload).Body()
		if err != nil || string(again) != string(e.Raw) {
			t.Errorf("part %s reads %q, %v; want %q", e.Part, again, err, e.Raw)
		}
		whole, ok, err := d.Of(e).Get(parsed(t, "body"))
		if err != nil || !ok || string(whole.Raw) != string(e.Raw) || d.Of(e).Payload().Part != e.Part {
			t.Errorf("the document of part %s reads %q, %v, %v", e.Part, whole.Raw, ok, err)
		}
	}
	return parts, missed, err
}

func TestEachNamesThePartOfEveryElement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body, part, split string
		want              []string
		missed            int
	}{
		{body: `[1, {"a":2}]`, split: "body", want: []string{"body.0=1", `body.1={"a":2}`}},
		{body: `{"items":[1,2]}`, split: "body.items", want: []string{"body.items.0=1", "body.items.1=2"}},
		{body: `{"items":[1,2]}`, split: "body.items.*", want: []string{"body.items.0=1", "body.items.1=2"}},
		{body: `{"items":[]}`, split: "body.items"},
		{body: `{"other":[]}`, split: "body.items", missed: 1},
		{body: `{"items":[1]}`, split: "body.items.3", missed: 1},
		{body: `{"a":1}`, split: "body", want: []string{`body={"a":1}`}},
		{body: `{"it.ems":[5]}`, split: `body.it\.ems`, want: []string{`body.it\.ems.0=5`}},
		{body: `{"entry":[{"changes":[1,2]},{"messaging":[9]},{"changes":[3]}]}`, split: "body.entry.*.changes.*",
			want: []string{"body.entry.0.changes.0=1", "body.entry.0.changes.1=2", "body.entry.2.changes.0=3"}, missed: 1},
		{body: `{"notificationItems":[{"NotificationRequestItem":{"a":1}}]}`, split: "body.notificationItems.*.NotificationRequestItem",
			want: []string{`body.notificationItems.0.NotificationRequestItem={"a":1}`}},
		{body: `events=%5B1%2C2%5D`, part: "form.events", split: "body", want: []string{"form.events|body.0=1", "form.events|body.1=2"}},
		{body: `{"items":[{"sub":[7,8]}]}`, part: "body.items.0", split: "body.sub", want: []string{"body.items.0.sub.0=7", "body.items.0.sub.1=8"}},
	} {
		got, missed, err := each(t, event.Payload{Body: []byte(c.body), Part: c.part}, c.split)
		if err != nil || missed != c.missed || len(got) != len(c.want) {
			t.Errorf("%s of %s: %q, %d, %v; want %q, %d", c.split, c.body, got, missed, err, c.want, c.missed)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s of %s: %q, want %q", c.split, c.body, got[i], c.want[i])
			}
		}
	}
}

func TestEachRefusesDoubledAndBrokenArrays(t *testing.T) {
	t.Parallel()
	if _, _, err := each(t, event.Payload{Body: []byte(`{"items":[1],"items":[2]}`)}, "body.items"); !errors.Is(err, ErrDuplicateMember) {
		t.Errorf("doubled array: %v", err)
	}
	if _, _, err := each(t, event.Payload{Body: []byte(`[1,2`)}, "body"); !errors.Is(err, ErrUnparsable) {
		t.Errorf("broken array: %v", err)
	}
}

func TestPartMeansWhatBodyMeans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, part, place, want string }{
		{`payload=%7B%22id%22%3A%22d-8%22%2C%22zen%22%3A%22a%2Bb+c%22%7D`, "form.payload", "body.zen", "a+b c"},
		{`[{"id":1},{"id":2}]`, "body.1", "body.id", "2"},
		{"\xef\xbb\xbf[{\"id\":1}]", "body.0", "body.id", "1"},
		{`{"Message":"{\"id\":5}"}`, "body.Message|body", "body.id", "5"},
		{`events=%5B%7B%22id%22%3A1%7D%5D`, "form.events|body.0", "body.id", "1"},
	} {
		d := NewDocument(event.Payload{Body: []byte(c.body), Part: c.part})
		if value, ok, err := d.Get(parsed(t, c.place)); err != nil || !ok || value.Text() != c.want {
			t.Errorf("%s of part %s: %q, %v, %v; want %q", c.place, c.part, value.Text(), ok, err, c.want)
		}
	}
	for _, part := range []string{"form.payload", "body.9", "nonsense"} {
		d := NewDocument(event.Payload{Body: []byte(`{"id":1}`), Part: part})
		if _, ok, err := d.Get(parsed(t, "body.id")); err == nil {
			t.Errorf("a part %q that is not there: %v, no error", part, ok)
		}
	}
}
