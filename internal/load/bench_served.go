package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// pagedConfig has the sources and destinations of the store's large file.
const pagedConfig = `
listen   = "127.0.0.1:0"
database = "creel.db"
[admin]
listen   = "127.0.0.1:0"
password = "env:ADMIN_PASSWORD"
[log]
format = "json"
`

// served measures the page, the API and a scrape of a server on the file of a
// folder, over HTTP.
func (b *run) served(ctx context.Context, dir string) (err error) {
	var text strings.Builder
	text.WriteString(pagedConfig)
	for i := range 6 {
		fmt.Fprintf(&text, "[[source]]\nname = \"source%d\"\nprovider = \"stripe\"\nsecrets = [\"env:LOAD_SECRET\"]\nforward = \"app%d\"\n", i, i%3)
	}
	for i := range 3 {
		fmt.Fprintf(&text, "[destination.app%d]\nurl = \"http://127.0.0.1:9\"\nsecret = \"env:APP_SECRET\"\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "creel.toml"), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	p, err := begin(ctx, dir, environment, b.binary, "serve", "-c", "creel.toml")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	v, err := b.visitor(ctx, dir, "http://"+p.admin)
	if err != nil {
		return err
	}
	event, err := v.anEvent()
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		name  string
		goal  float64
		paths []string
	}{
		{"page", 100, append(pagePaths(), "/event?key="+event)},
		{"API answer", 100, append(apiPaths(), "/api/v1/event?key="+event)},
		{"scrape", 20, []string{"/metrics"}},
	} {
		var found []timed
		for _, path := range kind.paths {
			ms, err := v.time(path, 4*b.rounds)
			if err != nil {
				return err
			}
			found = append(found, timed{kind.name + " " + path, ms})
		}
		b.slowest(kind.name, found, kind.goal)
	}
	return nil
}

func pagePaths() []string {
	return []string{"/", "/?q=source:source3", "/?q=destination:app1", "/?q=error:nobody", "/?q=evt_9e3779b", "/overview", "/events", "/events?q=source:rare",
		"/events?q=in_00000000", "/events?q=error:nobody", "/events?q=type:kind3.*", "/deliveries", "/deliveries?state=dead", "/doubt", "/sources",
		"/destinations", "/alerts", "/audit", "/lanes", "/duplicates", "/conflicts", "/rejects", "/records", "/balances", "/tokens"}
}

func apiPaths() []string {
	var all []string
	for _, path := range []string{"stats", "signals", "events", "events?source=rare", "events?type=kind3.*", "events?q=in_00000000", "deliveries",
		"deliveries?state=dead&destination=app2", "failures", "failures/7", "dead-letters", "dead-letters?destination=app1", "dead-letters?error=nobody",
		"duplicates", "conflicts", "lanes", "incidents", "sources", "destinations", "rejects", "records", "balances", "actions"} {
		all = append(all, "/api/v1/"+path)
	}
	return all
}

// visitor is somebody who has logged in, and has a token besides.
type visitor struct {
	base, token string
	client      *http.Client
}

func (b *run) visitor(ctx context.Context, dir, base string) (*visitor, error) {
	made := exec.CommandContext(ctx, b.binary, "token", "create", "bench", "--scope", "read", "-c", "creel.toml")
	made.Dir, made.Env = dir, append(os.Environ(), environment...)
	token, err := made.Output()
	if err != nil {
		return nil, fmt.Errorf("make a token: %w", err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("make a jar: %w", err)
	}
	v := &visitor{base: base, token: strings.TrimSpace(string(token)), client: &http.Client{Jar: jar, Timeout: time.Minute}}
	_, password, _ := strings.Cut(environment[2], "=")
	res, err := v.client.PostForm(base+"/login", url.Values{"password": {password}, "name": {"bench"}, "to": {"/alerts"}})
	if err != nil {
		return nil, fmt.Errorf("log in: %w", err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Request.URL.Path != "/alerts" {
		return nil, fmt.Errorf("log in: HTTP %d at %s", res.StatusCode, res.Request.URL)
	}
	return v, nil
}

func (v *visitor) get(path string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodGet, v.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	if strings.HasPrefix(path, "/api/") {
		req.Header.Set("Authorization", "Bearer "+v.token)
	}
	res, err := v.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: HTTP %d, %w: %.200s", path, res.StatusCode, err, text)
	}
	return text, nil
}

// time is the median time of an answer, after the first.
func (v *visitor) time(path string, times int) (float64, error) {
	var took []time.Duration
	for range times + 1 {
		began := time.Now()
		if _, err := v.get(path); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	took = took[1:]
	slices.Sort(took)
	return float64(took[len(took)/2].Microseconds()) / 1000, nil
}

// anEvent is the key of an event, as a query carries it.
func (v *visitor) anEvent() (string, error) {
	text, err := v.get("/api/v1/events?limit=1")
	if err != nil {
		return "", err
	}
	var list struct {
		Items []struct {
			Key string `json:"key"`
		} `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil || len(list.Items) == 0 {
		return "", fmt.Errorf("no event in %.200s: %w", text, err)
	}
	return url.QueryEscape(list.Items[0].Key), nil
}
