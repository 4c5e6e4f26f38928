package app

import (
	"creel/admin/page"
	"creel/config"
	"creel/event"
	"creel/path"
)

// maxIndexed is how many places a source may list: each costs a look into the
// body and a row for every event.
const maxIndexed = 16

// indexed is a place by whose value events of a source are found.
type indexed struct {
	field string // as the source lists it
	path  path.Path
}

// indexes compiles what the sources list in their index.
func indexes(cfg *config.Config) (map[string][]indexed, config.Problems) {
	all := map[string][]indexed{}
	var problems config.Problems
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		key := config.Join(config.Item("source", i), "index")
		if len(s.Index) > maxIndexed {
			problems = append(problems, config.Problem{Path: key, Message: "lists more than 16 places",
				Hint: "list what you search by: each place is a row for every event"})
		}
		for n, field := range s.Index {
			p, err := path.Parse(field)
			if err == nil && !p.Optional() && event.IsIndexField(field) {
				all[s.Name] = append(all[s.Name], indexed{field, p})
				continue
			}
			problem := config.Problem{Path: config.Item(key, n), Message: "is no place that events can be found by",
				Hint: "body.data.object.customer, header.x-shop, query.a or form.b, without a question mark"}
			if err != nil {
				problem.Message += ": " + err.Error()
			}
			problems = append(problems, problem)
		}
	}
	return all, problems
}

// placesOf are the values of a body at the places that its source lists. One
// that is not shown is none of them.
func placesOf(places []indexed, payload event.Payload) []page.Place {
	var list []page.Place
	for _, value := range valuesOf(places, payload) {
		for _, place := range places {
			if place.field == value.Field && place.path.Root() == path.Body && value.Value != path.Redacted {
				list = append(list, page.Place{IndexValue: value, Steps: place.path.Steps()})
			}
		}
	}
	return list
}

// valuesOf are the values of an event at the places that its source lists. What
// is not there, is no single value or is too long is left out.
func valuesOf(places []indexed, payload event.Payload) []event.IndexValue {
	var values []event.IndexValue
	doc := path.NewDocument(payload)
	for _, place := range places {
		v, found, err := doc.Get(place.path)
		if err != nil || !found {
			continue
		}
		switch v.Kind {
		case path.String, path.Number, path.Bool:
			if text := v.Text(); text != "" && len(text) <= event.MaxIndexValue {
				values = append(values, event.IndexValue{Field: place.field, Value: text})
			}
		}
	}
	return values
}
