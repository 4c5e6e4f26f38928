package source

import (
	"embed"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"creel/config"
)

//go:embed presets/*.toml
var presetFiles embed.FS

// Preset is what is known about one sender: data, in the language that an
// owner writes.
type Preset struct {
	Name   string `toml:"-"`
	Title  string `toml:"title"`
	Docs   string `toml:"docs"`   // the sender's own page about its webhooks
	Secret string `toml:"secret"` // where the secret is found, for hints
	Notes  string `toml:"notes"`  // what an owner should know

	// Coarse says that versions have whole seconds, so that two events of one
	// second tie.
	Coarse   bool          `toml:"coarse_version"`
	Sources  []string      `toml:"sources"` // where the scheme's facts were found
	Scheme   config.Scheme `toml:"verify"`
	Contract Contract      `toml:"contract"`
	Samples  []Sample      `toml:"sample"`
	// Reconcile is how the sender's list of events is read; nil where too
	// little is known of it.
	Reconcile *config.Reconcile `toml:"reconcile"`
}

// Sample is an event that looks like the sender's own, for creel send.
type Sample struct {
	Type   string            `toml:"type"`
	Header map[string]string `toml:"header"`
	Body   string            `toml:"body"`
}

// Presets lists every preset by name. It reads the embedded files anew: what
// it returns is the caller's.
func Presets() []Preset {
	var out []Preset
	for _, name := range presetNames() {
		if p, ok, _ := preset(name); ok {
			out = append(out, *p)
		}
	}
	return out
}

func presetNames() []string {
	entries, err := presetFiles.ReadDir("presets")
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".toml"))
	}
	slices.Sort(names)
	return names
}

// List says in a line how missed events of the sender are looked for; "" where
// the preset does not know.
func (p Preset) List() string {
	r := p.Reconcile
	if r == nil {
		return ""
	}
	text := orElse(r.Method, "GET") + " " + strings.Join(r.URL, ", ") + " with a token"
	if r.Reach > 0 {
		text += fmt.Sprintf(", %d days back", int(time.Duration(r.Reach).Hours())/24)
	}
	if r.Again != "" {
		text += "; --redeliver asks for another delivery"
	}
	return text
}

// preset reads one preset with the decoder that reads an owner's file.
func preset(name string) (*Preset, bool, config.Problems) {
	if !slices.Contains(presetNames(), name) {
		return nil, false, nil
	}
	data, err := presetFiles.ReadFile(path.Join("presets", name+".toml"))
	if err != nil {
		return nil, false, nil
	}
	p := &Preset{Name: name}
	problems := config.DecodeStrict(data, p)
	return p, true, problems
}

// overlay lays what an owner wrote over a preset: a field that is written
// wins whole.
func overlay(base, over config.Scheme) config.Scheme {
	to, from := reflect.ValueOf(&base).Elem(), reflect.ValueOf(over)
	for i := range from.NumField() {
		if !from.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	return base
}
