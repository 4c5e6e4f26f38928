package event

import (
	"encoding/json"
	"fmt"
)

// Alert is what a destination is told about trouble. A shipment whose message
// is one has no event and no payload: the templates of a destination find it
// under {alert.subject}, {alert.text} and so on, and a destination without a
// body of its own gets it as the JSON object that Message gives.
type Alert struct {
	Subject   string `json:"subject"`    // one line
	Text      string `json:"text"`       // what happened and what to do next
	Cause     string `json:"cause"`      // of the incident
	SubjectOf string `json:"subject_of"` // the source, destination or rule that it is about
	State     string `json:"state"`      // open or resolved
	Action    string `json:"action"`     // trigger or resolve: what tools that call people out want to hear
	URL       string `json:"url"`        // where the page shows it; "" where no address is known
	Incident  string `json:"incident"`   // its number: the same when it begins and when it is over
	Count     string `json:"count"`      // how often it happened so far
	Since     string `json:"since"`      // when it began, RFC 3339
}

// Message is what a shipment carries of the alert.
func (a Alert) Message() string {
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // a struct of texts is always JSON
	}
	return string(text)
}

// AlertOf reads what Alert.Message wrote.
func AlertOf(message string) (Alert, error) {
	var a Alert
	if err := json.Unmarshal([]byte(message), &a); err != nil {
		return Alert{}, fmt.Errorf("reading an alert: %w", err)
	}
	return a, nil
}

// AlertNames are the plain names of an alert in a template.
func AlertNames() []string {
	return []string{"alert.subject", "alert.text", "alert.cause", "alert.subject_of", "alert.state", "alert.url",
		"alert.action", "alert.incident", "alert.count", "alert.since"}
}

// Name gives the text of a plain name, "" for one that an alert has not.
func (a Alert) Name(name string) string {
	switch name {
	case "alert.subject":
		return a.Subject
	case "alert.text":
		return a.Text
	case "alert.cause":
		return a.Cause
	case "alert.subject_of":
		return a.SubjectOf
	case "alert.state":
		return a.State
	case "alert.url":
		return a.URL
	case "alert.action":
		return a.Action
	case "alert.incident":
		return a.Incident
	case "alert.count":
		return a.Count
	case "alert.since":
		return a.Since
	}
	return ""
}
