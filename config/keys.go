package config

import (
	"encoding"
	"reflect"
	"slices"
	"strings"
)

// unknown reports a key that nobody reads, and where it may have been meant
// to stand.
func (d *decoder) unknown(path, key string, fields map[string]reflect.StructField) {
	known := sortedKeys(fields)
	hint := ""
	if near := Nearest(key, known); near != "" {
		hint = "did you mean " + spelled(near, fields[near].Type) + "?"
	} else if homes := d.homesOf(key); len(homes) > 0 {
		hint = "it belongs " + strings.Join(homes, " or ")
	} else if path != "" {
		hint = "known here: " + strings.Join(known, ", ")
	} else {
		hint = "known at the top: " + strings.Join(known, ", ")
	}
	d.fault(Join(path, key), "unknown key", hint)
}

// homesOf lists the tables that have a key of that name.
func (d *decoder) homesOf(key string) []string {
	var homes []string
	var visit func(of reflect.Type, header string, depth int)
	visit = func(of reflect.Type, header string, depth int) {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch {
		case depth > 4:
		case of.Kind() == reflect.Map:
			visit(of.Elem(), header+".NAME", depth+1)
		case of.Kind() == reflect.Slice:
			visit(of.Elem(), "["+header+"]", depth+1)
		case of.Kind() == reflect.Struct && !isText(of):
			fields := fieldsOf(of)
			if _, ok := fields[key]; ok {
				if header == "" {
					homes = append(homes, "at the top of the file, above the first [table]")
				} else {
					homes = append(homes, "in ["+header+"]")
				}
			}
			for _, name := range sortedKeys(fields) {
				below := strings.Trim(strings.Trim(header, "[]")+"."+name, ".")
				visit(fields[name].Type, below, depth+1)
			}
		}
	}
	visit(d.root, "", 0)
	return slices.Compact(homes)
}

// spelled is a key as a file spells it: a table with its brackets.
func spelled(key string, of reflect.Type) string {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case isText(of):
	case of.Kind() == reflect.Struct:
		return "[" + key + "]"
	case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct && !isText(of.Elem()):
		return "[[" + key + "]]"
	case of.Kind() == reflect.Map && of.Elem().Kind() == reflect.Struct && !isText(of.Elem()):
		return "[" + key + ".NAME]"
	}
	return key
}

// fieldsOf lists the keys of a struct.
func fieldsOf(of reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for _, field := range reflect.VisibleFields(of) {
		if !field.IsExported() || field.Anonymous {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		if name == "" {
			name = strings.ToLower(field.Name)
		}
		if name != "-" {
			fields[name] = field
		}
	}
	return fields
}

// isText tells whether a type is written as text although it is a struct or
// a number.
func isText(of reflect.Type) bool {
	return reflect.PointerTo(of).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func sortedKeys[V any](of map[string]V) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
