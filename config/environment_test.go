package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const oneSource = "[[source]]\nname = \"gen\"\nprovider = \"x\"\n"

// The file is weaker than the environment, key by key.
func TestEnvironmentOverFile(t *testing.T) {
	t.Parallel()
	secret := write(t, "password", "correct horse battery staple\r\n")
	proxies := write(t, "proxies", "10.0.0.0/8,192.168.0.0/16\n")
	name := write(t, "creel.toml", "listen = \"127.0.0.1:1\"\npublic_url = \"https://a.example\"\n[log]\nlevel = \"debug\"\nformat = \"json\"\n"+oneSource)
	env := lookup(
		"CREEL_LISTEN", "127.0.0.1:2",
		"CREEL_DATABASE", "here.db",
		"CREEL_ADMIN_LISTEN", "127.0.0.1:3",
		"CREEL_ADMIN_PASSWORD_FILE", secret,
		"CREEL_SMTP_PASSWORD", "0123456789abcdef",
		"CREEL_SMTP_HOST", "127.0.0.1:25",
		"CREEL_LOG_LEVEL", "warn",
		"CREEL_GRACE", "30s",
		"CREEL_MIN_FREE", "100MiB",
		"CREEL_MAX_CONNECTIONS", "10",
		"CREEL_TRUSTED_PROXIES_FILE", proxies,
		"CREEL_ALERTS_TO", "a@example.com, b@example.com",
	)
	cfg, _, problems := Load(name, env)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := Default()
	want.Sources = cfg.Sources
	want.Listen, want.PublicURL, want.Database = "127.0.0.1:2", "https://a.example", "here.db"
	want.Admin = Admin{Listen: "127.0.0.1:3", Password: NewSecret("file:" + secret)}
	want.SMTP.Password, want.SMTP.Host = NewSecret("env:CREEL_SMTP_PASSWORD"), "127.0.0.1:25"
	want.Log = Log{Level: "warn", Format: "json"}
	want.Grace, want.MinFree, want.MaxConnections = Duration(30e9), 100<<20, 10
	want.TrustedProxies = []string{"10.0.0.0/8", "192.168.0.0/16"}
	want.Alerts.To = []string{"a@example.com", "b@example.com"}
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Error(diff)
	}
	plain, err := cfg.Admin.Password.Resolve(env)
	if err != nil || string(plain) != "correct horse battery staple" {
		t.Errorf("password: %q %v", plain, err)
	}
}

// A secret's variable may itself hold a reference.
func TestEnvironmentReference(t *testing.T) {
	t.Parallel()
	env := lookup("CREEL_ADMIN_PASSWORD", "env:OTHER", "OTHER", "correct horse battery staple")
	cfg, _, problems := Load("", env)
	if plain, err := cfg.Admin.Password.Resolve(env); err != nil || string(plain) != "correct horse battery staple" || len(problems) > 0 {
		t.Errorf("%q %v %v", plain, err, problems)
	}
}

// What is wrong with a variable names the variable, not the line of the file
// that it overrides.
func TestEnvironmentProblems(t *testing.T) {
	t.Parallel()
	name := write(t, "creel.toml", "listen = \"127.0.0.1:1\"\n"+oneSource)
	for _, c := range []struct {
		pairs   []string
		want    string
		warning bool
	}{
		{[]string{"CREEL_LISTEN", "8080"}, `CREEL_LISTEN: "8080" is not an address`, false},
		{[]string{"CREEL_GRACE", "600"}, `CREEL_GRACE: "600" is not understood`, false},
		{[]string{"CREEL_MAX_CONNECTIONS", "many"}, "CREEL_MAX_CONNECTIONS: is text, must be a whole number", false},
		{[]string{"CREEL_MAX_CONNECTIONS", "0"}, "CREEL_MAX_CONNECTIONS: 0 is too small", false},
		{[]string{"CREEL_TRUSTED_PROXIES", "10.0.0.0/8,x"}, `CREEL_TRUSTED_PROXIES: "x" is not a network`, false},
		{[]string{"CREEL_LOG_LEVEL", "loud"}, `CREEL_LOG_LEVEL: "loud" is not known here`, false},
		{[]string{"CREEL_LISTEN", "127.0.0.1:2", "CREEL_LISTEN_FILE", "x"}, "CREEL_LISTEN: is set, and so is CREEL_LISTEN_FILE", false},
		{[]string{"CREEL_LISTEN", ""}, "CREEL_LISTEN: is set and empty", true},
		{[]string{"CREEL_ADMIN_PASSWORD", ""}, "CREEL_ADMIN_PASSWORD: is set and empty", false},
		{[]string{"CREEL_ADMIN_PASSWORD_FILE", "/no/such/file"}, "CREEL_ADMIN_PASSWORD_FILE: the secret's file can not be read", false},
		{[]string{"CREEL_LISTEN_FILE", "/no/such/file"}, "CREEL_LISTEN_FILE: the file can not be read", false},
		{[]string{"CREEL_ADMIN_PASSWORD", "env:NOT_SET"}, "CREEL_ADMIN_PASSWORD: the environment variable NOT_SET is not set", false},
	} {
		_, _, problems := Load(name, lookup(c.pairs...))
		if len(problems) != 1 || !has(problems, c.want) || has(problems, name) || problems[0].Warning != c.warning {
			t.Errorf("%v: want %q, got %v", c.pairs, c.want, problems)
		}
	}
}

func TestUnknownVariables(t *testing.T) {
	t.Parallel()
	cfg, problems := Parse("creel.toml", []byte("[[source]]\nname = \"gen\"\nprovider = \"x\"\nsecrets = [\"env:CREEL_GEN\"]\n"), lookup("CREEL_GEN", "0123456789abcdef"))
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	got := cfg.UnknownVariables([]string{
		"CREEL_LISTEN=x", "CREEL_LISTEN_FILE=x", "CREEL_GEN=x", "CREEL_CONFIG=x", "HOME=x", "CREEL_PORT=tcp://10.0.0.1:80", "CREEL_SERVICE_HOST=x",
		"CREEL_LISTENN=x", "CREEL_ADMIN_PASWORD=canary", "CREEL_WHATEVER=x",
	}, "CREEL_CONFIG")
	if len(got) != 3 || len(got.Warnings()) != 3 || !has(got, "CREEL_LISTENN", "did you mean CREEL_LISTEN?") ||
		!has(got, "CREEL_ADMIN_PASWORD", "did you mean CREEL_ADMIN_PASSWORD?") || !has(got, "CREEL_WHATEVER", "frame") || has(got, "canary") {
		t.Error(got)
	}
}

// Every key of the frame has a variable.
func TestVariables(t *testing.T) {
	t.Parallel()
	variables := Variables()
	for name, path := range map[string]string{
		"CREEL_LISTEN": "listen", "CREEL_PUBLIC_URL": "public_url", "CREEL_DATABASE": "database", "CREEL_ADMIN_LISTEN": "admin.listen",
		"CREEL_ADMIN_PUBLIC_URL": "admin.public_url", "CREEL_ADMIN_PASSWORD": "admin.password", "CREEL_LOG_FORMAT": "log.format",
		"CREEL_WORKER_TIMEOUT": "worker.timeout", "CREEL_SMTP_HOST": "smtp.host", "CREEL_ALERTS_TO": "alerts.to",
	} {
		if variables[name] != path {
			t.Errorf("%s: %q, want %q", name, variables[name], path)
		}
	}
	if _, ok := variables["CREEL_SOURCE"]; ok {
		t.Error("sources have no variable")
	}
}
