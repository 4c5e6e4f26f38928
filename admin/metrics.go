package admin

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"strings"
)

// Metrics answers a scrape with what collect adds.
func Metrics(collect func(context.Context, *Exposition)) http.HandlerFunc {
	families := Families()
	return func(w http.ResponseWriter, r *http.Request) {
		scrape := NewExposition(families)
		collect(r.Context(), scrape)
		var page bytes.Buffer
		if err := scrape.Write(&page); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", expositionType)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Vary", "Accept-Encoding")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			_, _ = page.WriteTo(w) // a scraper that went away comes again
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		_, _ = page.WriteTo(packed)
		_ = packed.Close()
	}
}
