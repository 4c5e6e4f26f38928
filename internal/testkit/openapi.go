package testkit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// OpenAPI holds answers against a description in OpenAPI 3.1, as far as that
// uses the words that are known here: any other fails.
type OpenAPI struct{ doc map[string]any }

// ReadOpenAPI reads a description.
func ReadOpenAPI(t testing.TB, file string) *OpenAPI {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	o := &OpenAPI{}
	if err := json.Unmarshal(text, &o.doc); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return o
}

// Operations lists what can be asked, as "GET /events".
func (o *OpenAPI) Operations() (all []string) {
	for path, item := range o.doc["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			all = append(all, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(all)
	return all
}

// CheckAnswer tells what in an answer to an operation is not as it is described.
func (o *OpenAPI) CheckAnswer(operation string, status int, kind string, body []byte) error {
	method, path, _ := strings.Cut(operation, " ")
	item, _ := o.doc["paths"].(map[string]any)[path].(map[string]any)
	op, _ := item[strings.ToLower(method)].(map[string]any)
	if op == nil {
		return fmt.Errorf("%s is not described", operation)
	}
	response, _ := op["responses"].(map[string]any)[strconv.Itoa(status)].(map[string]any)
	if response == nil {
		return fmt.Errorf("%s answers %d, which is not described: %s", operation, status, body)
	}
	content, _ := o.resolve(response)["content"].(map[string]any)
	media, _ := content[kind].(map[string]any)
	if other, ok := content["*/*"].(map[string]any); ok && media == nil {
		media = other
	}
	if media == nil {
		return fmt.Errorf("%s answers %d with a %q, which is not described", operation, status, kind)
	}
	schema := media["schema"].(map[string]any)
	if len(schema) == 0 {
		return nil
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return fmt.Errorf("%s: %w in %s", operation, err, body)
	}
	if err := o.check(schema, value, "answer"); err != nil {
		return fmt.Errorf("%s, %d: %w\n%s", operation, status, err, body)
	}
	return nil
}

// resolve follows a reference.
func (o *OpenAPI) resolve(schema map[string]any) map[string]any {
	for {
		to, ok := schema["$ref"].(string)
		if !ok {
			return schema
		}
		at := any(o.doc)
		for _, name := range strings.Split(strings.TrimPrefix(to, "#/"), "/") {
			at = at.(map[string]any)[name]
		}
		schema = at.(map[string]any)
	}
}

// check tells what of a value is not as its schema says. A member that the
// schema does not have is wrong too: everything that is answered is described.
func (o *OpenAPI) check(schema map[string]any, value any, at string) error {
	schema = o.resolve(schema)
	if values, ok := schema["enum"].([]any); ok && !slices.Contains(values, value) {
		return fmt.Errorf("%s is %v, none of %v", at, value, values)
	}
	wrong := fmt.Errorf("%s is %v, and no %v", at, value, schema["type"])
	switch schema["type"] {
	case "object":
		members, ok := value.(map[string]any)
		if !ok {
			return wrong
		}
		return o.checkMembers(schema, members, at)
	case "array":
		list, ok := value.([]any)
		if !ok {
			return wrong
		}
		for i, one := range list {
			if err := o.check(schema["items"].(map[string]any), one, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case "string":
		text, ok := value.(string)
		if !ok {
			return wrong
		}
		return checkText(schema, text, at)
	case "boolean":
		if _, ok := value.(bool); !ok {
			return wrong
		}
	case "integer", "number":
		number, ok := value.(json.Number)
		if _, err := number.Int64(); !ok || schema["type"] == "integer" && err != nil {
			return wrong
		}
	default:
		return fmt.Errorf("%s: the type %v is not known here", at, schema["type"])
	}
	return nil
}

func (o *OpenAPI) checkMembers(schema, members map[string]any, at string) error {
	properties, listed := schema["properties"].(map[string]any)
	others, _ := schema["additionalProperties"].(map[string]any)
	if required, ok := schema["required"].([]any); ok {
		for _, name := range required {
			if _, there := members[name.(string)]; !there {
				return fmt.Errorf("%s has no %s", at, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		of, known := properties[name].(map[string]any)
		switch {
		case known:
		case others != nil:
			of = others
		case listed:
			return fmt.Errorf("%s has a member %s that is not described", at, name)
		default:
			continue
		}
		if err := o.check(of, members[name], at+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func checkText(schema map[string]any, text, at string) error {
	var err error
	switch {
	case schema["format"] == "date-time":
		_, err = time.Parse(time.RFC3339Nano, text)
		if err == nil && !strings.HasSuffix(text, "Z") {
			err = errors.New("it is not UTC")
		}
	case schema["contentEncoding"] == "base64":
		_, err = base64.StdEncoding.DecodeString(text)
	}
	if err != nil {
		return fmt.Errorf("%s is %q: %w", at, text, err)
	}
	return nil
}
