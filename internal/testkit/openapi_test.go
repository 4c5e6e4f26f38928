package testkit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const smallDescription = `{"paths": {"/things": {"get": {"responses": {
  "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
  "404": {"$ref": "#/components/responses/404"}}}, "post": {"responses": {"200": {"content": {"*/*": {"schema": {}}}}}}}},
 "components": {"responses": {"404": {"content": {"application/json": {"schema": {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}}}}},
  "schemas": {"Thing": {"type": "object", "required": ["n"], "properties": {
   "n": {"type": "integer"}, "f": {"type": "number"}, "ok": {"type": "boolean"}, "kind": {"type": "string", "enum": ["a", "b"]},
   "at": {"type": "string", "format": "date-time"}, "body": {"type": "string", "contentEncoding": "base64"},
   "of": {"type": "object", "additionalProperties": {"type": "integer"}}, "list": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}}}}}}}`

// Each way in which an answer can differ from its description is seen.
func TestOpenAPISeesWhatDiffers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(file, []byte(smallDescription), 0o600); err != nil {
		t.Fatal(err)
	}
	o := ReadOpenAPI(t, file)
	if all := o.Operations(); !slices.Equal(all, []string{"GET /things", "POST /things"}) {
		t.Errorf("operations %v", all)
	}
	for _, c := range []struct {
		operation string
		status    int
		kind      string
		body      string
		want      string
	}{
		{"GET /things", 200, "application/json", `{"n":9007199254740993,"f":1.5,"ok":true,"kind":"a","at":"2026-01-02T03:04:05Z","body":"YQ==","of":{"x":1},"list":[{"n":1}]}`, ""},
		{"GET /things", 404, "application/json", `{"error":"no"}`, ""},
		{"POST /things", 200, "text/plain", "anything", ""},
		{"GET /none", 200, "application/json", `{}`, "not described"},
		{"GET /things", 500, "application/json", `{}`, "not described"},
		{"GET /things", 200, "text/html", `{}`, "not described"},
		{"GET /things", 200, "application/json", `no`, "invalid"},
		{"GET /things", 200, "application/json", `{}`, "has no n"},
		{"GET /things", 200, "application/json", `{"n":1,"m":1}`, "member m"},
		{"GET /things", 200, "application/json", `{"n":1.5}`, "answer.n"},
		{"GET /things", 200, "application/json", `{"n":1,"f":"1"}`, "answer.f"},
		{"GET /things", 200, "application/json", `{"n":1,"ok":"x"}`, "answer.ok"},
		{"GET /things", 200, "application/json", `{"n":1,"kind":"c"}`, "none of"},
		{"GET /things", 200, "application/json", `{"n":1,"at":"yesterday"}`, "answer.at"},
		{"GET /things", 200, "application/json", `{"n":1,"at":"2026-01-02T03:04:05+01:00"}`, "not UTC"},
		{"GET /things", 200, "application/json", `{"n":1,"body":"!"}`, "answer.body"},
		{"GET /things", 200, "application/json", `{"n":1,"of":{"x":"y"}}`, "answer.of.x"},
		{"GET /things", 200, "application/json", `{"n":1,"list":null}`, "answer.list"},
		{"GET /things", 200, "application/json", `{"n":1,"list":[{}]}`, "answer.list[0]"},
	} {
		err := o.CheckAnswer(c.operation, c.status, c.kind, []byte(c.body))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %d %s: %v, want %q", c.operation, c.status, c.body, err, c.want)
		}
	}
}
