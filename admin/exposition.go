package admin

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"creel/meter"
)

// The text format of Prometheus, version 0.0.4, as
// https://prometheus.io/docs/instrumenting/exposition_formats/ describes it.
const expositionType = "text/plain; version=0.0.4; charset=utf-8"

// Family is one metric with its labels.
type Family struct {
	Name   string
	Kind   string // counter, gauge or histogram
	Labels []string
	Help   string // one line
}

// Exposition collects the samples of one scrape. It takes what the table of
// families knows and nothing else.
type Exposition struct {
	families []Family
	places   map[string]int
	samples  []bytes.Buffer // of each family
	wrong    error          // the first sample that no family has
}

// NewExposition begins a scrape.
func NewExposition(families []Family) *Exposition {
	e := &Exposition{families: families, places: make(map[string]int, len(families)), samples: make([]bytes.Buffer, len(families))}
	for i := range families {
		e.places[families[i].Name] = i
	}
	return e
}

// Value adds a sample of a counter or a gauge, with a value for each label.
func (e *Exposition) Value(name string, value float64, labels ...string) {
	if into, family := e.family(name, labels); into != nil && family.Kind != histogram {
		line(into, name, family.Labels, labels, "", value)
	} else if into != nil {
		e.wrong = fmt.Errorf("metric %s is a histogram", name)
	}
}

// Count is Value of a whole number.
func (e *Exposition) Count(name string, n int64, labels ...string) {
	e.Value(name, float64(n), labels...)
}

// Flag is Value of 1 for true and 0 for false.
func (e *Exposition) Flag(name string, is bool, labels ...string) {
	value := 0.0
	if is {
		value = 1
	}
	e.Value(name, value, labels...)
}

// Time is Value of a moment, in seconds since 1970; the zero time is not
// written.
func (e *Exposition) Time(name string, at time.Time, labels ...string) {
	if !at.IsZero() {
		e.Value(name, float64(at.UnixMilli())/1000, labels...)
	}
}

// Histogram adds the buckets, the sum and the count of a histogram.
func (e *Exposition) Histogram(name string, h meter.Reading, labels ...string) {
	into, family := e.family(name, labels)
	if into == nil {
		return
	}
	if family.Kind != histogram {
		e.wrong = fmt.Errorf("metric %s is no histogram", name)
		return
	}
	for i, bound := range h.Bounds {
		line(into, name+"_bucket", family.Labels, labels, figure(bound.Seconds()), float64(h.Below[i]))
	}
	line(into, name+"_bucket", family.Labels, labels, "+Inf", float64(h.Count))
	line(into, name+"_sum", family.Labels, labels, "", h.Sum.Seconds())
	line(into, name+"_count", family.Labels, labels, "", float64(h.Count))
}

func (e *Exposition) family(name string, labels []string) (*bytes.Buffer, *Family) {
	place, known := e.places[name]
	if !known || len(e.families[place].Labels) != len(labels) {
		e.wrong = fmt.Errorf("no metric %s with %d labels", name, len(labels))
		return nil, nil
	}
	return &e.samples[place], &e.families[place]
}

// Write writes the scrape: each family once, with its samples, in the order of
// the table. A family without a sample is left out.
func (e *Exposition) Write(w io.Writer) error {
	if e.wrong != nil {
		return e.wrong
	}
	var page bytes.Buffer
	for i := range e.families {
		f := &e.families[i]
		if e.samples[i].Len() == 0 {
			continue
		}
		fmt.Fprintf(&page, "# HELP %s %s\n# TYPE %s %s\n", f.Name, helpEscapes.Replace(f.Help), f.Name, f.Kind)
		page.Write(e.samples[i].Bytes())
	}
	_, err := page.WriteTo(w)
	return err
}

// line writes one sample; le is the bound of a bucket, "" for none.
func line(into *bytes.Buffer, name string, names, values []string, le string, value float64) {
	into.WriteString(name)
	sep := byte('{')
	pair := func(name, value string) {
		into.WriteByte(sep)
		into.WriteString(name)
		into.WriteString(`="`)
		_, _ = labelEscapes.WriteString(into, value) // a buffer takes everything
		into.WriteByte('"')
		sep = ','
	}
	for i := range names {
		pair(names[i], values[i])
	}
	if le != "" {
		pair("le", le)
	}
	if sep == ',' {
		into.WriteByte('}')
	}
	into.WriteByte(' ')
	into.WriteString(figure(value))
	into.WriteByte('\n')
}

var (
	labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

func figure(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "+Inf"
	case math.IsInf(f, -1):
		return "-Inf"
	case f == math.Trunc(f) && math.Abs(f) < 1<<53:
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
