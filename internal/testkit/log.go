package testkit

import (
	"bytes"
	"strings"
	"sync"
)

// Log collects what several goroutines write while a test reads it.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// Bytes is a copy of what was written.
func (l *Log) Bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.text.Bytes())
}

// String is what was written.
func (l *Log) String() string { return string(l.Bytes()) }

// Count is how often a text was written.
func (l *Log) Count(part string) int { return strings.Count(l.String(), part) }
