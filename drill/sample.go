package drill

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"creel/event"
	"creel/source"
)

// series is how many samples about one object are told.
const series = 3

// sample takes what creel send would send to one of the rule's sources.
func (d *drill) sample(ctx context.Context, r *subject) {
	for _, p := range d.pieces {
		if p.sample && len(p.effects[r.name]) > 0 { // of another rule
			r.sample, r.candidates = true, append(r.candidates, p)
		}
	}
	if r.sample {
		return
	}
	why, name, kind := "", "", ""
	for i := range d.snap.Config.Sources {
		of := d.snap.Config.Sources[i].Name
		compiled := d.snap.Sources[of]
		if compiled == nil || !event.MatchAny(r.sources, of) {
			continue
		}
		for _, kind = range r.kinds(compiled) {
			name = of
			pieces, reason := d.samples(ctx, compiled, of, kind, r)
			if len(pieces) > 0 {
				r.sample, r.candidates = true, pieces
				d.pieces = append(d.pieces, pieces...)
				return
			}
			why = reason
		}
	}
	r.undrilled(why, name, kind)
}

// undrilled says why a rule has no events.
func (r *subject) undrilled(why, source, kind string) {
	r.reason = "no event of the inbox is for it"
	if reason, n := r.mostLeft(); n > 0 {
		r.reason = "its events in the inbox would not be applied: " + reason
		r.hint = "creel replay --dry-run says so of each"
		return
	}
	if why != "" {
		r.reason += ", and the sample of " + source + " would not be applied: " + why
	}
	if kind == "" {
		kind = "TYPE"
	}
	if source == "" {
		source = "SOURCE"
	}
	r.hint = fmt.Sprintf("start the server, creel send %s --type %s --body FILE, and drill again", source, kind)
}

// kinds are the types of which the source could send the rule a sample.
func (r *subject) kinds(compiled *source.Source) []string {
	var kinds []string
	for _, kind := range compiled.SampleTypes() {
		if event.MatchAny(r.types, kind) {
			kinds = append(kinds, kind)
		}
	}
	for _, kind := range r.types {
		if kind = strings.NewReplacer("*", "test", "?", "x").Replace(kind); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 && len(r.types) == 0 {
		kinds = []string{""}
	}
	return kinds
}

// samples signs a series of one type and takes it in as the source would.
func (d *drill) samples(ctx context.Context, compiled *source.Source, name, kind string, r *subject) (pieces []*piece, why string) {
	now := d.opt.Now()
	for _, draft := range compiled.Series(kind, series, now) {
		request, err := compiled.Sign(draft, source.Signing{At: now})
		if err != nil {
			return nil, err.Error()
		}
		result := compiled.Receive(request, now)
		if result.Refused() {
			return nil, result.Detail
		}
		for _, item := range result.Items {
			if item.State != event.Pending {
				return nil, item.Error
			}
			work := event.Work{
				Event: event.Event{Key: item.Key, LongID: item.LongID, Type: item.Type, Object: item.Object, Version: item.Version,
					Origin: event.FromWebhook, ReceivedAt: now},
				Payload: event.Payload{Body: result.Body, Header: headerLines(request.Header), Query: request.Query, Part: item.Part},
			}
			if !r.matches(&work.Event) {
				return nil, fmt.Sprintf("it has the type %q", item.Type)
			}
			p, reason := d.decide(ctx, work)
			if p == nil {
				return nil, reason
			}
			if len(p.effects[r.name]) == 0 {
				return nil, "the rule does nothing with it"
			}
			p.work.Payload, p.sample = work.Payload, true
			pieces = append(pieces, p)
		}
	}
	return pieces, "its source took no event of it"
}

// headerLines writes headers as the inbox keeps them.
func headerLines(header http.Header) string {
	var b strings.Builder
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range header[name] {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	return b.String()
}
