package deliver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"creel/event"
)

// The environment of a command is bounded so that it can be started at all:
// Linux takes 128 KiB in one variable, and at least as much altogether. What is
// larger belongs on standard input.
const (
	mostVariable    = 32 << 10
	mostEnvironment = 96 << 10
)

var (
	errVariable    = errors.New("has a value that is too long for the environment of a command; the body on its standard input has it all")
	errEnvironment = fmt.Errorf("the fields and the destination's env have more than %d bytes together; the body on standard input has it all", mostEnvironment)
)

// environment is all that a command finds in its own: nothing of ours.
func (d *Command) environment(s *event.Shipment, file string) ([]string, error) {
	env := append([]string(nil), d.own...)
	size := 0
	for _, line := range env {
		size += len(line) + 1
	}
	var fault error
	set := func(name, value string) {
		value = event.EnvironmentText(value)
		if len(value) > mostVariable && fault == nil {
			fault = fmt.Errorf("%s %w", name, errVariable)
		}
		size += len(name) + len(value) + 2
		env = append(env, name+"="+value)
	}
	set("CREEL_SOURCE", s.Event.Source)
	set("CREEL_ACCOUNT", s.Event.Account)
	set("CREEL_ID", s.Event.ID)
	set("CREEL_TYPE", s.Type)
	set("CREEL_EVENT", s.Event.String())
	set("CREEL_DELIVERY", event.WebhookID(s.Key, d.name))
	set("CREEL_ATTEMPT", strconv.Itoa(s.Tries))
	if file != "" {
		set("CREEL_PAYLOAD_FILE", file)
	}
	fields, err := event.FieldsOf(s.Message)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		set("CREEL_FIELD_"+strings.ToUpper(f.Name), f.Value)
	}
	if fault == nil && size > mostEnvironment {
		fault = errEnvironment
	}
	return env, fault
}
