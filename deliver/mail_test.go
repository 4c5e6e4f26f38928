package deliver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

const (
	mailUser     = "creel"
	mailPassword = "correct-horse-battery"
)

// mailerOf compiles a mailer for a server, with what a test changes.
func mailerOf(t testing.TB, s *testkit.MailServer, change func(*config.SMTP), trusted *testkit.Authority) *Mailer {
	t.Helper()
	cfg := config.Default().SMTP
	cfg.Host, cfg.From = s.Addr, "Creel <creel@example.com>"
	cfg.Timeout = config.Duration(8 * time.Second)
	if change != nil {
		change(&cfg)
	}
	opt := Options{Env: noEnv, Clock: time.Now}
	if trusted != nil {
		opt.RootCAs = trusted.Pool
	}
	m, problems := NewMailer(cfg, "smtp", opt)
	if faults := problems.Faults(); len(faults) > 0 {
		t.Fatalf("compile: %v", faults)
	}
	return m
}

func withLogin(cfg *config.SMTP) {
	cfg.Username, cfg.Password = mailUser, config.NewSecret(mailPassword)
}

// mailShipment is a delivery of a mail on its first attempt.
func mailShipment(t testing.TB, text event.MailText) event.Shipment {
	t.Helper()
	message, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return event.Shipment{
		Delivery: event.Delivery{ID: 9, EventSeq: 1, Key: "stripe//in_1/paid", Destination: event.Mail, Target: "ann@example.net",
			Run: 1, Attempts: 1, Tries: 1, CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
		Claim: "boot.1", Message: string(message),
	}
}

var hello = event.MailText{Subject: "100 credits added", Text: "Thank you."}

// sent makes one attempt that has to work and returns the mail as it came.
func sent(t testing.TB, server *testkit.MailServer, m *Mailer, s event.Shipment) (testkit.Mail, *mail.Message) {
	t.Helper()
	before := len(server.Mails())
	result := m.Attempt(t.Context(), s, time.Now())
	if result.Attempt.Outcome != event.OK || result.Attempt.Error != "" || result.Attempt.Status != 250 {
		t.Fatalf("attempt: %+v", result.Attempt)
	}
	mails := server.Mails()
	if len(mails) != before+1 {
		t.Fatalf("%d mails came of one attempt", len(mails)-before)
	}
	got := mails[before]
	read, err := mail.ReadMessage(bytes.NewReader(got.Data))
	if err != nil {
		t.Fatalf("read the mail: %v\n%s", err, got.Data)
	}
	return got, read
}

// header is the header of a mail as it was on the wire.
func headerOf(m testkit.Mail) string {
	header, _, _ := strings.Cut(string(m.Data), "\r\n\r\n")
	return header
}

func textOf(t testing.TB, from io.Reader, encoding string) string {
	t.Helper()
	if encoding != "quoted-printable" {
		t.Fatalf("the encoding is %q", encoding)
	}
	text, err := io.ReadAll(quotedprintable.NewReader(from))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// 4yz is for now and 5yz for good, at every stage.
func TestBugMAIL07Codes(t *testing.T) {
	t.Parallel()
	for _, stage := range []testkit.MailStage{testkit.AtGreeting, testkit.AtHello, testkit.AtAuth, testkit.AtFrom, testkit.AtTo,
		testkit.AtData, testkit.AtMessage} {
		for _, answer := range []struct {
			code     int
			enhanced [3]int
			want     event.Outcome
			alive    bool // at the stages that are about the mail
		}{
			{421, [3]int{4, 3, 2}, event.Transient, false},
			{450, [3]int{4, 2, 0}, event.Transient, true},
			{451, [3]int{4, 4, 2}, event.Transient, false},
			{451, [3]int{4, 7, 1}, event.Transient, true},
			{452, [3]int{4, 3, 1}, event.Transient, false},
			{535, [3]int{5, 7, 8}, event.Permanent, false},
			{550, [3]int{5, 7, 1}, event.Permanent, false},
			{552, [3]int{5, 2, 2}, event.Permanent, false},
		} {
			t.Run(fmt.Sprintf("%s %d %v", stage, answer.code, answer.enhanced), func(t *testing.T) {
				t.Parallel()
				server := testkit.NewMailServer(t, testkit.MailOptions{Username: mailUser, Password: mailPassword, Clear: true})
				server.Script(testkit.MailAnswer{Stage: stage, Code: answer.code, Enhanced: answer.enhanced, Text: "not like this"})
				m := mailerOf(t, server, func(cfg *config.SMTP) { withLogin(cfg); cfg.TLS = "none" }, nil)
				result := m.Attempt(t.Context(), mailShipment(t, hello), time.Now())
				if result.Attempt.Outcome != answer.want || result.Attempt.Status != answer.code {
					t.Errorf("%+v", result.Attempt)
				}
				if !strings.Contains(result.Attempt.Error, fmt.Sprint(answer.code)) || !strings.Contains(result.Attempt.Error, "not like this") ||
					!strings.Contains(result.Attempt.Answer, "not like this") {
					t.Errorf("error %q, answer %q", result.Attempt.Error, result.Attempt.Answer)
				}
				about := stage == testkit.AtTo || stage == testkit.AtMessage
				if result.Alive != (about && answer.alive) {
					t.Errorf("alive: %t", result.Alive)
				}
				if len(server.Mails()) != 0 {
					t.Error("a refused mail was kept")
				}
			})
		}
	}
}

// A connection that breaks before the last line of the mail can not have
// brought it: it is tried again. After it nobody knows.
func TestGateD7LostAnswer(t *testing.T) {
	t.Parallel()
	long := event.MailText{Subject: "long", Text: strings.Repeat("a line of a long mail\n", 1<<13)}
	// More than the buffers of two kernels take.
	huge := event.MailText{Subject: "huge", Text: strings.Repeat("a line of a long mail\n", 1<<19)}
	for _, c := range []struct {
		stage testkit.MailStage
		text  event.MailText
		want  event.Outcome
		mails int
	}{
		{testkit.AtGreeting, hello, event.Transient, 0},
		{testkit.AtHello, hello, event.Transient, 0},
		{testkit.AtFrom, hello, event.Transient, 0},
		{testkit.AtTo, hello, event.Transient, 0},
		{testkit.AtData, hello, event.Transient, 0},
		{testkit.AtBody, huge, event.Transient, 0},
		{testkit.AtMessage, hello, event.Unknown, 1},
		{testkit.AtMessage, long, event.Unknown, 1},
	} {
		for _, hang := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s of %d, hang %t", c.stage, len(c.text.Text), hang), func(t *testing.T) {
				t.Parallel()
				server := testkit.NewMailServer(t, testkit.MailOptions{})
				server.Script(testkit.MailAnswer{Stage: c.stage, Drop: !hang, Hang: hang})
				m := mailerOf(t, server, func(cfg *config.SMTP) {
					if hang {
						cfg.Timeout = config.Duration(time.Second)
					}
				}, nil)
				began := time.Now()
				result := m.Attempt(t.Context(), mailShipment(t, c.text), began)
				if took := time.Since(began); took > 6*time.Second && len(c.text.Text) < 1<<20 { // a huge one is long in the making
					t.Errorf("it took %s", took)
				}
				if result.Attempt.Outcome != c.want || result.Attempt.Status != 0 || result.Wrote != (c.want == event.Unknown) || result.Alive {
					t.Errorf("%+v, wrote %t", result.Attempt, result.Wrote)
				}
				if said := strings.Contains(result.Attempt.Error, "may have taken it"); said != (c.want == event.Unknown) {
					t.Errorf("error: %q", result.Attempt.Error)
				}
				if got := len(server.Mails()); got != c.mails {
					t.Errorf("%d mails", got)
				}
			})
		}
	}
}

