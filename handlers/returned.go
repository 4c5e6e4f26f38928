package handlers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"creel/config"
	"creel/event"
)

// checked makes sure that the store can apply what a Go handler returned, and
// fills in what is the rule's to say.
func (rs *Rules) checked(r *rule, o operation, effect event.Effect) (event.Effect, error) {
	switch f := effect.(type) {
	case nil:
		return nil, errors.New("is nil")
	case event.Forward:
		if err := rs.checkedTo(f.Destination, config.ToURL); err != nil {
			return nil, err
		}
		f.Key, f.Rule, f.Claimed = cmp.Or(f.Key, o.key), o.rule, false
		f.Lane, f.LaneSkip = o.lane, o.laneSkip
		return f, nil
	case event.Record:
		f.Key, f.Rule = cmp.Or(f.Key, o.key), o.rule
		var err error
		if f.Fields, err = sorted(f.Fields); err == nil && f.Of == "" {
			err = errors.New("names no kind of record")
		}
		return f, err
	case event.Grant:
		f.Key, f.Rule = cmp.Or(f.Key, o.key), o.rule
		if f.Floor != nil { // the handler may keep what it points to
			floor := *f.Floor
			f.Floor = &floor
		}
		return f, checkedGrant(f)
	case event.SetState:
		f.Key, f.Rule = cmp.Or(f.Key, o.key), o.rule
		return checkedState(r, o, f)
	case event.SQL:
		f.Key, f.Rule = cmp.Or(f.Key, o.key), o.rule
		f.Statements = slices.Clone(f.Statements)
		var err error
		if f.Params, err = sorted(f.Params); err == nil && len(f.Statements) == 0 {
			err = errors.New("has no statement")
		}
		return f, err
	case event.Email:
		f.Key, f.Rule = cmp.Or(f.Key, o.key), o.rule
		f.Lane, f.LaneSkip = o.lane, o.laneSkip
		return checkedEmail(f)
	case event.Run:
		f.Key, f.Rule = cmp.Or(f.Key, o.key), o.rule
		f.Lane, f.LaneSkip = o.lane, o.laneSkip
		if err := rs.checkedTo(f.Destination, config.ToCommand); err != nil {
			return nil, err
		}
		return checkedRun(f)
	case event.File:
		f.Key, f.Rule = cmp.Or(f.Key, o.key), o.rule
		f.Lane, f.LaneSkip = o.lane, o.laneSkip
		if err := rs.checkedTo(f.Destination, config.ToFolder); err != nil {
			return nil, err
		}
		if err := event.CheckPath(f.Path); err != nil {
			return nil, fmt.Errorf("path: %w", err)
		}
		return f, nil
	}
	return nil, fmt.Errorf("is of a kind that is not known: %T", effect)
}

// checkedTo makes sure that a destination is there and of the effect's kind.
func (rs *Rules) checkedTo(name string, kind config.DestinationKind) error {
	switch is, known := rs.destinations[name]; {
	case !known:
		return fmt.Errorf("there is no destination %s", strconv.QuoteToGraphic(clip(name, 100)))
	case is != kind:
		return errors.New(config.WrongKind(name, is, kind))
	}
	return nil
}

func checkedGrant(g event.Grant) error {
	switch {
	case g.Reverse == "" && (g.To == "" || g.Unit == ""):
		return errors.New("says not whose balance of which unit")
	case g.Floor != nil && (*g.Floor > event.MaxAmount || *g.Floor < -event.MaxAmount):
		return errors.New("has a floor that is beyond what a balance can be")
	case g.Reverse != "" && g.Amount == 0:
		return nil
	}
	if err := inRange(g.Amount); err != nil {
		return fmt.Errorf("amount: %d %w", g.Amount, err)
	}
	return nil
}

func checkedState(r *rule, o operation, s event.SetState) (event.Effect, error) {
	s.From = slices.Clone(s.From)
	s.Fetched = s.Fetched || o.fetched
	s.Fetchable = r.fetch != nil && !s.Fetched
	_, ranked := event.Rank(s.Version)
	var err error
	switch {
	case s.Object == "":
		err = errors.New("says not of which object")
	case s.To == "":
		err = errors.New("names no state")
	case s.Fetched && r.order == nil:
		err = errors.New("is fetched, and its rule keeps no order: configure order_by")
	case s.From != nil && (s.Version != "" || s.Fetched):
		err = errors.New("has a version, or was fetched, beside the states that may be left")
	case s.From == nil && !ranked && (s.Version != "" || !s.Fetched):
		err = errors.New("has no version that orders it: a number or an RFC 3339 time")
	}
	if err != nil {
		return nil, err
	}
	switch {
	case s.From == nil:
		s.OnRefuse = ""
	case s.OnRefuse == "":
		s.OnRefuse = event.RefuseLater
	case !slices.Contains([]event.OnRefuse{event.RefuseLater, event.RefuseStale, event.RefuseDead}, s.OnRefuse):
		return nil, errors.New("says not what a refusal comes to: retry, stale or dead")
	}
	s.Fields, err = sorted(s.Fields)
	return s, err
}

func checkedEmail(m event.Email) (event.Effect, error) {
	var err error
	if m.To, err = oneAddress(m.To); err != nil {
		return nil, fmt.Errorf("to: %w", err)
	}
	if err = oneLine(m.Subject); err != nil {
		return nil, fmt.Errorf("subject: %w", err)
	}
	if m.Text == "" && m.HTML == "" {
		return nil, errors.New("says nothing")
	}
	return m, nil
}

// sorted is a copy of fields in the order of their names.
func sorted(fields []event.Field) ([]event.Field, error) {
	fields = slices.Clone(fields)
	slices.SortFunc(fields, func(a, b event.Field) int { return strings.Compare(a.Name, b.Name) })
	for i, f := range fields {
		if f.Name == "" {
			return nil, errors.New("has a field without a name")
		}
		if i > 0 && fields[i-1].Name == f.Name {
			return nil, fmt.Errorf("has the field %s twice", strconv.QuoteToGraphic(clip(f.Name, 100)))
		}
	}
	return fields, nil
}
