package config

import (
	"regexp"
	"strconv"
)

// settingName is what may stand behind "setting." in a template.
var settingName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// request checks what a destination wants instead of the sender's request.
// Templates are read where deliveries are understood.
func (v *validator) request(at string, d Destination) {
	body := Join(at, "body")
	if d.Body != nil {
		v.requestBody(body, d.Body)
	}
	for _, name := range sortedKeys(d.Settings) {
		if !settingName.MatchString(name) {
			v.fault(Join(at, "settings", name), strconv.Quote(name)+" can not stand in a template", "use letters, digits, underscores and hyphens")
		}
	}
	switch own := d.Body != nil; {
	case d.Method == "GET" && own:
		v.fault(body, "stands beside method = \"GET\", which has no body", `write method = "POST", or remove the body`)
	case d.Method == "GET" && d.MaxBody != 0:
		v.fault(Join(at, "max_body"), "means nothing with method = \"GET\": no body is sent", "remove it")
	case own && d.MaxBody != 0:
		v.fault(Join(at, "max_body"), "means nothing beside a body of your own", "remove it: the event's body is not sent")
	case d.BodyURLTTL != 0 && d.MaxBody == 0:
		v.warn(Join(at, "body_url_ttl"), "means nothing without max_body", `write max_body = "256KB", or remove it`)
	}
}

func (v *validator) requestBody(at string, b *RequestBody) {
	given := 0
	for key, is := range map[string]bool{"json": b.JSON != nil, "text": b.Text != "", "form": b.Form != nil} {
		if is || v.badBelow(Join(at, key)) {
			given++
		}
	}
	const hint = `one of json = { text = "{body.id}" }, text = "{body.id}" and form = { id = "{body.id}" }`
	switch {
	case given == 0:
		v.fault(at, "says nothing", "write "+hint)
	case given > 1:
		v.fault(at, "has more than one of json, text and form", "keep one of them: "+hint)
	}
}
