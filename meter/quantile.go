package meter

import "time"

// Quantile is the duration that a share q of the observations did not exceed,
// as near as the buckets tell: inside a bucket observations count as evenly
// spread. What exceeded the longest bound counts as that. Zero where nothing
// was observed.
func (r Reading) Quantile(q float64) time.Duration {
	if r.Count == 0 || len(r.Bounds) == 0 {
		return 0
	}
	rank := q * float64(r.Count)
	var below int64
	var from time.Duration
	for i, to := range r.Bounds {
		if float64(r.Below[i]) >= rank && r.Below[i] > below {
			share := (rank - float64(below)) / float64(r.Below[i]-below)
			return from + time.Duration(max(share, 0)*float64(to-from))
		}
		below, from = r.Below[i], to
	}
	return from
}
