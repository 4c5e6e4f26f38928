package api

// Route is a route as the description needs it.
type Route struct {
	Method, Path, Text string
	Query              []string
	Ask, Answer        any
	Plain              string // the type of an answer that is no JSON value of ours
	Line               any    // what each line of it is, where it is JSON by lines
	Figures            bool   // the answer is the statistics
	Once               bool   // it takes an idempotency key
	Keyed              bool   // it needs one
}

// Routes are all of them.
func Routes() []Route {
	var all []Route
	for _, r := range routes() {
		one := Route{Method: r.method, Path: r.path, Text: r.text, Query: r.query, Ask: r.ask, Answer: r.answer}
		switch answer := r.answer.(type) {
		case plain:
			one.Plain, one.Line = answer.kind, answer.line
		case figures:
			one.Figures = true
		}
		_, isReason := r.ask.(askReason)
		_, isPlan := r.ask.(askPlan)
		_, isRejects := r.ask.(askRejects)
		one.Once = r.acts() && !isReason && !isPlan && !isRejects
		one.Keyed = r.path == "/replay" || r.path == "/discard"
		all = append(all, one)
	}
	return all
}

// Problem is an answer that is no success, and Description the file.
var (
	Problem     = problemLine{}
	Description = description
)
