package source

import (
	"testing"
	"time"

	"creel/config"
)

// A series is about one object, and its versions grow: what a sender's own
// events in order look like, and what a test sends the other way round.
func TestSeriesIsOneObjectInOrder(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for name, kind := range map[string]string{
		"stripe": "invoice.paid", "github": "issues.opened", "shopify": "", "razorpay": "", "slack": "", "svix": "", "standard-webhooks": "",
	} {
		secret := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		s := mustCompile(t, config.Source{Name: name, Provider: name, Secrets: []config.Secret{config.NewSecret(secret)}})
		objects, ids, last := map[string]bool{}, map[string]bool{}, ""
		for i, draft := range s.Series(kind, 3, now) {
			req, err := s.Sign(draft, Signing{At: now})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := s.Receive(req, now)
			if len(got.Items) != 1 || got.Items[0].Error != "" {
				t.Fatalf("%s: event %d: %+v", name, i, got)
			}
			item := got.Items[0]
			objects[item.Object], ids[item.Key.ID] = true, true
			if item.Version <= last {
				t.Errorf("%s: version %q after %q", name, item.Version, last)
			}
			last = item.Version
		}
		if len(objects) != 1 || len(ids) != 3 {
			t.Errorf("%s: objects %v, ids %v", name, objects, ids)
		}
	}
}