func TestGateD7NobodyThere(t *testing.T) {
	t.Parallel()
	server := testkit.NewMailServer(t, testkit.MailOptions{})
	m := mailerOf(t, server, nil, nil)
	m.address = "127.0.0.1:1"
	result := m.Attempt(t.Context(), mailShipment(t, hello), time.Now())
	if result.Attempt.Outcome != event.Transient || !strings.Contains(result.Attempt.Error, "refused the connection") {
		t.Errorf("%+v", result.Attempt)
	}
}

// Nothing that a payload says becomes a header.
func TestBugMAIL01InjectedHeaders(t *testing.T) {
	t.Parallel()
	server := testkit.NewMailServer(t, testkit.MailOptions{})
	m := mailerOf(t, server, nil, nil)
	for _, c := range []struct{ field, subject, target string }{
		{"the subject", "Hi\r\nBcc: victim@example.test\r\n\r\nbody", "ann@example.net"},
		{"the subject", "Hi\nBcc: victim@example.test", "ann@example.net"},
		{"the subject", "Hi\rBcc: victim@example.test", "ann@example.net"},
		{"the subject", "Hi\x00there", "ann@example.net"},
		{"the subject", "Hi\u2028Bcc: victim@example.test", "ann@example.net"},
		{"the recipient", "Hi", "ann@example.net\r\nBcc: victim@example.test"},
		{"the recipient", "Hi", "ann@example.net>\r\nRCPT TO:<victim@example.test"},
		{"the recipient", "Hi", "ann@example.net\x00"},
		{"the recipient", "Hi", "ann@example.net, victim@example.test"},
		{"the recipient", "Hi", "all: ann@example.net, victim@example.test;"},
		{"the recipient", "Hi", "=?utf-8?B?QQ0KQmNjOiB2QGV4YW1wbGUudGVzdA==?= <ann@example.net>"},
		{"the recipient", "Hi", ""},
		{"the recipient", "Hi", "ännchen@example.net"},
	} {
		s := mailShipment(t, event.MailText{Subject: c.subject, Text: "text"})
		s.Target = c.target
		result := m.Attempt(t.Context(), s, time.Now())
		if result.Attempt.Outcome != event.Permanent || !strings.Contains(result.Attempt.Error, c.field) {
			t.Errorf("%q to %q: %+v", c.subject, c.target, result.Attempt)
		}
		if strings.Contains(result.Attempt.Error, "victim") {
			t.Errorf("the error repeats the text: %q", result.Attempt.Error)
		}
	}
	if server.Opened() != 0 {
		t.Error("something of it was sent")
	}
	if _, problems := NewMailer(config.SMTP{Host: server.Addr, From: "\"A\r\nBcc: v@example.test\" <a@example.com>"}, "smtp",
		Options{Env: noEnv, Clock: time.Now}); len(problems.Faults()) != 1 || problems.Faults()[0].Path != "smtp.from" {
		t.Errorf("a name of the sender with a line end: %v", problems)
	}
}

