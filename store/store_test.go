package store

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
)

// newStore opens a store on a fresh file, with a table of the tests' own.
func newStore(t testing.TB, change ...func(*Options)) *Store {
	t.Helper()
	o := Options{Path: filepath.Join(t.TempDir(), "creel.db"), Log: zerolog.Nop()}
	for _, c := range change {
		c(&o)
	}
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	must(t, s.write(context.Background(), work, 1, func(tx *tx) error {
		_, err := tx.exec("CREATE TABLE IF NOT EXISTS app_test (id INTEGER PRIMARY KEY, name TEXT UNIQUE, body BLOB) STRICT")
		return err
	}))
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put is a unit's function that inserts one row.
func put(name string, body []byte) func(*tx) error {
	args := bind(name, body)
	return func(tx *tx) error {
		_, _, err := tx.insertBound("INSERT INTO app_test (name, body) VALUES (?, ?)", args)
		return err
	}
}

func count(t testing.TB, s *Store) int {
	t.Helper()
	var n int
	must(t, s.row(context.Background(), "SELECT count(*) FROM app_test", nil, &n))
	return n
}

func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	must(t, s.write(context.Background(), intake, 1, put("a", []byte{})))
	if n := count(t, s); n != 1 {
		t.Fatalf("%d rows, want 1", n)
	}
}
