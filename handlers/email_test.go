package handlers

import (
	"reflect"
	"strings"
	"testing"

	"creel/config"
	"creel/event"
)

func TestEmailIsOneEffectForEachRecipient(t *testing.T) {
	t.Parallel()
	d := decided(t, config.Rule{Email: &config.Email{
		To: []string{"{body.to}", "Owner <owner@example.com>", "{body.to}"}, Subject: "Order {body.id}", Text: "<{body.name}>", HTML: "<p>{body.name}</p>",
	}}, `{"to":"ann@example.com","id":9007199254740993,"name":"<script>&\"'"}`)
	mail := event.Email{Key: "gen//evt_1/rule", Rule: "rule", To: "ann@example.com", Subject: "Order 9007199254740993",
		Text: `<<script>&"'>`, HTML: "<p>&lt;script&gt;&amp;&#34;&#39;</p>"}
	owner := mail
	owner.To = "owner@example.com"
	if d.State != event.Done || !reflect.DeepEqual(d.Effects, []event.Effect{mail, owner}) {
		t.Errorf("%+v", d)
	}
}

func TestMailThatCanNotBeSentIsDead(t *testing.T) {
	t.Parallel()
	rule := config.Rule{Email: &config.Email{To: []string{"{body.to}"}, Subject: "{body.subject}", Text: "t"}}
	for _, c := range []struct{ to, subject, want string }{
		{`a@example.com\nBcc: b@example.com`, `s`, "email: to: has a line break"},
		{`a@example.com, b@example.com`, `s`, "email: to: is no mail address"},
		{`\"x@example.com,y\"@example.com`, `s`, "email: to: is no mail address"},
		{`\"a> SIZE=1\"@example.com`, `s`, "email: to: is no mail address"},
		{`secret`, `s`, "email: to: is no mail address"},
		{``, `s`, "email: to: is no mail address"},
	} {
		d := decided(t, rule, `{"to":"`+c.to+`","subject":"`+c.subject+`"}`)
		dead(t, d, c.want)
		if strings.Contains(d.Error, "secret") {
			t.Errorf("the error quotes the payload: %s", d.Error)
		}
	}
	dead(t, decided(t, rule, `{"subject":"s"}`), "email: to: body.to: nothing stands there")
	html := config.Rule{Email: &config.Email{To: []string{"a@example.com"}, Subject: "s", HTML: "{body.x}"}}
	dead(t, decided(t, html, `{}`), "email: html: body.x: nothing stands there")
}

// A line break in a subject begins no header, and costs nobody his mail.
func TestBugMAIL01OneSubjectLine(t *testing.T) {
	t.Parallel()
	rule := config.Rule{Email: &config.Email{To: []string{"a@example.com"}, Subject: "Hi {body.subject}", Text: "t"}}
	for subject, want := range map[string]string{
		`one\r\nBcc: b@example.com\r\n\r\nbody`: "Hi one Bcc: b@example.com body",
		`one\rtwo`:                              "Hi one two", `one\u0000`: "Hi one", `one\u2028two`: "Hi one two", `\n`: "Hi ",
	} {
		d := decided(t, rule, `{"subject":"`+subject+`"}`)
		if got := d.Effects[0].(event.Email).Subject; d.State != event.Done || got != want {
			t.Errorf("%s: %s with the subject %q, want %q", subject, d.State, got, want)
		}
	}
}

func TestEmailIsChecked(t *testing.T) {
	t.Parallel()
	to := config.StringList{"a@example.com"}
	for path, m := range map[string]config.Email{
		".to":      {Subject: "s", Text: "t"},
		".to[1]":   {To: []string{"{body.to}", "nobody"}, Subject: "s", Text: "t"},
		".subject": {To: to, Text: "t"},
		".text":    {To: to, Subject: "s", Text: "{"},
		".html":    {To: to, Subject: "s", HTML: "{bdy}"},
		"":         {To: to, Subject: "s"},
	} {
		told(t, problemsOf(config.Rule{Email: &m}), "rule[0].email"+path, "")
	}
	told(t, problemsOf(config.Rule{Email: &config.Email{To: to, Subject: "a\nb", Text: "t"}}), "rule[0].email.subject", "has a line break")
	cfg := configuration(config.Rule{Name: "rule", Email: &config.Email{To: to, Subject: "s", Text: "t"}})
	cfg.SMTP.Host = ""
	_, problems := Compile(cfg, Options{})
	told(t, problems, "rule[0].email", "there is no mail server")
}
