package store

import (
	"context"
	"encoding/json"
	"fmt"

	"creel/event"
)

// sqlAnswers asks for one run of each delivery, so that a delivery that died
// before it was tried again does not get the answer of another error.
const sqlAnswers = `SELECT asked.value ->> 0, last.answer FROM json_each(?) AS asked
	CROSS JOIN attempt AS last ON last.delivery = asked.value ->> 0 AND last.run = asked.value ->> 1
	WHERE last.answer <> '' AND last.number = (SELECT max(number) FROM attempt
		WHERE delivery = asked.value ->> 0 AND run = asked.value ->> 1)`

// Answers are what destinations answered to the last attempt of deliveries, by
// the deliveries' numbers, for lists of at most 500. One that was not answered
// in its present run, or whose answer is not kept any more, is not there.
func (r *Reader) Answers(ctx context.Context, deliveries []event.Delivery) (map[int64]string, error) {
	answers := map[int64]string{}
	if len(deliveries) == 0 {
		return answers, nil
	}
	asked := make([][2]int64, 0, len(deliveries))
	for i := range deliveries[:min(len(deliveries), maxPage)] {
		asked = append(asked, [2]int64{deliveries[i].ID, int64(deliveries[i].Run)})
	}
	list, err := json.Marshal(asked)
	if err == nil {
		err = r.list(ctx, sqlAnswers, []any{string(list)}, func(r row) error {
			answers[r.int64(0)] = r.text(1)
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the answers of deliveries: %w", err)
	}
	return answers, nil
}
