package source

import (
	"embed"
	"path"
	"reflect"
	"slices"
	"strings"

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

	Sources  []string      `toml:"sources"` // where the scheme's facts were found
	Scheme   config.Scheme `toml:"verify"`
	Contract Contract      `toml:"contract"`
	Samples  []Sample      `toml:"sample"`
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
