package path

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"creel/event"
)

func parsed(t testing.TB, text string) Path {
	t.Helper()
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGetReadsTheExactText(t *testing.T) {
	t.Parallel()
	body := `{"id":9007199254740993,"n":1.10,"neg":-0,"exp":1E+2,"s":"a\"\\\/\b\f\n\r\té😀","yes":true,"no":false,"null":null,
	 "list":[{"x":"first"},{"x":"second"},[1,[2,3]]],"a.b":"dot","7":{"0":"digits"},"":"empty","o":{"k" : [1, 2]},"tail\\":"slash"}`
	d := NewDocument(event.Payload{Body: []byte(body)})
	for place, want := range map[string]string{
		"body.id": "9007199254740993", "body.n": "1.10", "body.neg": "-0", "body.exp": "1E+2",
		"body.s": "a\"\\/\b\f\n\r\té😀", "body.yes": "true", "body.no": "false", "body.null": "",
		"body.list.0.x": "first", "body.list.1.x": "second", "body.list.2.1.0": "2",
		`body.a\.b`: "dot", "body.7.0": "digits", "body.o": `{"k" : [1, 2]}`, "body.o.k": "[1, 2]",
		`body.tail\\`: "slash", "body": body,
	} {
		value, ok, err := d.Get(parsed(t, place))
		if err != nil || !ok || value.Text() != want {
			t.Errorf("%s = %q, %v, %v; want %q", place, value.Text(), ok, err, want)
		}
	}
	for _, place := range []string{"body.none", "body.id.x", "body.list.3", "body.list.00", "body.list.x", "body.null.x", "body.list.-1"} {
		if value, ok, err := d.Get(parsed(t, place)); ok || err != nil {
			t.Errorf("%s = %q, %v, %v; want nothing", place, value.Text(), ok, err)
		}
	}
}

func TestGetRefusesAMemberWrittenTwiceOnTheUsedPath(t *testing.T) {
	t.Parallel()
	body := `{"id":1,"a":{"b":1,"\u0062":2,"c":3},"x":1,"x":2,"list":[{"y":1,"y":1}]}`
	d := NewDocument(event.Payload{Body: []byte(body)})
	for place, want := range map[string]string{
		"body.a.b": "body.a.b", "body.x": "body.x", "body.x.deeper": "body.x", "body.list.0.y": "body.list.0.y",
	} {
		_, _, err := d.Get(parsed(t, place))
		var placed *PlaceError
		if !errors.Is(err, ErrDuplicateMember) || !errors.As(err, &placed) || placed.Place != want {
			t.Errorf("%s: %v, want a duplicate at %s", place, err, want)
		}
	}
	for _, place := range []string{"body.id", "body.a.c", "body.a", "body.list"} {
		if _, ok, err := d.Get(parsed(t, place)); !ok || err != nil {
			t.Errorf("%s: %v, %v; the doubled members are not on this path", place, ok, err)
		}
	}
}

func TestGetReadsPastAByteOrderMark(t *testing.T) {
	t.Parallel()
	d := NewDocument(event.Payload{Body: []byte("\xef\xbb\xbf{\"id\":\"d-5\"}")})
	if value, ok, err := d.Get(parsed(t, "body.id")); !ok || err != nil || value.Text() != "d-5" {
		t.Errorf("id = %q, %v, %v", value.Text(), ok, err)
	}
	form := NewDocument(event.Payload{Body: []byte("\xef\xbb\xbfid=f-1&x=1")})
	if value, ok, err := form.Get(parsed(t, "form.id")); !ok || err != nil || value.Text() != "f-1" {
		t.Errorf("form id = %q, %v, %v", value.Text(), ok, err)
	}
}

func TestDepthIsCapped(t *testing.T) {
	t.Parallel()
	nested := func(n int) []byte {
		return []byte(strings.Repeat("[", n) + strings.Repeat("]", n))
	}
	if err := NewDocument(event.Payload{Body: nested(MaxDepth)}).Check(); err != nil {
		t.Errorf("%d levels: %v", MaxDepth, err)
	}
	for _, n := range []int{MaxDepth + 1, 100_000} {
		d := NewDocument(event.Payload{Body: nested(n)})
		if err := d.Check(); !errors.Is(err, ErrTooDeep) {
			t.Errorf("check of %d levels: %v", n, err)
		}
		if _, _, err := d.Get(parsed(t, "body.0.0.0")); !errors.Is(err, ErrTooDeep) {
			t.Errorf("get in %d levels: %v", n, err)
		}
		if _, err := d.Decode(); !errors.Is(err, ErrTooDeep) {
			t.Errorf("decode of %d levels: %v", n, err)
		}
	}
}

func TestGateR13BrokenBodiesAreErrorsWhateverThePath(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"", " ", "{", `{"id":1`, `{"id":1}}`, `{"id":1,}`, `{"id" 1}`, `{id:1}`, `[1 2]`, `{"id":01}`, `{"id":1.}`,
		`{"id":tru}`, `{"id":"a` + "\n" + `"}`, `{"id":"\x"}`, `{"id":"\u12"}`, `{"id":1]`, `["id":1]`, "id=1", "\x00", `{"id":-}`,
		`{"id":1e}`, `{"id":'a'}`, `NaN`, `{"id":1}` + "\x00",
	} {
		d := NewDocument(event.Payload{Body: []byte(body)})
		if err := d.Check(); !errors.Is(err, ErrUnparsable) {
			t.Errorf("check of %q: %v", body, err)
		}
		if value, ok, err := d.Get(parsed(t, "body.id")); !errors.Is(err, ErrUnparsable) {
			t.Errorf("get in %q: %q, %v, %v", body, value.Text(), ok, err)
		}
	}
}

func TestStringsKeepTheBytesThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	d := NewDocument(event.Payload{Body: []byte("{\"id\":\"d\xff6\",\"a\":\"\\ud800\",\"b\":\"\\ud801x\",\"c\":\"\\ud800\\ud801\",\"nul\":\"a\\u0000b\"}")})
	for place, want := range map[string]string{
		"body.id": "d\xff6", "body.a": "\xed\xa0\x80", "body.b": "\xed\xa0\x81x", "body.c": "\xed\xa0\x80\xed\xa0\x81", "body.nul": "a\x00b",
	} {
		if value, ok, err := d.Get(parsed(t, place)); err != nil || !ok || value.Text() != want {
			t.Errorf("%s = %q, %v, %v; want %q", place, value.Text(), ok, err, want)
		}
	}
}

func TestFieldsOfHeaderQueryAndForm(t *testing.T) {
	t.Parallel()
	d := NewDocument(event.Payload{
		Header: "X-GitHub-Event: push\r\nX-Twice: one\nx-twice: two\nX-Colon: a: b\nX-Empty:\n",
		Query:  "hub.mode=subscribe&hub.challenge=1+2%2B&bad=%zz&empty",
		Body:   []byte("payload=%7B%7D&zen=a%2Bb+c&twice=1&twice=1&=none"),
	})
	for place, want := range map[string]string{
		"header.x-github-event": "push", "header.X-GITHUB-EVENT": "push", "header.x-twice": "one", "header.x-colon": "a: b",
		"header.x-empty": "", "query.hub.mode": "subscribe", `query.hub\.mode`: "subscribe", "query.hub.challenge": "1 2+",
		"query.bad": "%zz", "query.empty": "", "form.payload": "{}", "form.zen": "a+b c",
	} {
		if value, ok, err := d.Get(parsed(t, place)); err != nil || !ok || value.Text() != want {
			t.Errorf("%s = %q, %v, %v; want %q", place, value.Text(), ok, err, want)
		}
	}
	if _, _, err := d.Get(parsed(t, "form.twice")); !errors.Is(err, ErrDuplicateMember) {
		t.Errorf("a field that is there twice: %v", err)
	}
	if _, ok, err := d.Get(parsed(t, "header.x-none")); ok || err != nil {
		t.Errorf("a header that is not there: %v, %v", ok, err)
	}
}

func TestDecodeKeepsWholeNumbersExact(t *testing.T) {
	t.Parallel()
	d := NewDocument(event.Payload{Body: []byte(`{"max":9223372036854775807,"over":9223372036854775808,"min":-9223372036854775808,"f":1.5,"e":1e3,
	 "vast":1e999,"s":"\u00e9","t":true,"n":null,"a":[],"o":{}}`)})
	got, err := d.Decode()
	want := map[string]any{
		"max": int64(math.MaxInt64), "over": "9223372036854775808", "min": int64(math.MinInt64), "f": 1.5, "e": 1000.0,
		"vast": "1e999", "s": "\u00e9", "t": true, "n": nil, "a": []any{}, "o": map[string]any{},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%#v, %v", got, err)
	}
}

func TestDecodeRefusesAMemberWrittenTwiceAnywhere(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"a":1,"a":1}`, `[{"b":{"\u0061":1,"a":2}}]`} {
		if got, err := NewDocument(event.Payload{Body: []byte(body)}).Decode(); !errors.Is(err, ErrDuplicateMember) {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
}

var bench = []byte(`{"object":"event","api_version":"2026-01-01","created":1700000000,"data":{"object":{"id":"in_123","lines":[` +
	strings.TrimSuffix(strings.Repeat(`{"amount":12345,"description":"a line of the invoice"},`, 14), ",") +
	`],"customer":"cus_1"}},"livemode":false,"type":"invoice.paid","id":"evt_1M2abc"}`)

func BenchmarkGet(b *testing.B) {
	p := parsed(b, "body.id")
	b.SetBytes(int64(len(bench)))
	b.ReportAllocs()
	for b.Loop() {
		d := NewDocument(event.Payload{Body: bench})
		if _, ok, err := d.Get(p); !ok || err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGetFive(b *testing.B) {
	var paths []Path
	for _, place := range []string{"body.id", "body.type", "body.account", "body.data.object.id", "body.created"} {
		paths = append(paths, parsed(b, place))
	}
	b.ReportAllocs()
	for b.Loop() {
		d := NewDocument(event.Payload{Body: bench})
		for _, p := range paths {
			if _, _, err := d.Get(p); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func TestGetInAnObjectWithManyMembers(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 3 * maxIndex {
		fmt.Fprintf(&b, `,"m%d":%d`, i, i)
	}
	for _, tail := range []string{"", `,"m3":0`} {
		d := NewDocument(event.Payload{Body: []byte("{" + b.String()[1:] + tail + "}")})
		for _, name := range []string{"0", "63", "64", "150", "191"} {
			if value, ok, err := d.Get(parsed(t, "body.m"+name)); err != nil || !ok || value.Text() != name {
				t.Errorf("m%s = %q, %v, %v", name, value.Text(), ok, err)
			}
		}
		if _, _, err := d.Get(parsed(t, "body.m3")); errors.Is(err, ErrDuplicateMember) != (tail != "") {
			t.Errorf("m3 with %q behind it: %v", tail, err)
		}
	}
}
