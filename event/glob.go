package event

// MatchAny tells whether one of several patterns fits; none fits everything.
func MatchAny(patterns []string, text string) bool {
	for _, pattern := range patterns {
		if MatchGlob(pattern, text) {
			return true
		}
	}
	return len(patterns) == 0
}

// MatchGlob tells whether a pattern fits a whole text: * stands for any bytes,
// none and slashes included, ? for exactly one; every other byte stands for
// itself. Its cost is bounded by the product of the two lengths.
func MatchGlob(pattern, text string) bool {
	p, t := 0, 0
	star, mark := -1, 0 // the last *, and where the text behind it began
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
