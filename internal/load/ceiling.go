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
	"os"
	"time"

	"github.com/julienschmidt/httprouter"
	"github.com/rs/zerolog"

	"creel/config"
	"creel/event"
	"creel/receiver"
	"creel/source"
)

// maxBody is the cap of a receiver that has nothing else to say.
const maxBody = 1 << 20

// ceiling serves what a store can not be faster than: the same handler as the
// server's (caps, verification, ids, answers) before an inbox that keeps
// nothing. With -bare it is the least that any receiver of signed events must
// do on net/http: read the body under a cap, compare the HMAC, find the id.
func ceiling(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("ceiling", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:0", "address to listen on")
	bare := flags.Bool("bare", false, "the least that any receiver must do")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server, err := ceilingServer(*bare)
	if err != nil {
		return err
	}
	fmt.Printf("{\"message\":\"listening\",\"listen\":%q}\n", listener.Addr())
	if !*bare {
		listener = receiver.Listen(listener, 0)
	}
	go func() { <-ctx.Done(); _ = server.Close() }()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func ceilingServer(bare bool) (*http.Server, error) {
	if bare {
		router := httprouter.New()
		router.RedirectTrailingSlash, router.RedirectFixedPath = false, false
		router.POST("/in/:source", verifyOnly)
		return &http.Server{Handler: router, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 15 * time.Second}, nil
	}
	cfg := config.DefaultSource()
	cfg.Name, cfg.Secrets = "load", []config.Secret{config.NewSecret(secret)}
	cfg.Verify = &config.Scheme{Auth: "hmac-sha256", Key: "utf8", Signature: config.StringList{"header.x-signature"}, Encoding: "hex",
		Signed: "{body}", ID: config.StringList{"body.id"}, Type: config.StringList{"body.type"}, Integrity: "full"}
	compiled, problems := source.Compile(cfg, "source[0]", os.LookupEnv)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	handler, err := receiver.New(receiver.Options{Inbox: emptiness{}, Clock: time.Now, Log: zerolog.Nop(),
		Sources: func(name string) (receiver.Source, bool) { return compiled, name == cfg.Name }})
	if err != nil {
		return nil, err
	}
	return receiver.NewServer(handler, zerolog.Nop()), nil
}

// emptiness is an inbox that keeps nothing.
type emptiness struct{}

// Accept implements receiver.Inbox.
func (emptiness) Accept(_ context.Context, r *event.Receipt) (event.Accepted, error) {
	accepted := event.Accepted{Items: make([]event.AcceptedItem, len(r.Items))}
	for i := range accepted.Items {
		accepted.Items[i] = event.AcceptedItem{Key: r.Items[i].Key, Result: event.New}
	}
	return accepted, nil
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
