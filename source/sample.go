package source

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"creel/event"
)

// Draft is a request before it is signed.
type Draft struct {
	Type   string
	ID     string
	Query  string
	Header http.Header
	Body   []byte
}

// SampleTypes lists the types of which the source's preset has a sample.
func (s *Source) SampleTypes() []string {
	if s.preset == nil {
		return nil
	}
	var types []string
	for _, sample := range s.preset.Samples {
		types = append(types, sample.Type)
	}
	return types
}

// Sample drafts an event that looks like the sender's own. An empty kind takes
// the first sample; an empty id makes a new one. A type without a sample, and
// a sender that the owner described, get the least that the scheme reads.
func (s *Source) Sample(kind, id string, at time.Time) Draft {
	if id == "" {
		id = "evt_" + randomToken()
	}
	if sample, ok := s.sample(kind); ok {
		return sample.draft(id, randomToken(), at)
	}
	return s.least(facts{kind: orTest(kind), id: id})
}

// About is a Sample that is about an object which is there already, as its
// event names it.
func (s *Source) About(kind, id, object string, at time.Time) (Draft, error) {
	draft := s.Sample(kind, id, at)
	if _, ok := s.sample(kind); !ok {
		draft = s.least(facts{kind: orTest(kind), id: draft.ID, object: object, version: strconv.FormatInt(at.Unix(), 10)})
	}
	items, err := s.Read(draft, at)
	if err != nil {
		return draft, err
	}
	if len(items) == 1 && items[0].Object != "" && items[0].Object != object {
		of := items[0].Object
		draft.Body = bytes.ReplaceAll(draft.Body, inJSON(of), inJSON(object))
		for _, values := range draft.Header {
			for i := range values {
				values[i] = strings.ReplaceAll(values[i], of, object)
			}
		}
		if items, err = s.Read(draft, at); err != nil {
			return draft, err
		}
	}
	if len(items) != 1 || items[0].Object != object {
		return draft, fmt.Errorf("no sample of %s %s can be about %q", s.name, draft.Type, object)
	}
	return draft, nil
}

// inJSON is a text as it stands between quotes.
func inJSON(text string) []byte {
	quoted, _ := json.Marshal(text) // a text always can be
	return quoted[1 : len(quoted)-1]
}

// Read are the events of a draft, as the source sees them when it comes.
func (s *Source) Read(draft Draft, at time.Time) ([]event.Item, error) {
	request, err := s.Sign(draft, Signing{At: at})
	if err != nil {
		return nil, err
	}
	return s.Receive(request, at).Items, nil
}

// orTest is a type for an event of which none was asked for.
func orTest(kind string) string {
	if kind == "" {
		return "creel.test"
	}
	return kind
}

// sample finds the preset's sample of a type, the first for no type.
func (s *Source) sample(kind string) (Sample, bool) {
	if s.preset != nil {
		for _, sample := range s.preset.Samples {
			if kind == "" || sample.Type == kind {
				return sample, true
			}
		}
	}
	return Sample{}, false
}

func randomToken() string {
	var raw [12]byte
	rand.Read(raw[:])
	return hex.EncodeToString(raw[:])
}

// draft fills a sample in. token makes the name of the object that it is about.
func (s Sample) draft(id, token string, at time.Time) Draft {
	quoted, _ := json.Marshal(id) // a string always can be
	d := Draft{Type: s.Type, ID: id, Header: http.Header{}}
	fill := func(text, id string) string {
		return strings.NewReplacer(
			"$seconds", strconv.FormatInt(at.Unix(), 10),
			"$time", at.UTC().Format(time.RFC3339),
			"$token", token,
			"$id", id,
		).Replace(text)
	}
	d.Body = []byte(fill(s.Body, strings.Trim(string(quoted), `"`)))
	for name, value := range s.Header {
		d.Header.Set(name, fill(value, id))
	}
	return d
}

// facts are what a scheme reads of an event; an empty one is left out.
type facts struct{ kind, id, object, version string }

// least builds a body with what the scheme reads and nothing more.
func (s *Source) least(of facts) Draft {
	d := Draft{Type: of.kind, ID: of.id, Header: http.Header{}}
	values := map[string]string{}
	note := func(c choice, value string) {
		for _, t := range c {
			if t.single() && value != "" {
				values[t.pieces[0].place.text] = value
				return
			}
		}
		for _, p := range c.places() {
			values[p.text] = value
		}
	}
	if of.object != "" {
		note(s.scheme.object, of.object)
	}
	if of.version != "" {
		note(s.scheme.version, of.version)
	}
	note(s.scheme.kind, of.kind)
	note(s.scheme.id, of.id)
	if s.scheme.readsForm && !s.scheme.readsBody {
		form := url.Values{}
		for place, value := range values {
			if name, ok := strings.CutPrefix(place, "form."); ok {
				form.Set(name, value)
			}
		}
		d.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		d.Body = []byte(form.Encode())
		return d
	}
	var body any = map[string]any{}
	for _, place := range sortedKeys(values) {
		if steps, ok := strings.CutPrefix(place, "body."); ok {
			body = plant(body, strings.Split(steps, "."), values[place])
		}
	}
	if !s.scheme.split.IsZero() {
		body = wrap(body, strings.Split(s.scheme.split.String(), ".")[1:])
	}
	d.Body, _ = json.Marshal(body) // maps and texts always can be
	return d
}

// plant sets a value below a JSON object; a step in digits is a member too.
func plant(into any, steps []string, value string) any {
	object, ok := into.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	if len(steps) == 1 {
		object[steps[0]] = value
		return object
	}
	object[steps[0]] = plant(object[steps[0]], steps[1:], value)
	return object
}

// wrap puts an event into the lists that a split takes it out of.
func wrap(body any, steps []string) any {
	if len(steps) == 0 || steps[len(steps)-1] != "*" && !strings.Contains(strings.Join(steps, "."), "*") {
		body = []any{body}
	}
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i] == "*" {
			body = []any{body}
		} else {
			body = map[string]any{steps[i]: body}
		}
	}
	return body
}

// String names the draft in logs and errors.
func (d Draft) String() string { return fmt.Sprintf("%s %s", d.Type, d.ID) }
