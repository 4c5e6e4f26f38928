package store

import (
	"database/sql/driver"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSplitSQL(t *testing.T) {
	t.Parallel()
	for text, parts := range map[string][]string{
		"":                            nil,
		" ;; \n ; -- nothing":         nil,
		"\ufeffSELECT 1":              {"SELECT 1"},
		"SELECT 1":                    {"SELECT 1"},
		"SELECT 1 ; -- end":           {"SELECT 1"},
		"a;b;c;":                      {"a", "b", "c"},
		"SELECT ';'; SELECT \";\"":    {"SELECT ';'", `SELECT ";"`},
		"SELECT 'it''s;'; x":          {"SELECT 'it''s;'", "x"},
		"SELECT [a;b], `c;d`; x":      {"SELECT [a;b], `c;d`", "x"},
		"SELECT /* ; */ 1 /* ; */; x": {"SELECT /* ; */ 1", "x"},
		"SELECT 1 -- ;\n+ 2; x":       {"SELECT 1 -- ;\n+ 2", "x"},
		"CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; SELECT CASE WHEN 1 THEN 2 END; END; x": {
			"CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; SELECT CASE WHEN 1 THEN 2 END; END", "x"},
		"create temp trigger t begin select 1; end; x":          {"create temp trigger t begin select 1; end", "x"},
		"CREATE /**/ TEMPORARY -- \n TRIGGER t BEGIN a; END; x": {"CREATE /**/ TEMPORARY -- \n TRIGGER t BEGIN a; END", "x"},
		"CREATE TABLE trigger_x (a); x":                         {"CREATE TABLE trigger_x (a)", "x"},
		"CREATE TABLE t (trigger); end; x":                      {"CREATE TABLE t (trigger)", "end", "x"},
	} {
		got, err := splitSQL(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		var texts []string
		for _, p := range got {
			texts = append(texts, p.text)
		}
		if diff := cmp.Diff(parts, texts); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestSplitSQLNamesParameters(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		params  []string
		unnamed string
	}{
		":a, :b_2, :A, :a":                    {[]string{"a", "b_2", "A"}, ""},
		"':a' \":b\" [:c] `:d` /* :e */ --:f": {nil, ""},
		"a:b":                                 {[]string{"b"}, ""},
		"?":                                   {nil, "?"},
		"?12":                                 {nil, "?12"},
		"@a":                                  {nil, "@a"},
		"$a":                                  {nil, "$a"},
		"#1":                                  {nil, "#1"},
		":1":                                  {nil, ":1"},
		":é":                                  {nil, ":é"},
		":a$b":                                {nil, ":a$b"},
		":a::b":                               {nil, ":a::b"},
		":a(b)":                               {nil, ":a("},
		"a$b":                                 {nil, ""},
		"x->'$.a' || y->>'b'":                 {nil, ""},
		"1:a":                                 {[]string{"a"}, ""},
	} {
		got, err := splitSQL(text)
		if err != nil || len(got) != 1 {
			t.Fatalf("%q: %v, %v", text, got, err)
		}
		if diff := cmp.Diff(c.params, got[0].params); diff != "" || got[0].unnamed != c.unnamed {
			t.Errorf("%q: unnamed %q, %s", text, got[0].unnamed, diff)
		}
	}
}

func TestSplitSQLTellsTheLine(t *testing.T) {
	t.Parallel()
	got, err := splitSQL("\n-- one\n\nSELECT\n'a\nb'\n;\n/*\n*/ SELECT 2; SELECT [\n];\nSELECT 3")
	must(t, err)
	var lines []int
	for _, p := range got {
		lines = append(lines, p.line)
	}
	if diff := cmp.Diff([]int{4, 9, 9, 11}, lines); diff != "" {
		t.Error(diff)
	}
	for text, line := range map[string]int{
		"SELECT 1;\n\n'open": 3, "\n\"open": 2, "\n\n[open": 3, "\n/* open": 2, "\n\n`open\n": 3, "a\n\x00": 2,
	} {
		_, err := splitSQL(text)
		cut, is := err.(*textError)
		if !is || cut.line != line {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzSQL compares the splitting with SQLite's own: what is one statement here
// has nothing behind it there, and has the same parameters.
func FuzzSQL(f *testing.F) {
	for _, text := range []string{
		"SELECT 1", "SELECT ';' ; SELECT 2", "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END; SELECT 1",
		"INSERT INTO app_a VALUES (:a, :b)", "INSERT INTO a VALUES (:a, 'x:b', $c, ?1, @d, :e::f, :g(h))", "SELECT /* ' */ 1 -- '\n; SELECT [x]]", "select x'ab';;",
		"SELECT 1.e5:a, 0x1G, \"\"\"\", ```` ", "WITH a AS (SELECT 1) SELECT 1; end; end;", "select 1 /*", "\ufeffselect #1", "select a$b",
	} {
		f.Add(text)
	}
	c, err := connect(dataSource(":memory:", shared(0)))
	must(f, err)
	f.Cleanup(func() { must(f, c.close()) })
	must(f, c.script("CREATE TABLE app_a (a, b)"))
	f.Fuzz(func(t *testing.T, text string) {
		parts, err := splitSQL(text)
		if err != nil {
			return
		}
		rest := text
		for _, p := range parts {
			at := strings.Index(rest, p.text)
			if at < 0 || p.text == "" {
				t.Fatalf("%q: %q does not stand in it", text, p.text)
			}
			rest = rest[at+len(p.text):]
			again, err := splitSQL(p.text)
			if err != nil || len(again) != 1 || again[0].text != p.text {
				t.Fatalf("%q is split again into %v, %v", p.text, again, err)
			}
			s, err := c.compile(p.text)
			if err != nil {
				continue // a fault that SQLite names
			}
			one := reflect.ValueOf(s.closer).Elem().FieldByName("pstmt").Uint() != 0
			must(t, s.closer.Close())
			if !one && p.verb() != "explain" {
				t.Fatalf("SQLite sees more than one statement in %q", p.text)
			}
			if p.unnamed != "" || checkVerb(&p, ruleVerbs...) != nil {
				continue
			}
			args := make(bound, len(p.params))
			for i, name := range p.params {
				args[i] = driver.NamedValue{Name: name, Ordinal: i + 1, Value: "1"}
			}
			err = c.runOwn(p.text, args, time.Now().Add(time.Second))
			if err != nil && strings.Contains(err.Error(), "missing") && resultCode(err) == 0 {
				t.Fatalf("%q: %v, with %v", p.text, err, p.params)
			}
		}
	})
}
