package deliver

import (
	"strings"

	"creel/config"
	"creel/path"
)

// settingName begins the name of a setting of the destination in a template.
const settingName = "setting."

// wording is a template of the configuration with the destination's settings
// filled in: what is left in it are literal text and places of a shipment. What
// stands at a place is put in as it is: braces in it mean nothing.
type wording struct{ pieces []path.Piece }

// wording reads a template at a key. The settings have been resolved by then.
func (c *compiler) wording(key, text string) wording {
	names := append(shipmentNames(), c.settingNames...)
	template, err := path.ParseTemplate(text, names...)
	if err != nil {
		c.fault(key, err.Error(), `write {{ and }} for braces`)
		return wording{}
	}
	var w wording
	for _, piece := range template.Pieces() {
		if name, ok := strings.CutPrefix(piece.Name, settingName); ok {
			piece = path.Piece{Literal: c.settings[name]}
		}
		if last := len(w.pieces) - 1; piece.Literal != "" && last >= 0 && w.pieces[last].Literal != "" {
			w.pieces[last].Literal += piece.Literal
		} else if piece.Literal != "" || piece.Name != "" || !piece.Path.IsZero() {
			w.pieces = append(w.pieces, piece)
		}
	}
	return w
}

// fixed is the text of a wording that is the same for every shipment.
func (w wording) fixed() (string, bool) {
	switch {
	case len(w.pieces) == 0:
		return "", true
	case len(w.pieces) == 1 && w.pieces[0].Literal != "":
		return w.pieces[0].Literal, true
	}
	return "", false
}

// render fills in what a shipment has at the places.
func (w wording) render(p *places) (string, error) {
	var b strings.Builder
	for _, piece := range w.pieces {
		text, err := p.text(piece)
		if err != nil {
			return "", err
		}
		if b.WriteString(text); b.Len() > mostDraft {
			return "", errDraft
		}
	}
	return b.String(), nil
}

// resolveSettings reads the values that templates may name. What a reference
// hides is never shown, in whatever form it travels.
func (c *compiler) resolveSettings(d *Destination, settings map[string]config.Secret) {
	c.settings = map[string]string{}
	for name, value := range settings {
		plain, ok := c.resolve(config.Join("settings", name), value)
		if !ok {
			plain = []byte("unresolved") // which is told already
		}
		c.settings[name] = string(plain)
		c.settingNames = append(c.settingNames, settingName+name)
		if !value.Literal() {
			d.credential(string(plain))
		}
	}
}
