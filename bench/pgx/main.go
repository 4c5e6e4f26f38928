// Command pgx is the receiver that a Go team would write against PostgreSQL:
// verify, INSERT … ON CONFLICT DO NOTHING, commit, 200. It is a peer for the
// benchmarks, as honest and as small as we could make it.
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/julienschmidt/httprouter"
)

const insert = `INSERT INTO inbox (source, account, id, type, body, header)
VALUES ($1, '', $2, $3, $4, $5) ON CONFLICT (source, account, id) DO NOTHING`

type receiver struct {
	pool   *pgxpool.Pool
	secret []byte
}

func main() {
	if err := serve(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	r := &receiver{pool: pool, secret: []byte(os.Getenv("LOAD_SECRET"))}
	router := httprouter.New()
	router.POST("/in/:source", r.receive)
	router.GET("/healthz", func(http.ResponseWriter, *http.Request, httprouter.Params) {})
	server := &http.Server{Addr: os.Getenv("LISTEN"), Handler: router, ReadHeaderTimeout: 5 * time.Second}
	return server.ListenAndServe()
}

func (r *receiver) receive(w http.ResponseWriter, req *http.Request, p httprouter.Params) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
	if err != nil {
		http.Error(w, "body", http.StatusBadRequest)
		return
	}
	given, err := hex.DecodeString(req.Header.Get("X-Signature"))
	mac := hmac.New(sha256.New, r.secret)
	mac.Write(body)
	if err != nil || !hmac.Equal(given, mac.Sum(nil)) {
		http.Error(w, "signature", http.StatusUnauthorized)
		return
	}
	var event struct{ ID, Type string }
	if err := json.Unmarshal(body, &event); err != nil || event.ID == "" {
		http.Error(w, "event", http.StatusBadRequest)
		return
	}
	header, err := json.Marshal(req.Header)
	if err != nil {
		http.Error(w, "header", http.StatusBadRequest)
		return
	}
	if _, err := r.pool.Exec(req.Context(), insert, p.ByName("source"), event.ID, event.Type, body, header); err != nil {
		http.Error(w, "store", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}
