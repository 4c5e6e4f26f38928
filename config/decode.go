package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// DecodeStrict reads a TOML text into a struct or map and reports everything
// that does not fit it at once: unknown keys, wrong types, values without
// their unit. Lines are filled in; File is left to the caller. What fits is
// decoded even where something else does not.
func DecodeStrict(data []byte, into any) Problems {
	problems, _, _ := decodeText(data, into)
	return problems
}

// decodeText returns false where the text is not TOML, so that nothing was
// decoded.
func decodeText(data []byte, into any) (Problems, lines, bool) {
	text := strings.TrimPrefix(string(data), "\ufeff")
	index, deep := scanLines(text)
	if deep > 0 {
		return Problems{{Line: deep, Message: fmt.Sprintf("more than %d levels inside one another", maxNesting)}}, index, false
	}
	var tree map[string]any
	if _, err := toml.Decode(text, &tree); err != nil {
		if p, ok := oneForMany(text, err, reflect.TypeOf(into).Elem()); ok {
			return Problems{p}, index, false
		}
		return Problems{syntaxProblem(text, err)}, index, false
	}
	target := reflect.ValueOf(into).Elem()
	d := &decoder{root: target.Type()}
	d.value("", tree, target, "")
	for i := range d.problems {
		d.problems[i].Line = index.of(d.problems[i].Path)
	}
	return d.problems, index, true
}

