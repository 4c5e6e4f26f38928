package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"creel/config"
	"creel/event"
	"creel/path"
)

// What a state is of and what orders it where its rule does not say.
const (
	defaultObject  = "{source}/{account}/{object}"
	defaultVersion = "{version}"
)

// state makes event.SetState.
type state struct {
	object, to, version *path.Template
	from                []string // not nil: compare and set
	onRefuse            event.OnRefuse
	fields              []field
	fetch               *fetch
}

func (c *compiler) state(at string, st *config.SetState, f *fetch) *state {
	if st == nil {
		return nil
	}
	out := &state{from: slices.Clone(st.From), fields: c.fields(config.Join(at, "fields"), st.Fields), fetch: f}
	object := st.Object
	if object == "" {
		object = defaultObject
	}
	out.object = c.varying(config.Join(at, "object"), object, "say of what the state is, such as {source}/{account}/{body.id}")
	out.to = c.needed(config.Join(at, "to"), st.To, `say the new state, such as to = "{body.status}"`)
	if st.From == nil {
		out.version = c.stateVersion(config.Join(at, "version"), st.Version)
		if st.OnRefuse != "" {
			c.fault(config.Join(at, "on_refuse"), "goes with from", "a state with a version is applied or stale")
		}
		return out
	}
	c.compareAndSet(at, st, f, out)
	return out
}

func (c *compiler) stateVersion(at, text string) *path.Template {
	if text == "" {
		text = defaultVersion
	}
	version := c.template(at, text)
	if version != nil && !varies(version) {
		c.fault(at, "is the same for every event", `write a place, such as version = "{body.updated_at}"`)
	}
	return version
}

func (c *compiler) compareAndSet(at string, st *config.SetState, f *fetch, out *state) {
	if len(st.From) == 0 {
		c.fault(config.Join(at, "from"), "names no state", `"" is that of an object that has none yet`)
	}
	if st.Version != "" {
		c.fault(config.Join(at, "version"), "stands beside from", "a state is guarded by its version or by the states that may be left: keep one of them")
	}
	if f != nil {
		c.fault(config.Join(at, "from"), "stands beside [rule.fetch]", "what is fetched is the current state, whatever was there before: leave from out")
	}
	for i, from := range st.From {
		if slices.Index(st.From, from) < i {
			c.fault(config.Item(config.Join(at, "from"), i), strconv.Quote(from)+" is named twice", "")
		}
	}
	switch out.onRefuse = event.OnRefuse(st.OnRefuse); out.onRefuse {
	case "":
		out.onRefuse = event.RefuseLater
	case event.RefuseLater, event.RefuseStale, event.RefuseDead:
	default:
		c.fault(config.Join(at, "on_refuse"), strconv.Quote(st.OnRefuse)+" is not known here", "one of: retry, stale, dead")
	}
}

func (*state) word() string { return "state" }

var errNoVersion = errors.New(`no version; configure [rule.fetch], or version = "{body.…}" (a number or an RFC 3339 time)`)

func (st *state) make(_ context.Context, s *subject, o operation) ([]event.Effect, error) {
	out := event.SetState{
		Key: o.key, Rule: o.rule, From: st.from, OnRefuse: st.onRefuse,
		Fetched: o.fetched, Fetchable: st.fetch != nil && !o.fetched,
	}
	var err error
	if out.Object, err = st.object.ExecuteKey(s.doc, s.name); err == nil && out.Object == "" {
		err = errEmpty
	}
	if err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	if out.To, err = s.render(st.to); err == nil && out.To == "" {
		err = errEmpty
	}
	if err != nil {
		return nil, fmt.Errorf("to: %w", err)
	}
	if st.from == nil {
		if out.Version, err = versionFrom(st.version, s); err != nil {
			return nil, fmt.Errorf("version: %w", err)
		}
		if out.Version == "" && !o.fetched {
			return nil, errNoVersion
		}
	}
	if out.Fields, err = s.fields(st.fields); err != nil {
		return nil, fmt.Errorf("fields: %w", err)
	}
	return []event.Effect{out}, nil
}

// versionFrom is the version of a state, "" where the event has none that
// orders anything.
func versionFrom(t *path.Template, s *subject) (string, error) {
	text, err := t.Execute(s.doc, s.name)
	if errors.Is(err, path.ErrMissing) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if _, ranked := event.Rank(text); !ranked {
		return "", nil
	}
	return text, nil
}
