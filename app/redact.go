package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"creel/config"
	"creel/event"
	"creel/path"
	"creel/source"
	"creel/store"
)

// maxRedacted is how many places a source may redact.
const maxRedacted = 64

// Redactions are what the sources of a configuration do not show, and do not
// keep.
type Redactions map[string]*redaction

type redaction struct {
	shown *path.Redaction // what is not shown: what is not kept is not either
	kept  *path.Redaction // what is not kept; nil is nothing
	parts []string        // where events stand in a request
}

// RedactionsOf compiles them. What can not be understood hides everything of its
// source, where somebody goes on in spite of the problem.
func RedactionsOf(cfg *config.Config) (Redactions, config.Problems) {
	all := Redactions{}
	var problems config.Problems
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		if len(s.Redact)+len(s.RedactStored) == 0 {
			continue
		}
		at := config.Item("source", i)
		shown, found := places(config.Join(at, "redact"), s.Redact)
		kept, more := places(config.Join(at, "redact_stored"), s.RedactStored)
		problems = append(append(problems, found...), more...)
		own := &redaction{parts: source.PartsOf(*s)}
		var err error
		if own.shown, err = path.ParseRedaction(append(shown, kept...)); err != nil || found.Err() != nil || more.Err() != nil {
			own.shown, _ = path.ParseRedaction([]string{"body"})
		}
		if len(kept) > 0 {
			own.kept, _ = path.ParseRedaction(kept) // those that could be parsed
			problems = append(problems, lost(cfg, at, s)...)
		}
		all[s.Name] = own
	}
	return all, problems
}

// HideCarried takes out of an event all that it carried, where what its source
// redacts is not certain, and returns what hides it where it is quoted.
func HideCarried(found *store.EventDetail) Redactions {
	body, _ := path.ParseRedaction([]string{"body"}) // it is a place
	found.Payload.Header, found.Payload.Query = "", ""
	for i := range found.Conflicts {
		found.Conflicts[i].Payload.Header, found.Conflicts[i].Payload.Query = "", ""
	}
	return Redactions{found.Key.Source: {shown: body}}
}

// places gives the places of a list that are some.
func places(key string, list []string) (good []string, problems config.Problems) {
	if len(list) > maxRedacted {
		problems = append(problems, config.Problem{Path: key, Message: fmt.Sprintf("lists more than %d places", maxRedacted),
			Hint: "a place redacts all below it, and a * every member or element"})
	}
	for n, text := range list {
		if _, err := path.ParseRedaction([]string{text}); err != nil {
			problems = append(problems, config.Problem{Path: config.Item(key, n), Message: err.Error(),
				Hint: `such as "body.card.number", "body.items.*.email", "header.x-token", "query.token" or "form.card"`})
			continue
		}
		good = append(good, text)
	}
	return good, problems
}

// lost warns of what can not read any more what is not kept.
func lost(cfg *config.Config, at string, s *config.Source) config.Problems {
	var problems config.Problems
	warn := func(n int, format string, args ...any) {
		problems = append(problems, config.Problem{Warning: true, Path: config.Item(config.Join(at, "redact_stored"), n),
			Message: fmt.Sprintf(format, args...), Hint: "keep it, and list it in redact, where it is needed"})
	}
	for n, place := range s.RedactStored {
		if slices.Contains(s.Index, place) {
			warn(n, "index lists it too, and would find %s", path.Redacted)
		}
		for _, r := range cfg.Rules {
			text, err := json.Marshal(r)
			if err == nil && event.MatchAny(r.Match.Source, s.Name) && strings.Contains(string(text), place) {
				warn(n, "the rule %q names it, and would read %s", r.Name, path.Redacted)
			}
		}
	}
	return problems
}

// views are the parts by which a request is to be looked at. One that is no part
// of another may hold events nevertheless, that could not be taken out of it.
func (o *redaction) views(payload event.Payload) []string {
	if payload.Part != "" {
		return []string{payload.Part}
	}
	plain := path.IsJSON(payload.Body)
	views := slices.DeleteFunc(slices.Clone(o.parts), func(part string) bool { return strings.HasPrefix(part, path.Body.String()) != plain })
	return append(views, "")
}

func (o *redaction) take(out *path.Redaction, payload event.Payload) event.Payload {
	part := payload.Part
	for _, payload.Part = range o.views(payload) {
		payload = out.Payload(payload)
	}
	payload.Part = part
	return payload
}

// Payload is a request as it may be shown.
func (r Redactions) Payload(source string, payload event.Payload) event.Payload {
	if own := r[source]; own != nil {
		return own.take(own.shown, payload)
	}
	return payload
}

// Texts are what of an event no message may quote.
func (r Redactions) Texts(source string, payload event.Payload) (texts []string) {
	if own := r[source]; own != nil {
		for _, payload.Part = range own.views(payload) {
			texts = append(texts, own.shown.Texts(payload)...)
		}
	}
	return texts
}

// Any tells whether anything of a source is not shown.
func (r Redactions) Any(source string) bool { return r[source] != nil }

// Detail writes all that is known of an event as it may be shown.
func (r Redactions) Detail(found *store.EventDetail) {
	source := found.Key.Source
	if !r.Any(source) {
		return
	}
	texts := r.Texts(source, found.Payload)
	found.Payload = r.Payload(source, found.Payload)
	for i := range found.Conflicts {
		texts = append(texts, r.Texts(source, found.Conflicts[i].Payload)...)
		found.Conflicts[i].Payload = r.Payload(source, found.Conflicts[i].Payload)
	}
	if len(texts) == 0 {
		return
	}
	found.Error = path.TakeOut(found.Error, texts)
	for i := range found.Verdicts {
		found.Verdicts[i].Reason = path.TakeOut(found.Verdicts[i].Reason, texts)
	}
	for i := range found.Deliveries {
		d := &found.Deliveries[i]
		d.Error = path.TakeOut(d.Error, texts)
		for n := range d.Attempts {
			d.Attempts[n].Error, d.Attempts[n].Answer = path.TakeOut(d.Attempts[n].Error, texts), path.TakeOut(d.Attempts[n].Answer, texts)
		}
	}
}

// Request is a request that may never have been an event, as it may be shown.
func (r Redactions) Request(name string, req *source.Request) {
	if !r.Any(name) {
		return
	}
	payload := event.Payload{Body: req.Body, Query: req.Query}
	for name, lines := range req.Header {
		for _, line := range lines {
			payload.Header += name + ": " + strings.ReplaceAll(line, "\n", " ") + "\n"
		}
	}
	shown := r.Payload(name, payload)
	req.Body, req.Query, req.Header = shown.Body, shown.Query, source.ReadHeaderLines(shown.Header)
}

// keep takes out of a receipt what its source does not keep: after it was
// verified and its events have their keys, before anything else reads it.
func (r Redactions) keep(receipt *event.Receipt) {
	own := r[receipt.Source]
	if own == nil || own.kept == nil {
		return
	}
	shapes := map[string]string{} // of one shape one part
	for i := range receipt.Items {
		part := receipt.Items[i].Part
		shapes[path.Shape(part)] = part
	}
	if len(shapes) > 1 {
		delete(shapes, "") // what is no event of its own stands beside those that are
	}
	payload := event.Payload{Body: receipt.Body, Header: receipt.Header, Query: receipt.Query}
	for _, payload.Part = range shapes {
		payload = own.take(own.kept, payload)
	}
	receipt.Body, receipt.Header, receipt.Query = payload.Body, payload.Header, payload.Query
}
