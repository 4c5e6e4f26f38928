package config

import (
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"pgregory.net/rapid"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"10s": 10 * time.Second, "1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute, "250ms": 250 * time.Millisecond,
		"7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "0.5d": 12 * time.Hour, "0s": 0, "168h": 168 * time.Hour,
	} {
		if got, err := ParseDuration(text); err != nil || time.Duration(got) != want {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Size{
		"0B": 0, "512B": 512, "256KB": 256_000, "256kB": 256_000, "256KiB": 262_144, "1MB": 1_000_000, "1MiB": 1 << 20, "25MiB": 25 << 20,
		"2GB": 2e9, "2GiB": 2 << 30, "1TB": 1e12, "1TiB": 1 << 40,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%s: %d %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "1", "KB", "1 MB", "-1B", "+1B", "1.5MB", "1mb", "1M", "1Mib", "1MBit", "99999999999999999999B", "9999999999TiB", "0x1B", "1_000B"} {
		if got, err := ParseSize(bad); err == nil {
			t.Errorf("%q became %d", bad, got)
		}
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Rate{"50/s": 50, "120/m": 2, "3600/h": 1, "0.5/s": 0.5} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "50", "/s", "50/", "50/d", "50 /s", "50/ s", "0/s", "-1/s", "NaN/s", "Inf/s", "1e3/s", "50/s/s", "50/min", "1e400/s", "9999999999999/s"} {
		if got, err := ParseRate(bad); err == nil {
			t.Errorf("%q became %v", bad, got)
		}
	}
}

// What a value prints is what it reads.
func TestValuesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := Duration(rapid.Int64Range(0, 1<<62).Draw(t, "duration"))
		if got, err := ParseDuration(d.String()); err != nil || got != d {
			t.Fatalf("%s: %v %v", d, got, err)
		}
		s := Size(rapid.Int64Range(0, 1<<62).Draw(t, "size"))
		if got, err := ParseSize(s.String()); err != nil || got != s {
			t.Fatalf("%s: %d %v", s, got, err)
		}
		n := rapid.IntRange(1, 100_000).Draw(t, "rate")
		r := Rate(float64(n) / rapid.SampledFrom([]float64{1, 60, 3600}).Draw(t, "unit"))
		if got, err := ParseRate(r.String()); err != nil || got-r > 1e-9*r || r-got > 1e-9*r {
			t.Fatalf("%s: %v %v, want %v", r, got, err, r)
		}
	})
	if text := Rate(0).String() + Size(0).String(); text != "0B" {
		t.Error(text)
	}
}

// The values are strict with the plain TOML decoder too.
func TestValuesWithPlainDecoder(t *testing.T) {
	t.Parallel()
	type all struct {
		D Duration
		S Size
		R Rate
		L StringList
	}
	var got all
	if _, err := toml.Decode("d = \"5s\"\ns = \"1KB\"\nr = \"1/s\"\nl = \"a\"", &got); err != nil || got.D != 5e9 || got.S != 1000 || got.R != 1 || len(got.L) != 1 {
		t.Errorf("%+v %v", got, err)
	}
	for _, bad := range []string{"d = 5", "s = 5", "r = 5", "l = 5", "l = [1]", "d = \"5\""} {
		if _, err := toml.Decode(bad, &all{}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
