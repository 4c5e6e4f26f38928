package source

import (
	"strings"
	"testing"

	"creel/config"
)

// BenchmarkReceive is what a request of about a KiB costs before the store.
func BenchmarkReceive(b *testing.B) {
	for _, name := range []string{"stripe", "github", "standard-webhooks"} {
		b.Run(name, func(b *testing.B) {
			sub := subject{cfg: config.Source{Provider: name}}
			sub.finish(b)
			s := mustCompile(b, sub.cfg)
			d := s.Sample("", "evt_1", bugNow)
			d.Body = []byte(strings.Replace(string(d.Body), "{", `{"padding":"`+strings.Repeat("x", 600)+`",`, 1))
			req, err := s.Sign(d, Signing{At: bugNow})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if r := s.Receive(req, bugNow); r.Refused() {
					b.Fatal(r.Cause)
				}
			}
		})
	}
}
