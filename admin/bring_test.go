package admin

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/julienschmidt/httprouter"
)

// taker takes every line that it is handed.
type taker struct {
	Bring
	asked []AskImport
}

func (k *taker) Import(_ context.Context, ask AskImport) (done []ImportedLine, _ error) {
	k.asked = append(k.asked, ask)
	for _, line := range ask.Lines {
		done = append(done, ImportedLine{N: line.N, Events: []ImportedEvent{}})
	}
	return done, nil
}

// A line that no question to the server can carry is named, and those around it
// come in.
func TestALineThatIsTooLargeIsNamed(t *testing.T) {
	t.Parallel()
	body := func(n int) ImportLine { return ImportLine{Body: []byte(strings.Repeat("x", n))} }
	for name, c := range map[string]struct {
		line ImportLine
		fits bool
	}{
		"small":            {body(10), true},
		"the largest":      {body(29 << 20), true},
		"too large":        {body(33 << 20), false},
		"a large header":   {ImportLine{Header: http.Header{"X": {strings.Repeat("\x01", 7<<20)}}}, false},
		"a large id":       {ImportLine{ID: strings.Repeat("<", 7<<20)}, false},
		"a large header 6": {ImportLine{Header: http.Header{"X": {strings.Repeat("<", 6<<20)}}}, true},
	} {
		server := &taker{}
		router := httprouter.New()
		routeBring(router, server)
		client := serverAt(t, router)
		c.line.N = 2
		done, err := client.Import(t.Context(), AskImport{First: true, Lines: []ImportLine{{N: 1}, c.line, {N: 3}}})
		if err != nil || len(done) != 3 || len(server.asked) != 1 {
			t.Errorf("%s: %d lines, %v", name, len(done), err)
			continue
		}
		for i, line := range done {
			if line.N != i+1 || (line.Error == "") != (c.fits || i != 1) {
				t.Errorf("%s: %+v", name, line)
			}
		}
		if alone, err := client.Import(t.Context(), AskImport{First: true, Lines: []ImportLine{c.line}}); err != nil || !cmp.Equal(alone, done[1:2]) {
			t.Errorf("%s alone: %+v, %v", name, alone, err)
		}
		if len(server.asked) != 2 { // the audit trail names the file all the same
			t.Errorf("%s alone: asked %d times", name, len(server.asked))
		}
	}
}
