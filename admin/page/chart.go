package page

import (
	"fmt"
	"html"
	"html/template"
	"strings"

	"creel/event"
)

// The measures of a chart in its own units; the style stretches it.
const (
	chartBar    = 4
	chartHeight = 24
)

// bars draws counts, the oldest first, as an SVG with what it shows in words.
// It holds nothing but numbers and the words, escaped.
func bars(counts []int64, what string) template.HTML {
	most, sum := int64(1), int64(0)
	for _, n := range counts {
		most, sum = max(most, n), sum+n
	}
	var b strings.Builder
	width := max(len(counts), 1) * chartBar
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s: %s in all, %s at most">`,
		width, chartHeight, html.EscapeString(what), count(sum), count(maxOf(counts)))
	fmt.Fprintf(&b, `<path class="base" d="M0 %d.5H%d"/>`, chartHeight-1, width)
	for i, n := range counts {
		if n <= 0 {
			continue
		}
		high := max(n*(chartHeight-1)/most, 1)
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d"/>`, i*chartBar, chartHeight-high, chartBar-1, high)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

func maxOf(counts []int64) int64 {
	most := int64(0)
	for _, n := range counts {
		most = max(most, n)
	}
	return most
}

// hoursOf are the counts of a failure by the hour, for bars.
func hoursOf(hours []event.HourCount) []int64 {
	counts := make([]int64, len(hours))
	for i, h := range hours {
		counts[i] = int64(h.N)
	}
	return counts
}
