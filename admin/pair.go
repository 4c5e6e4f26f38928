package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"
)

// Pairing takes secrets that senders hand over.
type Pairing interface {
	// Pair waits for the secret of a source and keeps it, until ctx ends: no
	// longer than whoever asked waits for the answer.
	Pair(ctx context.Context, ask PairRequest) (Paired, error)
}

// PairRequest opens the pairing mode of a source.
type PairRequest struct {
	Source  string `json:"source"`
	Seconds int    `json:"seconds"` // how long to wait at most
	Replace bool   `json:"replace"` // a secret that is there may be replaced
	Actor   string `json:"actor"`
	Reason  string `json:"reason"`
}

// Paired is how a pairing ended well.
type Paired struct {
	Source  string    `json:"source"`
	At      time.Time `json:"at"`
	Peer    string    `json:"peer"` // who handed the secret over
	File    string    `json:"file,omitempty"`
	InForce bool      `json:"in_force"` // requests are verified with it from now on
	// Secret is there where no file keeps it, or the sender wants it back.
	Secret string `json:"secret,omitempty"`
	Action int64  `json:"action"` // in the audit trail
}

func routePairing(router *httprouter.Router, ops Pairing) {
	router.POST("/api/v1/pairings", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		asked(w, r, ops.Pair)
	})
}

// Pair opens the pairing mode of a source and waits for its end. Ending ctx
// closes it.
func (c *Client) Pair(ctx context.Context, ask PairRequest) (Paired, error) {
	var paired Paired
	err := c.call(ctx, http.MethodPost, "/api/v1/pairings", ask, &paired)
	return paired, err
}