// What looks like a header in a body stays in the body.
func TestBugMAIL01Body(t *testing.T) {
	t.Parallel()
	server := testkit.NewMailServer(t, testkit.MailOptions{})
	text := "\r\n\r\nBcc: victim@example.test\r\nSubject: other\r\n"
	got, read := sent(t, server, mailerOf(t, server, nil, nil), mailShipment(t, event.MailText{Subject: "Hi", Text: text}))
	if strings.Contains(headerOf(got), "victim") || len(read.Header["Subject"]) != 1 || read.Header.Get("Bcc") != "" {
		t.Errorf("%s", headerOf(got))
	}
}

// headers checks what must hold for the header of every mail.
func checkHeader(t interface{ Errorf(string, ...any) }, header string) {
	for line := range strings.SplitSeq(header, "\r\n") {
		if len(line) > 78 {
			t.Errorf("a line of %d bytes: %q", len(line), line)
		}
		if strings.TrimSpace(line) == "" {
			t.Errorf("a blank line inside the header")
		}
		for i := range len(line) {
			if line[i] >= 0x80 || line[i] < ' ' {
				t.Errorf("not pure ASCII: %q", line)
				break
			}
		}
	}
}

// decoded is a header's text as a reader shows it.
func decoded(t interface{ Fatalf(string, ...any) }, value string) string {
	text, err := new(mime.WordDecoder).DecodeHeader(value)
	if err != nil {
		t.Fatalf("%q: %v", value, err)
	}
	return text
}

// Subjects and names of any kind arrive as they were written.
func TestBugMAIL03Subjects(t *testing.T) {
	t.Parallel()
	server := testkit.NewMailServer(t, testkit.MailOptions{UTF8: true})
	for _, subject := range []string{
		"[release 🚀] 小明 é",
		"plain",
		"",
		strings.Repeat("eine Überschrift mit Umläuten ", 20) + "Ende",
		strings.Repeat("many plain words in a row ", 20) + "end",
		strings.Repeat("x", 400),
		"two  spaces and a trailing one ",
		" a leading one",
		"looks encoded =?utf-8?Q?no?=",
		"tab\there",
		"?= =?",
		strings.Repeat("🚀", 100),
	} {
		m := mailerOf(t, server, func(cfg *config.SMTP) { cfg.From = `"Zoë 🚀, Ltd." <creel@bücher.example>` }, nil)
		got, read := sent(t, server, m, mailShipment(t, event.MailText{Subject: subject, Text: "x"}))
		checkHeader(t, headerOf(got))
		if text := decoded(t, read.Header.Get("Subject")); text != subject {
			t.Errorf("subject %q came as %q", subject, text)
		}
		from, err := read.Header.AddressList("From")
		if err != nil || from[0].Name != "Zoë 🚀, Ltd." || from[0].Address != "creel@xn--bcher-kva.example" {
			t.Errorf("from %v: %v", from, err)
		}
	}
}

