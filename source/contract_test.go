package source

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"creel/config"
)

var update = flag.Bool("update", false, "write docs/providers.md anew")

const providersPage = "../docs/providers.md"

func TestGateR12Contracts(t *testing.T) {
	t.Parallel()
	presets := Presets()
	if len(presets) < 7 {
		t.Fatalf("only %d presets", len(presets))
	}
	for _, p := range presets {
		_, ok, problems := preset(p.Name)
		if !ok || len(problems) > 0 {
			t.Errorf("%s: %v", p.Name, problems)
		}
		if p.Title == "" || p.Docs == "" || p.Secret == "" || len(p.Sources) == 0 {
			t.Errorf("%s: title, docs, secret or sources are missing", p.Name)
		}
		for _, fact := range p.Contract.Facts() {
			if fact.Is == "" || fact.From == "" {
				t.Errorf("%s: the contract does not state its %s, or not from where", p.Name, fact.Name)
			}
		}
		warned(t, p)
	}
}

// warned: what a contract does not know, and what it can lose, is told.
func warned(t *testing.T, p Preset) {
	t.Helper()
	sub := subject{cfg: config.Source{Provider: p.Name}}
	sub.finish(t)
	advice := mustCompile(t, sub.cfg).ContractAdvice("source[0]", false)
	text := advice.Error()
	for _, fact := range p.Contract.Facts()[:5] {
		if fact.Known() == strings.Contains(text, fact.Name) {
			t.Errorf("%s: %s is %q and the warnings say %q", p.Name, fact.Name, fact.Is, text)
		}
	}
	once := p.Contract.Retries.Is == "none"
	if once != strings.Contains(text, "every event once") {
		t.Errorf("%s: retries %q and the warnings say %q", p.Name, p.Contract.Retries.Is, text)
	}
	// It is a warning where a list can be read, and a note where nothing can be
	// done.
	for _, problem := range advice {
		want := config.LevelNote
		if p.Reconcile != nil && !strings.Contains(problem.Message, "does not say") {
			want = config.LevelWarning
		}
		if problem.Level() != want {
			t.Errorf("%s: %q is a %s, want a %s", p.Name, problem.Message, problem.Level(), want)
		}
	}
}

func TestGateR12ProvidersPage(t *testing.T) {
	t.Parallel()
	want := renderProviders(Presets())
	if *update {
		if err := os.WriteFile(providersPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(providersPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/providers.md is not what the presets say: go test ./source -run ProvidersPage -update")
	}
}

func renderProviders(presets []Preset) string {
	var b strings.Builder
	b.WriteString("# Providers\n\nGenerated from the presets in source/presets; `go test ./source -run ProvidersPage -update` writes it anew.\n" +
		"Each fact stands with the place where it was found; `unknown` means that nothing was found, and `creel check` warns about it.\n" +
		"A sender that is not listed is described under `[source.verify]` in the same language.\n\n")
	b.WriteString("| provider | preset | signature over | integrity | second key by body |\n|---|---|---|---|---|\n")
	for _, p := range presets {
		s := compiledForDocs(p)
		second := "no"
		if s.BodyWindow() > 0 {
			second = fmt.Sprintf("%d days", int(s.BodyWindow().Hours())/24)
		}
		fmt.Fprintf(&b, "| [%s](%s) | `%s` | `%s` | %s | %s |\n", p.Title, p.Docs, p.Name, p.Scheme.Signed, s.Integrity(), second)
	}
	for _, p := range presets {
		fmt.Fprintf(&b, "\n## %s\n\n`provider = \"%s\"`. Secret: %s.\n\n%s\n\n", p.Title, p.Name, p.Secret, p.Notes)
		b.WriteString("| identity | where it stands |\n|---|---|\n")
		for _, row := range []struct {
			name string
			list []string
		}{{"event id", p.Scheme.ID}, {"type", p.Scheme.Type}, {"account", p.Scheme.Account}, {"object", p.Scheme.Object}, {"version", p.Scheme.Version}} {
			if len(row.list) > 0 {
				fmt.Fprintf(&b, "| %s | `%s` |\n", row.name, strings.Join(row.list, "`, else `"))
			}
		}
		b.WriteString("\n| contract | | found in |\n|---|---|---|\n")
		for _, fact := range p.Contract.Facts() {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", fact.Name, fact.Is, fact.From)
		}
		if list := p.List(); list != "" {
			fmt.Fprintf(&b, "| `creel reconcile` reads | %s | source/presets/%s.toml |\n", list, p.Name)
		}
		fmt.Fprintf(&b, "\nScheme from: %s.\n", strings.Join(p.Sources, "; "))
	}
	return b.String()
}

func compiledForDocs(p Preset) *Source {
	secret := writeSecret(&p.Scheme, []byte("a secret for the documents"))
	s, _ := Compile(config.Source{Name: p.Name, Provider: p.Name, PublicURL: "https://hooks.example.com/in/" + p.Name,
		Secrets: []config.Secret{config.NewSecret(secret)}}, "source[0]", noEnv)
	return s
}

func TestContractOf(t *testing.T) {
	t.Parallel()
	if c, ok := ContractOf("github"); !ok || c.Retries.Is != "none" {
		t.Errorf("%+v", c)
	}
	if _, ok := ContractOf("nobody"); ok {
		t.Error("a preset that does not exist has a contract")
	}
	if names := presetNames(); !slices.IsSorted(names) {
		t.Errorf("presets are not sorted: %q", names)
	}
	if text := gen(t, nil).ContractAdvice("source[0]", false); text != nil {
		t.Errorf("a sender without a contract: %v", text)
	}
}
