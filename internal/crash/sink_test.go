package crash

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// sink is a destination that counts. It knows which life of the server opened
// each connection, so that a repeat within one life is told from the repeat
// that a crash may cause.
type sink struct {
	server *httptest.Server
	life   atomic.Int64
	open   atomic.Int64

	mu    sync.Mutex
	sends []send
	byID  map[string]int            // sends of a webhook-id
	ids   map[string]map[string]int // event id to the webhook-ids that carried it
}

type send struct {
	id    string // webhook-id
	event string
	life  int64
}

type lifeKey struct{}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{byID: map[string]int{}, ids: map[string]map[string]int{}}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.open.Add(1)
		case http.StateClosed:
			s.open.Add(-1)
		}
	}
	s.server.Config.ConnContext = withLife(&s.life)
	s.server.Start()
	t.Cleanup(s.server.Close)
	return s
}

func (s *sink) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // cut off by a kill: the request was never whole
	}
	var event struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	life, _ := r.Context().Value(lifeKey{}).(int64)
	s.note(send{id: r.Header.Get("webhook-id"), event: event.ID, life: life})
}

func (s *sink) note(one send) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sends = append(s.sends, one)
	s.byID[one.id]++
	if s.ids[one.event] == nil {
		s.ids[one.event] = map[string]int{}
	}
	s.ids[one.event][one.id]++
}

// missing counts the events that never arrived.
func (s *sink) missing(acked []string) (n int, first string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range acked {
		if len(s.ids[id]) == 0 {
			if n == 0 {
				first = id
			}
			n++
		}
	}
	return n, first
}

// tally is what a run came to at the destination.
type tally struct {
	sends      int
	extra      int // sends beyond the first of each webhook-id
	identities int // events that arrived under more than one webhook-id
	shared     int // webhook-ids that carried more than one event
	sameLife   int // repeats within one life of the server
}

func (s *sink) tally() tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := tally{sends: len(s.sends)}
	for _, n := range s.byID {
		t.extra += n - 1
	}
	for _, ids := range s.ids {
		if len(ids) > 1 {
			t.identities++
		}
	}
	type seen struct {
		id   string
		life int64
	}
	lives, events := map[seen]bool{}, map[string]string{}
	for _, one := range s.sends {
		key := seen{one.id, one.life}
		if lives[key] {
			t.sameLife++
		}
		lives[key] = true
		if before, ok := events[one.id]; ok && before != one.event {
			t.shared++
		}
		events[one.id] = one.event
	}
	return t
}
