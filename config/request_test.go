package config

import (
	"strings"
	"testing"
)

// TestRequestProblems finds requests of an owner's own that contradict
// themselves.
func TestRequestProblems(t *testing.T) {
	t.Parallel()
	const head = "[destination.x]\nurl = \"https://chat.example.com/{setting.a}\"\n"
	for name, c := range map[string]struct {
		text, path, says string
		warning          bool
	}{
		"two forms":        {head + "body = { text = \"a\", json = { b = \"c\" } }", "destination.x.body", "more than one of", false},
		"no form":          {head + "body = { type = \"text/plain\" }", "destination.x.body", "says nothing", false},
		"GET with a body":  {head + "method = \"GET\"\nbody = { text = \"a\" }", "destination.x.body", "stands beside method", false},
		"GET and a size":   {head + "method = \"GET\"\nmax_body = \"1KB\"", "destination.x.max_body", "no body is sent", false},
		"a size beside it": {head + "max_body = \"1KB\"\nbody = { text = \"a\" }", "destination.x.max_body", "means nothing beside", false},
		"a time alone":     {head + "body_url_ttl = \"1h\"", "destination.x.body_url_ttl", "without max_body", true},
		"no size":          {head + "max_body = \"0B\"", "destination.x.max_body", "more than nothing", false},
		"another method":   {head + "method = \"DELETE\"", "destination.x.method", "not known here", false},
		"a setting's name": {head + "settings = { \"a b\" = \"c\" }", "destination.x.settings.\"a b\"", "can not stand in a template", false},
		"a number as text": {head + "body = { form = { a = 1 } }", "destination.x.body.form.a", "must be text", false},
		"of a command":     {"[destination.x]\ncommand = [\"/bin/true\"]\nbody = { text = \"a\" }", "destination.x.body", "means nothing for a command", false},
		"of a folder":      {"[destination.x]\nfolder = \"a\"\nmax_body = \"1KB\"", "destination.x.max_body", "means nothing for a folder", false},
		"a secret in it":   {head + "settings = { token = \"abcdefghijkl\" }", "destination.x.settings.token", "stands in the configuration itself", true},
	} {
		_, problems := Parse("", []byte(c.text), lookup())
		found := false
		for _, p := range problems {
			found = found || p.Path == c.path && strings.Contains(p.Message+p.Hint, c.says) && p.Warning == c.warning
		}
		if !found {
			t.Errorf("%s: %s", name, problems)
		}
	}
	cfg, problems := Parse("", []byte(head+`settings = { a = "room" }
[destination.x.body]
json = [ { a = [1, 2.5, true, "{body.x}"] }, "b" ]
`), lookup())
	if faults := problems.Faults(); len(faults) > 0 {
		t.Fatal(faults)
	}
	if list, ok := cfg.Destinations["x"].Body.JSON.([]any); !ok || len(list) != 2 {
		t.Errorf("%#v", cfg.Destinations["x"].Body.JSON)
	}
}
