package api_test

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"creel/admin/api"
	"creel/app"
)

// object is a JSON object; keys are written in order of the alphabet.
type object = map[string]any

// describer makes the description from the routes and from the source.
type describer struct {
	comments *comments
	schemas  object
	shared   object   // parameters that mean the same everywhere
	missing  []string // parameters without a text
}

// describe is the whole description.
func describe(c *comments) (object, []string) {
	d := &describer{comments: c, schemas: object{}, shared: object{}}
	paths := object{}
	for _, r := range api.Routes() {
		path := pathParameter.ReplaceAllString(r.Path, "{$1}")
		item, ok := paths[path].(object)
		if !ok {
			item = object{}
			paths[path] = item
		}
		item[strings.ToLower(r.Method)] = d.operation(r)
	}
	problem := d.schema(reflect.TypeOf(api.Problem))
	responses := object{}
	for name, text := range problems() {
		responses[name] = object{"description": text, "content": object{"application/json": object{"schema": problem}}}
	}
	return object{
		"openapi": "3.1.0",
		"info":    object{"title": "Creel", "version": "1", "license": object{"name": "see LICENSE"}, "description": about},
		"servers": []any{object{"url": "../v1", "description": "where this description is served"}},
		"paths":   paths,
		"components": object{"schemas": d.schemas, "parameters": d.shared, "responses": responses, "securitySchemes": object{
			"token":   object{"type": "http", "scheme": "bearer", "description": "Made by creel token create NAME --scope read|operate, or on the page."},
			"session": object{"type": "apiKey", "in": "cookie", "name": "creel_session", "description": "A session of the page may look, and not act. Over TLS at the root its name is __Host-creel_session."},
		}},
	}, d.missing
}

func (d *describer) operation(r api.Route) object {
	op := object{"summary": r.Text, "operationId": operationID(r)}
	var parameters []any
	for _, match := range pathParameter.FindAllStringSubmatch(r.Path, -1) {
		kind := object{"type": "integer", "format": "int64"}
		if strings.HasPrefix(r.Path, "/plans") {
			kind = object{"type": "string"}
		}
		parameters = append(parameters, object{"name": match[1], "in": "path", "required": true, "schema": kind})
	}
	for _, name := range r.Query {
		parameters = append(parameters, d.parameter(r, name))
	}
	if r.Once {
		parameters = append(parameters, object{"name": "Idempotency-Key", "in": "header", "required": r.Keyed, "description": onceText,
			"schema": object{"type": "string", "maxLength": 200}})
	}
	if parameters != nil {
		op["parameters"] = parameters
	}
	if r.Ask != nil {
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": d.schema(reflect.TypeOf(r.Ask))}}}
	}
	op["responses"] = d.responses(r)
	op["security"] = []any{object{"token": []any{}}}
	if r.Method == "GET" {
		op["security"] = []any{object{"token": []any{}}, object{"session": []any{}}}
	}
	return op
}

func (d *describer) responses(r api.Route) object {
	kind, schema := "application/json", object{}
	switch {
	case r.Line != nil:
		kind, schema = r.Plain, d.schema(reflect.TypeOf(r.Line))
	case r.Plain != "" && r.Plain != kind:
		kind = r.Plain
	case r.Plain != "":
		schema = object{"type": "object"}
	case r.Figures:
		schema = d.schema(reflect.TypeFor[app.Statistics]())
	default:
		schema = d.schema(reflect.TypeOf(r.Answer))
	}
	all := object{"200": object{"description": "Done, or here it is.", "content": object{kind: object{"schema": schema}}}}
	if strings.HasSuffix(nameIn(reflect.TypeOf(r.Answer)), ".Action") && r.Method == "POST" {
		all["202"] = object{"description": "It goes on: ask for the action by its id until it has finished_at.", "content": object{kind: object{"schema": schema}}}
	}
	for _, status := range []string{"401", "404", "422", "429", "503"} {
		all[status] = object{"$ref": "#/components/responses/" + status}
	}
	if r.Method == "POST" {
		for _, status := range []string{"400", "403", "413", "415"} {
			all[status] = object{"$ref": "#/components/responses/" + status}
		}
	}
	return all
}