func TestBugMAIL03AnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,200}`), rapid.StringMatching(`[ a-zé🚀=?_]{0,200}`)).
			Filter(func(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, isLineEnd) }).Draw(t, "subject")
		header := "Subject: " + textValue("Subject", text)
		checkHeader(t, header)
		read, err := mail.ReadMessage(strings.NewReader(header + "\r\n\r\n"))
		if err != nil {
			t.Fatalf("%q: %v", header, err)
		}
		if got := decoded(t, read.Header.Get("Subject")); got != text {
			t.Fatalf("%q came as %q", text, got)
		}
	})
}

// Dots, long lines and commands in a text are text.
func TestBugMAIL05Bodies(t *testing.T) {
	t.Parallel()
	server := testkit.NewMailServer(t, testkit.MailOptions{})
	m := mailerOf(t, server, nil, nil)
	for name, text := range map[string]string{
		"a dot":       "first\n.\nMAIL FROM:<x@example.test>\nRCPT TO:<y@example.test>\n..\n.two\nlast\n",
		"long line":   strings.Repeat("long 小明 ", 2000) + "\nend",
		"long word":   strings.Repeat("x", 5000),
		"blanks":      "trailing  \n\t\n = sign\n--boundary\nFrom here\n",
		"no last end": "no line end",
	} {
		got, read := sent(t, server, m, mailShipment(t, event.MailText{Subject: name, Text: text}))
		body := textOf(t, read.Body, read.Header.Get("Content-Transfer-Encoding"))
		if body != strings.TrimSuffix(text, "\n")+"\n" {
			t.Errorf("%s: %q came as %q", name, text, body)
		}
		for line := range bytes.SplitSeq(got.Data, []byte("\r\n")) {
			if len(line) > 78 {
				t.Errorf("%s: a line of %d bytes", name, len(line))
			}
		}
	}
}

// The Message-ID belongs to the delivery: the same on every attempt and replay,
// another for another recipient or operation.
func TestBugMAIL09Identity(t *testing.T) {
	t.Parallel()
	server := testkit.NewMailServer(t, testkit.MailOptions{})
	m := mailerOf(t, server, nil, nil)
	first := mailShipment(t, hello)
	again, later := first, first
	again.Tries, again.Run = 3, 2
	later.Key = "stripe//in_2/paid"
	other := first
	other.Target = "bob@example.net"
	ids := map[string][]string{}
	for name, s := range map[string]event.Shipment{"first": first, "again": again, "key": later, "target": other} {
		_, read := sent(t, server, m, s)
		id := read.Header.Get("Message-ID")
		if !strings.HasPrefix(id, "<msg_") || !strings.HasSuffix(id, "@example.com>") {
			t.Errorf("%s: %q", name, id)
		}
		date, err := read.Header.Date()
		if err != nil || !date.Equal(first.CreatedAt) {
			t.Errorf("%s: date %v, %v", name, date, err)
		}
		if read.Header.Get("Auto-Submitted") != "auto-generated" || read.Header.Get("Mime-Version") != "1.0" {
			t.Errorf("%s: %v", name, read.Header)
		}
		ids[id] = append(ids[id], name)
	}
	if len(ids) != 3 {
		t.Errorf("identities: %v", ids)
	}
}

func TestGateD7TextAndHTML(t *testing.T) {
	t.Parallel()
	server := testkit.NewMailServer(t, testkit.MailOptions{})
	m := mailerOf(t, server, nil, nil)
	want := event.MailText{Subject: "both", Text: "Grüße\n.\n", HTML: "<p>Grüße &amp; more</p>\n"}
	_, read := sent(t, server, m, mailShipment(t, want))
	kind, params, err := mime.ParseMediaType(read.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("%q: %v", kind, err)
	}
	parts := multipart.NewReader(read.Body, params["boundary"])
	var got [][2]string
	for {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, [2]string{part.Header.Get("Content-Type"), textOf(t, part, part.Header.Get("Content-Transfer-Encoding"))})
	}
	if diff := cmp.Diff([][2]string{{"text/plain; charset=utf-8", want.Text}, {"text/html; charset=utf-8", want.HTML}}, got); diff != "" {
		t.Error(diff)
	}
	_, read = sent(t, server, m, mailShipment(t, event.MailText{Subject: "html", HTML: want.HTML}))
	if kind := read.Header.Get("Content-Type"); kind != "text/html; charset=utf-8" {
		t.Errorf("html alone: %q", kind)
	}
	for _, message := range []string{"", "{", `{"subject":"nothing"}`} {
		s := mailShipment(t, hello)
		s.Message = message
		if result := m.Attempt(t.Context(), s, time.Now()); result.Attempt.Outcome != event.Permanent {
			t.Errorf("message %q: %+v", message, result.Attempt)
		}
	}
}
