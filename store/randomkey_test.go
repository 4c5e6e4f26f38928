package store

import (
	"bytes"
	"context"
	"errors"
	"testing"
)

// A key is made once, is another for another name and another database, and
// survives a restart.
func TestRandomKey(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	get := func(name string) []byte {
		key, err := sc.RandomKey(context.Background(), sc.now, name)
		must(t, err)
		if len(key) != randomKeySize || bytes.Equal(key, make([]byte, randomKeySize)) {
			t.Fatalf("the key is %x", key)
		}
		return key
	}
	first := get("body")
	if bytes.Equal(first, get("other")) || !bytes.Equal(first, get("body")) {
		t.Error("keys of two names are equal, or two of one differ")
	}
	sc.crash("boot2")
	if !bytes.Equal(first, get("body")) {
		t.Error("the key is another after a restart")
	}
	must(t, sc.KeepSetting(context.Background(), sc.now, "body", "abcd"))
	if _, err := sc.RandomKey(context.Background(), sc.now, "body"); !errors.Is(err, errRandomKey) {
		t.Errorf("a key of two bytes: %v", err)
	}
	other := newScene(t)
	if key, err := other.RandomKey(context.Background(), other.now, "body"); err != nil || bytes.Equal(key, first) {
		t.Errorf("two databases share a key: %v", err)
	}
}