// syntaxProblem says where a text stops being TOML, with the line itself
// unless a secret may stand in it.
func syntaxProblem(text string, err error) Problem {
	var at toml.ParseError
	if !errors.As(err, &at) {
		return Problem{Message: "the file is not TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
	}
	line := ""
	if all := strings.Split(text, "\n"); at.Position.Line >= 1 && at.Position.Line <= len(all) {
		line = strings.TrimSpace(all[at.Position.Line-1])
	}
	if p, ok := openHeader(text, at.Position.Line); ok {
		return p
	}
	why := strings.TrimSuffix(at.Message, ".")
	if key, _, _ := strings.Cut(line, "="); mayHide(key) || mayHide(at.LastKey) {
		if !strings.HasSuffix(why, "has already been defined") {
			why = "texts stand in quotes, keys and numbers without"
		}
		return Problem{
			Line:    at.Position.Line,
			Path:    at.LastKey,
			Message: fmt.Sprintf("the file is not TOML at column %d: %s", at.Position.Col, why),
			Hint:    "the line is not shown because a secret may stand in it",
		}
	}
	if len(line) > 120 {
		line = line[:120] + "…"
	}
	return Problem{
		Line:    at.Position.Line,
		Message: fmt.Sprintf("the file is not TOML at column %d: %s: %s", at.Position.Col, why, strconv.QuoteToGraphic(line)),
	}
}

// headerLine is the header of a table, with or without its brackets closed.
var headerLine = regexp.MustCompile(`^(\[\[?)[ \t]*([A-Za-z0-9_."'-][A-Za-z0-9_."' \t-]*?)[ \t]*(\]?\]?)[ \t]*(#.*)?$`)

// openHeader finds the header of a table that is not closed, on the line where
// the parser gave up or on the one before it.
func openHeader(text string, line int) (Problem, bool) {
	all := strings.Split(text, "\n")
	for _, n := range []int{line, line - 1} {
		if n < 1 || n > len(all) {
			continue
		}
		m := headerLine.FindStringSubmatch(strings.TrimSpace(all[n-1]))
		if m == nil || len(m[1]) == len(m[3]) {
			continue
		}
		closed := m[1] + m[2] + strings.Repeat("]", len(m[1]))
		missing := "has no closing bracket"
		if m[3] != "" {
			missing = "is not closed as it is opened"
		}
		return Problem{Line: n, Message: fmt.Sprintf("the file is not TOML: the table header %s%s%s %s", m[1], m[2], m[3], missing),
			Hint: "write " + closed}, true
	}
	return Problem{}, false
}

// oneForMany finds the header of one table where a list of tables has the name.
func oneForMany(text string, err error, into reflect.Type) (Problem, bool) {
	var at toml.ParseError
	if !errors.As(err, &at) || into.Kind() != reflect.Struct {
		return Problem{}, false
	}
	all := strings.Split(text, "\n")
	if at.Position.Line < 1 || at.Position.Line > len(all) {
		return Problem{}, false
	}
	again := headerLine.FindStringSubmatch(strings.TrimSpace(all[at.Position.Line-1]))
	if again == nil {
		return Problem{}, false
	}
	name := again[2]
	if field, known := fieldsOf(into)[name]; !known || field.Type.Kind() != reflect.Slice || field.Type.Elem().Kind() != reflect.Struct {
		return Problem{}, false
	}
	for n, line := range all[:at.Position.Line] {
		if m := headerLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil && m[1] == "[" && m[3] == "]" && m[2] == name {
			return Problem{Line: n + 1, Message: fmt.Sprintf("the file is not TOML: [%s] is one table, and there are several of that name", name),
				Hint: fmt.Sprintf("write [[%s]] in line %d", name, n+1)}, true
		}
	}
	return Problem{}, false
}

// mayHide tells whether a secret may stand under a key of that name.
func mayHide(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc([]string{"secret", "password", "token", "key", "header", "setting", "url"},
		func(word string) bool { return strings.Contains(key, word) })
}

// decoder walks a tree of TOML values and a Go value side by side.
type decoder struct {
	root     reflect.Type
	problems Problems
}

func (d *decoder) fault(path, message, hint string) {
	d.problems = append(d.problems, Problem{Path: path, Message: message, Hint: hint})
}

func (d *decoder) wrongType(path string, value any, want, example string) {
	d.fault(path, fmt.Sprintf("is %s, must be %s", kindOf(value), want), "write it as "+example)
}

// defaulted is what fills itself with defaults before a file's keys are read
// into it.
type defaulted interface{ setDefaults() }

// value decodes one TOML value. rules is the tag of the field it goes into.
func (d *decoder) value(path string, value any, into reflect.Value, rules reflect.StructTag) {
	if into.Kind() == reflect.Pointer {
		fresh := d.fresh(into.Type().Elem()).Addr()
		if _, ok := fresh.Interface().(*Duration); ok {
			rules = `zero:"ok"` // a pointer is how a field tells "0s" from absent
		}
		into.Set(fresh)
		d.value(path, value, fresh.Elem(), rules)
		return
	}
	switch target := into.Addr().Interface().(type) {
	case *StringList:
		d.textList(path, value, into)
		return
	case *Secret:
		d.secret(path, value, target)
		return
	case *Expression:
		if err := target.UnmarshalTOML(value); err != nil {
			d.wrongType(path, value, "a whole number or an expression", `100 or "body.amount * 2"`)
		}
		return
	case encoding.TextUnmarshaler:
		if into.Type() != reflect.TypeFor[time.Time]() {
			d.unit(path, value, target, into, rules)
			return
		}
	}
	switch into.Kind() {
	case reflect.Struct:
		d.table(path, value, into)
	case reflect.Map:
		d.mapping(path, value, into)
	case reflect.Slice:
		d.list(path, value, into, rules)
	case reflect.Interface:
		into.Set(reflect.ValueOf(value))
	default:
		d.plain(path, value, into, rules)
	}
}

// unit decodes what is written as text with a unit.
func (d *decoder) unit(path string, value any, target encoding.TextUnmarshaler, into reflect.Value, rules reflect.StructTag) {
	text, ok := value.(string)
	if !ok {
		_, number := value.(int64)
		message, example := "is "+kindOf(value)+", must be text", ""
		switch target.(type) {
		case *Duration:
			example = `"600s"`
		case *Size:
			example = `"256KB" or "1MiB"`
		case *Rate:
			example = `"50/s" or "100/m"`
		case *Percent:
			example = `"5%"`
		}
		if number {
			message = fmt.Sprintf("%v has no unit", value)
		}
		d.fault(path, message, "write for example "+example)
		return
	}
	before := reflect.New(into.Type()).Elem()
	before.Set(into)
	if err := target.UnmarshalText([]byte(text)); err != nil {
		into.Set(before)
		d.fault(path, strconv.Quote(text)+" is not understood", err.Error())
		return
	}
	if into.CanInt() && into.Int() == 0 && rules.Get("zero") != "ok" {
		into.Set(before)
		d.fault(path, strconv.Quote(text)+" makes no sense here: it must be more than nothing", "leave the key out for its default")
	}
}

func (d *decoder) secret(path string, value any, into *Secret) {
	text, ok := value.(string)
	switch {
	case !ok:
		d.wrongType(path, value, "text", `"env:NAME" or "file:PATH"`)
	case text == "":
		d.fault(path, "is empty", `write "env:NAME" or "file:PATH", or leave the key out`)
	default:
		*into = NewSecret(text)
	}
}

// textList decodes a list that may be written as one text.
func (d *decoder) textList(path string, value any, into reflect.Value) {
	if text, ok := value.(string); ok {
		into.Set(reflect.ValueOf(StringList{text}))
		return
	}
	elements, ok := value.([]any)
	if !ok {
		d.wrongType(path, value, "text or a list of texts", `"a" or ["a", "b"]`)
		return
	}
	list := StringList{}
	for i, element := range elements {
		text, ok := element.(string)
		if !ok {
			d.wrongType(Item(path, i), element, "text", `"a"`)
			continue
		}
		list = append(list, text)
	}
	into.Set(reflect.ValueOf(list))
}

func (d *decoder) table(path string, value any, into reflect.Value) {
	table, ok := value.(map[string]any)
	if !ok {
		switch value.(type) {
		case []map[string]any:
			d.fault(path, "is a list of tables, must be one table", "write ["+plainPath(path)+"] with single brackets, once")
		default:
			d.wrongType(path, value, "a table", "["+plainPath(path)+"]")
		}
		return
	}
	fields := fieldsOf(into.Type())
	for _, key := range sortedKeys(table) {
		field, ok := fields[key]
		if !ok {
			d.unknown(path, key, fields)
			continue
		}
		d.value(Join(path, key), table[key], into.FieldByIndex(field.Index), field.Tag)
	}
}

func (d *decoder) mapping(path string, value any, into reflect.Value) {
	table, ok := value.(map[string]any)
	if !ok {
		switch value.(type) {
		case []map[string]any:
			d.fault(path, "is a list of tables, must be one table for each name", "write ["+plainPath(path)+".NAME]")
		default:
			d.wrongType(path, value, "a table", "["+plainPath(path)+"]")
		}
		return
	}
	if into.IsNil() {
		into.Set(reflect.MakeMap(into.Type()))
	}
	for _, key := range sortedKeys(table) {
		element := d.fresh(into.Type().Elem())
		d.value(Join(path, key), table[key], element, "")
		into.SetMapIndex(reflect.ValueOf(key).Convert(into.Type().Key()), element)
	}
}

func (d *decoder) list(path string, value any, into reflect.Value, rules reflect.StructTag) {
	var elements []any
	switch v := value.(type) {
	case []any:
		elements = v
	case []map[string]any:
		for _, table := range v {
			elements = append(elements, table)
		}
	default:
		if into.Type().Elem().Kind() == reflect.Struct && !isText(into.Type().Elem()) {
			d.fault(path, "is "+kindOf(value)+", must be a list of tables", "write [["+plainPath(path)+"]] with double brackets; a name goes inside as name = \"…\"")
			return
		}
		d.wrongType(path, value, "a list", `["…"], in brackets`)
		return
	}
	list := reflect.MakeSlice(into.Type(), 0, len(elements))
	for i, element := range elements {
		item := d.fresh(into.Type().Elem())
		d.value(Item(path, i), element, item, rules)
		list = reflect.Append(list, item)
	}
	into.Set(list)
}

func (d *decoder) fresh(of reflect.Type) reflect.Value {
	element := reflect.New(of)
	if filled, ok := element.Interface().(defaulted); ok {
		filled.setDefaults()
	}
	return element.Elem()
}

// plain decodes text, numbers and truth.
func (d *decoder) plain(path string, value any, into reflect.Value, rules reflect.StructTag) {
	switch {
	case into.Kind() == reflect.String:
		text, ok := value.(string)
		if !ok {
			d.wrongType(path, value, "text", `"…", in quotes`)
			return
		}
		if choices := rules.Get("oneof"); choices != "" && !slices.Contains(strings.Split(choices, ","), text) {
			d.choice(path, text, strings.Split(choices, ","))
			return
		}
		into.SetString(text)
	case into.Kind() == reflect.Bool:
		truth, ok := value.(bool)
		if !ok {
			d.wrongType(path, value, "true or false", "true, without quotes")
			return
		}
		into.SetBool(truth)
	case into.CanInt():
		n, ok := value.(int64)
		if !ok {
			d.wrongType(path, value, "a whole number", "8, without quotes")
			return
		}
		if into.OverflowInt(n) {
			d.fault(path, fmt.Sprintf("%d is too large", n), "")
			return
		}
		if d.inRange(path, float64(n), strconv.FormatInt(n, 10), rules) {
			into.SetInt(n)
		}
	case into.CanFloat():
		n, ok := value.(float64)
		if whole, isWhole := value.(int64); isWhole {
			n, ok = float64(whole), true
		}
		if !ok {
			d.wrongType(path, value, "a number", "2.5, without quotes")
			return
		}
		if d.inRange(path, n, strconv.FormatFloat(n, 'g', -1, 64), rules) {
			into.SetFloat(n)
		}
	default:
		d.fault(path, "can not be configured", "this is a fault of creel: "+into.Type().String())
	}
}

func (d *decoder) choice(path, text string, choices []string) {
	hint := "one of: " + strings.Join(choices, ", ")
	if near := Nearest(text, choices); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	d.fault(path, strconv.Quote(text)+" is not known here", hint)
}

// inRange applies the tags min, max and oneof of a number's field.
func (d *decoder) inRange(path string, n float64, text string, rules reflect.StructTag) bool {
	if choices := rules.Get("oneof"); choices != "" {
		if !slices.Contains(strings.Split(choices, ","), text) {
			d.fault(path, text+" is not allowed here", "one of: "+strings.ReplaceAll(choices, ",", ", "))
			return false
		}
	}
	for _, bound := range []struct {
		tag   string
		wrong func(limit float64) bool
		words string
	}{
		{"min", func(limit float64) bool { return !(n >= limit) }, "is too small: at least "},
		{"max", func(limit float64) bool { return !(n <= limit) }, "is too large: at most "},
	} {
		limit, err := strconv.ParseFloat(rules.Get(bound.tag), 64)
		if err == nil && bound.wrong(limit) {
			d.fault(path, text+" "+bound.words+rules.Get(bound.tag), "leave the key out for its default")
			return false
		}
	}
	return true
}

// plainPath is a path as a table's header spells it: without indices.
func plainPath(path string) string {
	for {
		open := strings.IndexByte(path, '[')
		shut := strings.IndexByte(path, ']')
		if open < 0 || shut < open {
			return path
		}
		path = path[:open] + path[shut+1:]
	}
}

// kindOf names the type of a TOML value for people.
func kindOf(value any) string {
	switch value.(type) {
	case string:
		return "text"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case bool:
		return "true or false"
	case time.Time:
		return "a date or time"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	case []map[string]any:
		return "a list of tables"
	}
	return fmt.Sprintf("%T", value)
}
