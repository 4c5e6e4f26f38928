package admin

import (
	"net/http"
	"strings"

	"creel/event"
)

// AnswerSize is how much of an answer stands in a row, in characters.
const AnswerSize = 120

// AnswerLine is the beginning of an answer in one line, of at most AnswerSize
// characters. Who shows it makes it visible.
func AnswerLine(answer string) string {
	line := []rune(strings.Join(strings.Fields(answer), " "))
	if len(line) > AnswerSize {
		return string(line[:AnswerSize-1]) + "…"
	}
	return string(line)
}

// SecretHint is what an admin may look at first where an app refuses who sends;
// "" of a delivery that it does not explain.
func SecretHint(d event.Delivery) string {
	if d.Target != "" || d.Status != http.StatusUnauthorized && d.Status != http.StatusForbidden {
		return ""
	}
	return "The app's secret may differ from [destination." + d.Destination + "] secret."
}
