package path_test

import (
	"fmt"

	"creel/event"
	"creel/path"
)

func ExampleDocument_Get() {
	doc := path.NewDocument(event.Payload{
		Body:   []byte(`{"id":9007199254740993,"items":[{"name":"a"},{"name":"b"}]}`),
		Header: "X-GitHub-Event: push\n",
	})
	for _, text := range []string{"body.id", "body.items.1.name", "header.x-github-event", "body.none"} {
		place, err := path.Parse(text)
		if err != nil {
			fmt.Println(err)
		}
		value, ok, err := doc.Get(place)
		fmt.Printf("%s %q %v %v\n", place, value.Text(), ok, err)
	}
	// Output:
	// body.id "9007199254740993" true <nil>
	// body.items.1.name "b" true <nil>
	// header.x-github-event "push" true <nil>
	// body.none "" false <nil>
}

func ExampleDocument_Each() {
	doc := path.NewDocument(event.Payload{Body: []byte(`{"entry":[{"changes":[1,2]},{"changes":[3]}]}`)})
	split, err := path.ParseSplit("body.entry.*.changes.*")
	if err != nil {
		fmt.Println(err)
	}
	elements, missed, err := doc.Each(split)
	for _, e := range elements {
		fmt.Println(e.Part, string(e.Raw))
	}
	fmt.Println(missed, err)
	// Output:
	// body.entry.0.changes.0 1
	// body.entry.0.changes.1 2
	// body.entry.1.changes.0 3
	// 0 <nil>
}

func ExampleTemplate_ExecuteKey() {
	template, err := path.ParseTemplate("{source}/{body.id}/{body.note?}", path.EventNames()...)
	if err != nil {
		fmt.Println(err)
	}
	doc := path.NewDocument(event.Payload{Body: []byte(`{"id":"a/b"}`)})
	key, err := template.ExecuteKey(doc, func(name string) (string, bool) { return "stripe", name == "source" })
	fmt.Println(key, err)
	// Output: stripe/a%2Fb/ <nil>
}
