package page

import (
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"creel/admin"
	"creel/event"
)

// functions are what the templates may call.
func functions(prefix string) template.FuncMap {
	return template.FuncMap{
		"link":          func(path string) string { return prefix + path },
		"event":         func(key event.Key) string { return prefix + eventPath(key) },
		"time":          clockTime,
		"hour":          func(at time.Time) string { return at.UTC().Format(time.TimeOnly) },
		"iso":           func(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) },
		"size":          size,
		"count":         count,
		"tone":          tone,
		"long":          long,
		"join":          strings.Join,
		"query":         func(pairs ...string) template.URL { return template.URL(query(pairs)) },
		"words":         words,
		"text":          func(state any) string { return fmt.Sprint(state) },
		"bytes":         func(n int) int64 { return int64(n) },
		"webhook":       func(d event.Delivery) string { return event.WebhookID(d.Key, d.Destination) },
		"body":          func(body []byte) string { return showBody(body, true).Text },
		"head":          showHead,
		"snippet":       snippet,
		"answer":        admin.AnswerLine,
		"secretHint":    admin.SecretHint,
		"subject":       admin.Subject,
		"receivedKinds": receivedKinds, "sentKinds": sentKinds, "part": event.EscapePart,
		"deadOf": deadOf, "stateOf": stateOf, "stateWith": stateWith, "counted": counted, "hold": hold, "standstill": standstill, "several": several,
		"menu": menu, "behind": behind, "dict": dict, "chosen": chosen, "choices": choices, "name": nameOf,
		"visible": func(text any) string { shown, _ := visible([]byte(fmt.Sprint(text))); return shown }, "hides": hides,
		"bars": bars, "hours": hoursOf, "measured": measured, "standing": standing, "titleOf": titleOf, "calmness": calmness, "manner": manner,
	}
}

// eventPath is where an event is shown. The key stands in the query, where no
// proxy and no browser takes its slashes and dots for steps.
func eventPath(key event.Key) string { return "/event?key=" + url.QueryEscape(key.String()) }

// clockTime is a time as the lists show it, in UTC.
func clockTime(at time.Time) string {
	if at.IsZero() {
		return "–"
	}
	return at.UTC().Format("2006-01-02 15:04:05")
}

// size is a number of bytes in words.
func size(bytes int64) string {
	switch {
	case bytes < 1<<10:
		return strconv.FormatInt(bytes, 10) + " B"
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	case bytes < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// count groups the digits of a number by threes.
func count(n any) string {
	text := fmt.Sprint(n)
	digits, negative := strings.CutPrefix(text, "-")
	var b strings.Builder
	for i, r := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	if negative {
		return "-" + b.String()
	}
	return b.String()
}

// long is a length of time, in its two largest units.
func long(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// tone is the class beside a state's word: colour never stands alone.
func tone(state any) string {
	switch fmt.Sprint(state) {
	case "done", "sent", "enabled", "ok", "applied", "already applied":
		return "good"
	case "dead", "disabled", "permanent", "firing":
		return "bad"
	case "in_doubt", "held", "paused", "transient", "unknown", "waiting", "stale":
		return "warn"
	}
	return "calm"
}

// query writes names and values as a query, leaving the empty ones out.
func query(pairs []string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// explain turns an error into what the operator reads.
func explain(err error) (status int, text string) {
	switch {
	case errors.Is(err, event.ErrNotFound):
		return http.StatusNotFound, "There is nothing of that name."
	case errors.Is(err, event.ErrUnavailable), errors.Is(err, event.ErrBusy):
		return http.StatusServiceUnavailable, "The store can not answer now. Try again in a moment; the log says why."
	}
	if errors.Is(err, admin.ErrRefused) {
		return http.StatusUnprocessableEntity, strings.ToUpper(err.Error()[:1]) + err.Error()[1:] + "."
	}
	return http.StatusInternalServerError, "That did not work; the log says why."
}

// choice is one entry of a list to choose from.
type choice struct {
	Value, Text string
	Chosen      bool
}

// chosen are names to choose from; what is chosen and not among them stays.
func chosen(names []string, now string) []choice {
	var all []choice
	known := now == ""
	for _, name := range names {
		all = append(all, choice{name, name, name == now})
		known = known || name == now
	}
	if !known {
		all = append(all, choice{now, now, true})
	}
	return all
}

// choices are pairs of a value and its text.
func choices(now string, pairs ...string) []choice {
	var all []choice
	known := now == ""
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, choice{pairs[i], pairs[i+1], pairs[i] == now})
		known = known || pairs[i] == now
	}
	if !known {
		all = append(all, choice{now, now, true})
	}
	return all
}

// dict is a map of names and values, to hand more than one to a part.
func dict(pairs ...any) (map[string]any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, errPairs
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

var errPairs = errors.New("page: a name is a text")

// nameOf is the id of an event as its sender wrote it.
func nameOf(e event.Event) string {
	if e.LongID != "" {
		return e.LongID
	}
	return e.Key.ID
}

// manner is how an action is done, where that is not the usual way.
func manner(a event.Action) string {
	var parts []string
	if a.Resend {
		parts = append(parts, "sends again what was sent")
	}
	if a.Rate > 0 {
		parts = append(parts, strconv.FormatFloat(a.Rate, 'g', 4, 64)+" events a second at most")
	}
	return strings.Join(parts, ", ")
}
