package config

import "strings"

// Nearest returns the known word that a misspelt one was probably meant to
// be, or "" where none is near.
func Nearest(word string, known []string) string {
	limit := 2
	if len(word) <= 4 {
		limit = 1
	}
	best := ""
	for _, candidate := range known {
		d := distance(strings.ToLower(word), candidate, limit)
		if d <= limit {
			best, limit = candidate, d-1
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours between two words. Words whose lengths differ by more than the
// limit are simply far.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