func (d *describer) parameter(r api.Route, name string) object {
	required := name == "key" && strings.HasPrefix(r.Path, "/event") && !strings.HasPrefix(r.Path, "/events") || name == "object" && strings.HasPrefix(r.Path, "/object")
	text, own := parameterTexts()[r.Path+" "+name]
	if !own && !required {
		if d.shared[name] == nil {
			d.shared[name] = d.parameterOf(r, name, parameterTexts()[name], false)
		}
		return object{"$ref": "#/components/parameters/" + name}
	}
	if !own {
		text = parameterTexts()[name]
	}
	return d.parameterOf(r, name, text, required)
}

func (d *describer) parameterOf(r api.Route, name, text string, required bool) object {
	if text == "" {
		d.missing = append(d.missing, r.Path+" "+name)
	}
	schema := object{"type": "string"}
	switch name {
	case "limit":
		schema = object{"type": "integer", "minimum": 1, "maximum": 200, "default": 50}
	case "all":
		schema = object{"type": "boolean", "default": false}
	}
	return object{"name": name, "in": "query", "description": text, "required": required, "schema": schema}
}

func operationID(r api.Route) string {
	words := strings.FieldsFunc(r.Path, func(c rune) bool { return strings.ContainsRune("/:-.", c) })
	id := strings.ToLower(r.Method)
	for _, word := range words {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
}

// schema is what a Go type looks like as JSON. Structs with a name stand among
// the components.
func (d *describer) schema(of reflect.Type) object {
	text := reflect.TypeFor[encoding.TextMarshaler]()
	switch {
	case of == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case of.Implements(text):
		d.schemas[of.Name()] = object{"type": "string", "description": d.comments.types[nameIn(of)]}
		return object{"$ref": "#/components/schemas/" + of.Name()}
	case of == reflect.TypeFor[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	}
	switch of.Kind() {
	case reflect.Pointer:
		return d.schema(of.Elem())
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(of.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(of.Elem())}
	case reflect.String:
		return d.text(of)
	case reflect.Struct:
		return d.structure(of)
	}
	panic(fmt.Sprintf("%v has no schema", of))
}

// open are named texts of which the source does not list every value.
func open() []string { return []string{"event.Cause", "event.ActionKind"} }

func (d *describer) text(of reflect.Type) object {
	values := d.comments.values[nameIn(of)]
	if of.PkgPath() == "" || len(values) == 0 || slices.Contains(open(), nameIn(of)) {
		return object{"type": "string"}
	}
	enum := make([]any, len(values))
	for i, value := range values {
		enum[i] = value
	}
	return object{"type": "string", "enum": enum}
}

// structure is a struct by reference; a page of a list is written in its place.
func (d *describer) structure(of reflect.Type) object {
	if strings.Contains(of.Name(), "[") {
		return d.members(of)
	}
	name := strings.TrimPrefix(strings.TrimSuffix(of.Name(), "Line"), "Open")
	name = strings.ToUpper(name[:1]) + name[1:]
	if d.schemas[name] == nil {
		d.schemas[name] = object{} // of itself, where it holds itself
		schema := d.members(of)
		if text := d.comments.types[nameIn(of)]; text != "" {
			schema["description"] = text
		}
		d.schemas[name] = schema
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// members are the fields of a struct, those that it embeds among them.
func (d *describer) members(of reflect.Type) object {
	properties, required := object{}, []string{}
	for _, field := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() || field.Anonymous && name == "" {
			continue
		}
		if name == "" {
			panic(fmt.Sprintf("%v.%s has no name in JSON", of, field.Name))
		}
		if best, ok := of.FieldByName(field.Name); ok && !slices.Equal(best.Index, field.Index) {
			continue // hidden by one that is not as deep
		}
		schema := d.schema(field.Type)
		if text := d.fieldText(of, field); text != "" {
			schema["description"] = text
		}
		if field.Type.Kind() == reflect.String && (name == "at" || name == "start" || strings.HasSuffix(name, "_at")) {
			schema["format"] = "date-time"
		}
		properties[name] = schema
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	slices.Sort(required)
	return object{"type": "object", "properties": properties, "required": required}
}

// fieldText is what the source says beside a field, where it is declared.
func (d *describer) fieldText(of reflect.Type, field reflect.StructField) string {
	for _, i := range field.Index[:len(field.Index)-1] {
		of = of.Field(i).Type
	}
	generic, _, _ := strings.Cut(nameIn(of), "[")
	return d.comments.fields[generic][field.Name]
}
