package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
)

const (
	heartbeatTimeout = 10 * time.Second
	heartbeatIdle    = time.Minute // between looks whether there is a URL by now
)

// Heartbeat calls a URL of somebody who alarms when the calls stop. It calls
// only while trouble would be noticed and told: a server that can not alarm is
// quiet.
type Heartbeat struct {
	client *http.Client
	well   func() error // nil while trouble would be noticed
	log    zerolog.Logger
	beat   atomic.Pointer[pulse]
	wake   chan struct{}
	silent bool // the last call was not made, or not answered
}

type pulse struct {
	url   string
	every time.Duration
}

// NewHeartbeat makes a heartbeat that calls nobody before it is configured.
func NewHeartbeat(well func() error, log zerolog.Logger) *Heartbeat {
	// No proxy and no redirect, like every other call of ours: the address is
	// the configuration's.
	client := &http.Client{Timeout: heartbeatTimeout, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Heartbeat{well: well, log: log, wake: make(chan struct{}, 1), client: client}
}

// Configure says whom to call; "" is nobody.
func (h *Heartbeat) Configure(url string, every time.Duration) {
	h.beat.Store(&pulse{url, every})
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Run calls until ctx ends. It blocks nobody else.
func (h *Heartbeat) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		case <-timer.C:
		}
		timer.Reset(h.Step(ctx))
	}
}

// Step calls once, if all is well, and tells how long to wait for the next.
func (h *Heartbeat) Step(ctx context.Context) time.Duration {
	beat := h.beat.Load()
	if beat == nil || beat.url == "" {
		return heartbeatIdle
	}
	err := h.well()
	if err == nil {
		err = h.call(ctx, beat.url)
	}
	if err != nil && !h.silent && ctx.Err() == nil {
		h.log.Warn().Err(err).Str(event.FieldHint, "whoever waits for it alarms soon").Msg("no heartbeat")
	}
	h.silent = err != nil
	return beat.every
}

func (h *Heartbeat) call(ctx context.Context, to string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return errors.New("make the request: the URL can not be used")
	}
	response, err := h.client.Do(request)
	if err != nil {
		if inner := (*url.Error)(nil); errors.As(err, &inner) {
			err = inner.Err // the URL is all that a stranger would need
		}
		return fmt.Errorf("call %s: %w", request.URL.Host, err)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 4096)
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("call %s: it answered %s", request.URL.Host, response.Status)
	}
	return nil
}
