package cli

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"creel/event"
	"creel/path"
	"creel/source"
)

// maxRecord is the longest line of a file of events, in bytes.
const maxRecord = 64 << 20

// record is one line of a file: a text, a JSON value, or a row of a table.
type record struct {
	line int
	raw  []byte
	row  map[string]string // of a CSV file
	sent *source.Capture   // of a file of captured requests
	bad  error             // why it can not be read; then there is nothing else
}

// formats are the files that are read.
func formats() []string { return []string{"jsonl", "csv", "lines", "capture"} }

// formatOf is how a file is written: as it was asked for, or as its name says.
func formatOf(asked, name, otherwise string) (string, error) {
	switch {
	case asked != "":
		for _, one := range formats() {
			if asked == one {
				return one, nil
			}
		}
		return "", usage("one of "+strings.Join(formats(), ", "), "--format %q is not known", asked)
	case strings.HasSuffix(name, ".csv"):
		return "csv", nil
	case strings.HasSuffix(name, ".jsonl"), strings.HasSuffix(name, ".ndjson"):
		return "jsonl", nil
	case strings.HasSuffix(name, ".har"), strings.HasSuffix(name, ".http"):
		return "capture", nil
	}
	return otherwise, nil
}

// eachRecord reads a file, - being standard input, and visits its lines that
// are not blank. An error that visit returns is given back as it is.
func eachRecord(name, format string, visit func(record) error) error {
	from := io.Reader(os.Stdin)
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return usage("", "%w", err)
		}
		defer file.Close()
		from = file
	}
	switch format {
	case "csv":
		return eachRow(from, visit)
	case "capture":
		return eachCapture(from, visit)
	}
	reader := bufio.NewReaderSize(from, 1<<20)
	for n := 1; ; n++ {
		line, err := readLine(reader)
		if errors.Is(err, errTooLong) {
			if err := visit(record{line: n, bad: err}); err != nil {
				return err
			}
			continue
		}
		if text := strings.TrimSpace(strings.TrimPrefix(string(line), "\ufeff")); text != "" {
			if err := visit(record{line: n, raw: []byte(text)}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return failed("", "read line %d: %w", n, err)
		}
	}
}

// eachCapture visits the requests of a file of captures.
func eachCapture(from io.Reader, visit func(record) error) error {
	data, err := io.ReadAll(io.LimitReader(from, maxRecord+1))
	if err == nil && len(data) > maxRecord {
		err = fmt.Errorf("the file is larger than %d bytes", maxRecord)
	}
	if err != nil {
		return usage("", "read the captures: %w", err)
	}
	all, err := source.ReadCaptures(data)
	if err != nil {
		return usage("creel verify --help says how a capture is written", "%w", err)
	}
	for i, one := range all {
		if err := visit(record{line: i + 1, raw: one.Body, sent: one}); err != nil {
			return err
		}
	}
	return nil
}

var errTooLong = fmt.Errorf("it is longer than %d bytes", maxRecord)

// readLine reads a line with its end. One that is too long is read to its end
// and told of (errTooLong).
func readLine(r *bufio.Reader) (line []byte, err error) {
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxRecord; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errTooLong
		}
		return line, err
	}
}

func eachRow(from io.Reader, visit func(record) error) error {
	reader := csv.NewReader(from)
	reader.FieldsPerRecord = -1
	var names []string
	for {
		row, err := reader.Read()
		var broken *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &broken):
			if err := visit(record{line: broken.StartLine, bad: broken.Err}); err != nil {
				return err
			}
			continue
		case err != nil:
			return failed("", "read the table: %w", err)
		}
		line, _ := reader.FieldPos(0)
		if names == nil {
			names = append(names, row...)
			names[0] = strings.TrimPrefix(names[0], "\ufeff")
			if twice := doubled(names); twice != "" {
				return usage("name each column once", "the column %q stands twice", twice)
			}
			continue
		}
		if err := visit(rowOf(line, names, row)); err != nil {
			return err
		}
	}
}

// doubled is a name that stands twice; "" where none does.
func doubled(names []string) string {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return name
		}
	}
	return ""
}

func rowOf(line int, names, row []string) record {
	if len(row) != len(names) {
		return record{line: line, bad: fmt.Errorf("it has %s, and the table %s", plural(len(row), "field", "fields"), plural(len(names), "column", "columns"))}
	}
	one := record{line: line, row: map[string]string{}}
	for i, text := range row {
		one.row[names[i]] = text
	}
	return one
}

// errNoField says that a line has no such column or member.
var errNoField = errors.New("is not there")

// field is a column of a row, or a member of a JSON value by its path.
func (r record) field(name string) (string, error) {
	if r.row != nil {
		if text, ok := r.row[name]; ok && text != "" {
			return text, nil
		}
		return "", fmt.Errorf("the column %q %w", name, errNoField)
	}
	at, err := path.Parse("body." + name)
	if err != nil {
		return "", err
	}
	value, ok, err := path.NewDocument(event.Payload{Body: r.raw}).Get(at)
	switch {
	case err != nil:
		return "", err
	case !ok || value.Kind == path.Null:
		return "", fmt.Errorf("%q %w", name, errNoField)
	case value.Kind == path.Object || value.Kind == path.Array:
		return string(value.Raw), nil
	}
	return value.Text(), nil
}

// whole is the line as one JSON value.
func (r record) whole() []byte {
	if r.row == nil {
		return r.raw
	}
	text, _ := json.Marshal(r.row) // texts always can be
	return text
}
