package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLines(t *testing.T) {
	t.Parallel()
	const text = `# one
a = 1 # = [x]
"b c" = "= # \" [y]"
d.e.f = 'x'
long = """
[not.a.table]
g = 1 \"""
"""
raw = '''
h = 1
''''
list = [
  "one", # ]
  [ 1,
    2 ],
  { i = 1, j = [
    3 ] },
]

[table]
a = 1
[table.sub]
a = 1

[[source]]
name = "x"
  [source.verify]
  id = "y"
  [[source.verify.challenge]]
  method = "GET"
  [[source.verify.challenge]]
  method = "GET"
[[source]]
name = "z"
[source.verify]
id = 1
[ destination . "a.b" ]
url = 2020-01-01T00:00:00Z
`
	got, deep := scanLines(text)
	want := map[string]int{
		"a": 2, `"b c"`: 3, "d": 4, "d.e": 4, "d.e.f": 4, "long": 5, "raw": 9,
		"list": 12, "list[0]": 13, "list[1]": 14, "list[1][0]": 14, "list[1][1]": 15, "list[2]": 16, "list[2].i": 16, "list[2].j": 16, "list[2].j[0]": 17,
		"table": 20, "table.a": 21, "table.sub": 22, "table.sub.a": 23,
		"source": 25, "source[0]": 25, "source[0].name": 26, "source[0].verify": 27, "source[0].verify.id": 28,
		"source[0].verify.challenge": 29, "source[0].verify.challenge[0]": 29, "source[0].verify.challenge[0].method": 30,
		"source[0].verify.challenge[1]": 31, "source[0].verify.challenge[1].method": 32,
		"source[1]": 33, "source[1].name": 34, "source[1].verify": 35, "source[1].verify.id": 36,
		"destination": 37, `destination."a.b"`: 37, `destination."a.b".url`: 38,
	}
	if diff := cmp.Diff(want, map[string]int(got)); diff != "" || deep != 0 {
		t.Errorf("deep %d\n%s", deep, diff)
	}
	for path, line := range map[string]int{"source[1].verify.signed": 35, "source[1].secrets[0]": 33, `destination."a.b".headers."x.y"`: 37, "nothing": 0, "": 0} {
		if n := got.of(path); n != line {
			t.Errorf("%s: line %d, want %d", path, n, line)
		}
	}
}

// What nests too deep is told before the parser recurses on it, and what is
// no TOML at all ends in bounded time.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	const n = 200_000
	start := time.Now()
	for name, text := range map[string]string{
		"arrays":        "a = " + strings.Repeat("[", n),
		"closed arrays": "a = " + strings.Repeat("[", n) + strings.Repeat("]", n),
		"inline":        "a = " + strings.Repeat("{a=", n),
		"dots":          strings.Repeat("a.", n) + "a = 1",
		"header":        "[" + strings.Repeat("a.", n) + "a]",
		"list header":   "[[" + strings.Repeat("a.", n) + "a]]",
		"quotes":        "a = " + strings.Repeat(`"`, n),
		"apostrophes":   "a = " + strings.Repeat(`'`, n),
		"commas":        "a = [" + strings.Repeat(",", n),
		"equals":        strings.Repeat("=", n),
		"unfinished":    "a = [1,\n\"",
		"zero bytes":    strings.Repeat("\x00", n),
		"escapes":       `a = """` + strings.Repeat(`\`, n),
		"lines":         strings.Repeat("\n[", n),
	} {
		if _, problems := Parse("creel.toml", []byte(text), lookup()); len(problems) == 0 {
			t.Errorf("%s: no problem", name)
		}
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}
