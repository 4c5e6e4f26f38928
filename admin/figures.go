package admin

import (
	"context"
	"net/http"

	"github.com/julienschmidt/httprouter"
)

// Figures are numbers about the running server.
type Figures interface {
	// Statistics are figures about sources, destinations and the database,
	// ready to be written as JSON. They cost look-ups, whatever the database
	// holds.
	Statistics(ctx context.Context) (any, error)
}

func routeFigures(router *httprouter.Router, ops Figures) {
	router.GET("/api/v1/stats", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		figures, err := ops.Statistics(r.Context())
		reply(w, figures, err)
	})
}

// Statistics decodes figures about the server into figures.
func (c *Client) Statistics(ctx context.Context, figures any) error {
	return c.call(ctx, http.MethodGet, "/api/v1/stats", nil, figures)
}
