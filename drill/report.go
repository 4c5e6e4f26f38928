package drill

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// report puts together what the scenes found.
func (d *drill) report() *Report {
	out := &Report{Events: len(d.pieces), Orders: d.opt.Orders, Kills: d.kills}
	if d.opt.Keep {
		out.Folder = d.folder
	}
	for _, r := range d.rules {
		if r.wanted {
			out.Rules = append(out.Rules, r.report(d.pieces))
		}
	}
	return out
}

func (r *subject) report(all []*piece) Rule {
	out := Rule{Name: r.name, Verdict: Sound, Events: len(r.candidates), Sample: r.sample, Findings: r.findings}
	for _, f := range r.findings {
		if f.Verdict == Failure || out.Verdict != Failure {
			out.Verdict = f.Verdict
		}
	}
	if len(r.candidates) == 0 {
		out.Verdict, out.Findings = NotDrilled, nil
		out.Reason, out.Hint = r.reason, r.hint
		if out.Reason == "" { // the baseline left none
			why, _ := r.mostLeft()
			out.Reason = "its events end dead when they are told without what came before: " + short(why)
			out.Hint = "take more of them: --events 100"
			if r.sample {
				out.Hint = "send what comes before, and an event of its own (creel send SOURCE --type TYPE --body FILE), and drill again"
			}
		}
		return out
	}
	var notes []string
	if why, n := r.mostLeft(); n > 0 {
		notes = append(notes, fmt.Sprintf("%d of its events left out: %s", n, short(why)))
	}
	if !r.meets(all) {
		notes = append(notes, "no two of its events are about one object: the order was hardly tried")
	}
	out.Reason = strings.Join(notes, "; ")
	return out
}

// mostLeft is the most frequent reason why events of the rule were left out,
// and how many were.
func (r *subject) mostLeft() (why string, all int) {
	for _, reason := range slices.Sorted(maps.Keys(r.left)) {
		all += r.left[reason]
		if why == "" || r.left[reason] > r.left[why] {
			why = reason
		}
	}
	return why, all
}

// meets tells whether any event of the rule is about an object that another one
// is about too, the rule's own or not.
func (r *subject) meets(all []*piece) bool {
	times := map[string]int{}
	for _, p := range all {
		times[p.about()]++
	}
	for _, p := range r.candidates {
		if p.about() == "" || times[p.about()] > 1 {
			return true // or nobody can tell
		}
	}
	return false
}

// has tells whether a scene found something about the rule.
func (r *subject) has(scene string) bool {
	return slices.ContainsFunc(r.findings, func(f Finding) bool { return f.Scene == scene })
}
