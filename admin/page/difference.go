package page

import "slices"

// maxEdits is how many lines of two texts may differ until they count as two
// different texts: time and memory grow with its square.
const maxEdits = 600

// edit is one line of the way from one text to another.
type edit struct {
	Sign byte // '-' of the first one alone, '+' of the second one alone, ' ' of both
	Text string
}

// difference is the shortest way from one text to another, line by line (E. W.
// Myers, An O(ND) Difference Algorithm and Its Variations, 1986). false says
// that more than maxEdits lines differ.
func difference(from, to []string) ([]edit, bool) {
	head := 0
	for head < len(from) && head < len(to) && from[head] == to[head] {
		head++
	}
	tail := 0
	for tail < len(from)-head && tail < len(to)-head && from[len(from)-1-tail] == to[len(to)-1-tail] {
		tail++
	}
	middle, ok := shortest(from[head:len(from)-tail], to[head:len(to)-tail])
	if !ok {
		return nil, false
	}
	return slices.Concat(alike(from[:head]), middle, alike(from[len(from)-tail:])), true
}

func alike(lines []string) []edit {
	all := make([]edit, len(lines))
	for i, line := range lines {
		all[i] = edit{' ', line}
	}
	return all
}

// shortest searches by the number of edits: reached[k] is how far into from the
// ways come that have made k more removals than insertions.
func shortest(from, to []string) ([]edit, bool) {
	a, b := numbered(from, to)
	most := min(maxEdits, len(a)+len(b))
	reached := make([]int32, 2*most+3)
	zero := most + 1
	var trace [][]int32 // reached as it was before each number of edits
	for d := 0; d <= most; d++ {
		trace = append(trace, slices.Clone(reached[zero-d:zero+d+1]))
		for k := -d; k <= d; k += 2 {
			x := 0
			switch {
			case d == 0:
			case k == -d || k != d && reached[zero+k-1] < reached[zero+k+1]:
				x = int(reached[zero+k+1])
			default:
				x = int(reached[zero+k-1]) + 1
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			if reached[zero+k] = int32(x); x >= len(a) && x-k >= len(b) {
				return wayBack(from, to, trace), true
			}
		}
	}
	return nil, false
}

// wayBack walks from the ends of both texts to their beginnings.
func wayBack(from, to []string, trace [][]int32) []edit {
	var way []edit
	x, y := len(from), len(to)
	for d := len(trace) - 1; d > 0; d-- {
		k, before := x-y, trace[d]
		removed := k != -d && (k == d || before[d+k-1] >= before[d+k+1])
		last := int(before[min(d+k+1, 2*d)])
		if removed {
			last = int(before[d+k-1]) + 1
		}
		for x > last {
			x, y = x-1, y-1
			way = append(way, edit{' ', from[x]})
		}
		if removed {
			x--
			way = append(way, edit{'-', from[x]})
		} else {
			y--
			way = append(way, edit{'+', to[y]})
		}
	}
	for x > 0 {
		x--
		way = append(way, edit{' ', from[x]})
	}
	slices.Reverse(way)
	return way
}

// numbered gives equal lines equal numbers: they are compared often.
func numbered(from, to []string) (a, b []int32) {
	known := map[string]int32{}
	number := func(lines []string) []int32 {
		all := make([]int32, len(lines))
		for i, line := range lines {
			n, ok := known[line]
			if !ok {
				n = int32(len(known))
				known[line] = n
			}
			all[i] = n
		}
		return all
	}
	return number(from), number(to)
}
