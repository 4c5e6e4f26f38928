package source

import (
	"strconv"
	"time"
)

// Series drafts n events about one object, the oldest first: each a second
// later than the one before and the last of them at the given time, as the
// sample's own timestamps and the version that is read from them tell it. The
// ids are new.
func (s *Source) Series(kind string, n int, at time.Time) []Draft {
	object := randomToken()
	drafts := make([]Draft, 0, n)
	for i := range n {
		then := at.Add(time.Duration(i+1-n) * time.Second)
		id := "evt_" + randomToken()
		if sample, ok := s.sample(kind); ok {
			drafts = append(drafts, sample.draft(id, object, then))
			continue
		}
		drafts = append(drafts, s.least(facts{kind: orTest(kind), id: id, object: object, version: strconv.FormatInt(then.Unix(), 10)}))
	}
	return drafts
}
