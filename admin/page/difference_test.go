package page

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// sides are the two texts that a way leads between.
func sides(way []edit) (from, to []string) {
	for _, one := range way {
		if one.Sign != '+' {
			from = append(from, one.Text)
		}
		if one.Sign != '-' {
			to = append(to, one.Text)
		}
	}
	return from, to
}

// fewest is how many lines have to differ, by the table of longest common
// subsequences.
func fewest(from, to []string) int {
	row := make([]int, len(to)+1)
	for _, a := range from {
		diagonal := 0
		for j, b := range to {
			up := row[j+1]
			if a == b {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(up, row[j])
			}
			diagonal = up
		}
	}
	return len(from) + len(to) - 2*row[len(to)]
}

// A difference leads from the one text to the other by as few lines as can be.
func TestADifferenceIsTheShortest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	some := func() []string {
		lines := make([]string, random.IntN(14))
		for i := range lines {
			lines[i] = string(rune('a' + random.IntN(4)))
		}
		return lines
	}
	for range 20_000 {
		from, to := some(), some()
		way, ok := difference(from, to)
		was, is := sides(way)
		n := 0
		for _, one := range way {
			if one.Sign != ' ' {
				n++
			}
		}
		if want := fewest(from, to); !ok || n != want || !slices.Equal(was, from) || !slices.Equal(is, to) {
			t.Fatalf("%q to %q: %v by %d lines, want %d", from, to, way, n, want)
		}
	}
}

// Texts that have nothing in common are not compared for long, and those that
// differ in little are, however long they are.
func TestADifferenceIsBounded(t *testing.T) {
	t.Parallel()
	lines := func(word string, n int) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprint(word, i)
		}
		return all
	}
	if way, ok := difference(lines("a", 60_000), lines("b", 60_000)); ok || way != nil {
		t.Errorf("%d lines of two other texts", len(way))
	}
	from := lines("a", 60_000)
	to := slices.Clone(from)
	for i := range maxEdits / 2 {
		to[i*97] += "'"
	}
	if way, ok := difference(from, to); !ok || len(way) != len(from)+maxEdits/2 {
		t.Errorf("%v, %d lines", ok, len(way))
	}
	to[59_999] += "'"
	to[59_998] += "'"
	if _, ok := difference(from, to); ok {
		t.Error("more lines differ than are looked for")
	}
}

// What is equal far from what differs is counted and not shown.
func TestADifferenceIsShownWithWhatStandsAroundIt(t *testing.T) {
	t.Parallel()
	way, _ := difference(strings.Split("1 2 3 4 5 6 7 8 9 0", " "), strings.Split("1 2 3 4 5 six 7 8 9 0", " "))
	lines, more := around(way)
	var b strings.Builder
	for _, l := range lines {
		if l.Left > 0 {
			fmt.Fprintf(&b, "(%d)", l.Left)
		} else {
			fmt.Fprintf(&b, "%c%s", l.Sign, l.Text)
		}
	}
	if got := b.String(); got != "(2) 3 4 5-6+six 7 8 9 0" || more {
		t.Errorf("%q, more %v", got, more)
	}
	if lines, more = around(slices.Repeat([]edit{{'+', "x"}}, changedMost+1)); len(lines) != changedMost || !more {
		t.Errorf("%d lines, more %v", len(lines), more)
	}
}
