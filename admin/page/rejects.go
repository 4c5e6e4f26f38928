package page

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"creel/admin"
	"creel/source"
)

// rejectView is one rejected request with why it fails now.
type rejectView struct {
	admin.RejectDetail
	Diagnosis source.Diagnosis
	Undone    string // why there is no diagnosis
	Shown     shownBody
	Head      string
}

func showReject(q *request) {
	detail, err := q.data().Reject(q.ctx, number(q.params.ByName("id")))
	if err != nil {
		q.failed(err)
		return
	}
	v := rejectView{RejectDetail: detail, Shown: showBody(detail.Body, true)}
	v.Head, _ = visible([]byte(detail.Header))
	if v.Diagnosis, err = q.data().VerifyReject(q.ctx, detail.ID, time.Time{}); err != nil {
		_, v.Undone = explain(err)
	}
	q.render(http.StatusOK, "reject", layout{Title: fmt.Sprintf("Rejected request %d", detail.ID), Here: "Rejected requests", Content: v})
}

// retryRejects verifies one again, or all of a source, and stores what verifies
// now.
func retryRejects(q *request) {
	ask := admin.RetryRejects{ID: number(q.form("id")), Source: q.form("source"), Actor: "page:" + q.session.name, Reason: q.typed("reason")}
	if ask.ID == 0 && ask.Source == "" {
		q.fail(http.StatusBadRequest, "Choose a request, or a source.")
		return
	}
	list, err := q.operator().RetryRejects(q.ctx, ask)
	if err != nil {
		q.failed(err)
		return
	}
	outcomes, order := map[string]int{}, []string{}
	for _, one := range list {
		if outcomes[one.Outcome] == 0 {
			order = append(order, one.Outcome)
		}
		outcomes[one.Outcome]++
	}
	var parts []string
	for _, outcome := range order {
		parts = append(parts, fmt.Sprintf("%d %s", outcomes[outcome], outcome))
	}
	said := "There was nothing to verify again."
	if len(parts) > 0 {
		said = "Verified again: " + strings.Join(parts, ", ") + "."
	}
	to := "/rejects"
	if len(list) == 1 && len(list[0].Events) == 1 {
		to = eventPath(list[0].Events[0])
	}
	q.back(to, said)
}
