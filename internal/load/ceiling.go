package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"
)

// maxBody is the cap of a receiver that has nothing else to say.
const maxBody = 1 << 20

// ceiling serves the least that a receiver of signed events must do: read the
// body under a cap, compare the HMAC, find the id, answer. Nothing is stored,
// so no receiver on net/http can be faster.
func ceiling(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("ceiling", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:0", "address to listen on")
	if err := flags.Parse(args); err != nil {
		return err
	}
	router := httprouter.New()
	router.RedirectTrailingSlash, router.RedirectFixedPath = false, false
	router.POST("/in/:source", verifyOnly)
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Printf("{\"message\":\"listening\",\"listen\":%q}\n", listener.Addr())
	server := &http.Server{Handler: router, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 15 * time.Second}
	go func() { <-ctx.Done(); _ = server.Close() }()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func verifyOnly(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "body", http.StatusBadRequest)
		return
	}
	given, err := hex.DecodeString(r.Header.Get("X-Signature"))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	if err != nil || !hmac.Equal(given, mac.Sum(nil)) {
		http.Error(w, "signature", http.StatusUnauthorized)
		return
	}
	if !bytes.Contains(body, []byte(`"id":"`)) {
		http.Error(w, "id", http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusOK)
}
