//go:build browser

package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/chromedp/chromedp"
)

// sights are the views as docs/page shows them.
func sights() []struct{ name, path string } {
	const dead = "/event?key=shop%2F%2Ford_evt_14"
	return []struct{ name, path string }{
		{"dead-letters", "/"},
		{"dead-letters-of-a-group", "@tbody a[href*='failure=']"},
		{"dead-letters-one-by-one", "/?view=flat"},
		{"plan", "!button[value='replay all']"},
		{"event", dead},
		{"event-headers", dead + "&show=headers"},
		{"event-changed", "/event?key=stripe%2F%2Fevt_1QxTmL2eZvKYlo2C0033&show=changed"},
		{"events", "/events"},
		{"deliveries", "/deliveries"},
		{"overview", "/overview"},
		{"sources", "/sources"},
		{"destinations", "/destinations"},
		{"alerts", "/alerts"},
		{"alert", "@tbody a[href*='/alerts/']"},
		{"audit", "/audit"},
		{"action", "@tbody a[href*='/audit/']"},
		{"in-doubt", "/doubt"},
		{"parked-lanes", "/lanes"},
		{"duplicates", "/duplicates"},
		{"conflicts", "/conflicts"},
		{"rejected-requests", "/rejects"},
		{"rejected-request", "@tbody a[href*='/rejects/']"},
		{"records", "/records"},
		{"balances", "/balances"},
		{"ledger", "/ledger"},
		{"object", "/objects?object=sub_1QxTpro"},
		{"tokens", "/tokens"},
	}
}

// visit goes to a view: by its path, by a link of the page before (@), or by a
// button of the dead letters (!).
func (w *window) visit(path string) {
	w.t.Helper()
	switch path[0] {
	case '@':
		link := eval[string](w, `document.querySelector("`+path[1:]+`").getAttribute("href")`)
		w.goTo(link)
	case '!':
		w.goTo("/")
		w.run(chromedp.Click(chromedp.CSS(path[1:])), chromedp.WaitReady(chromedp.CSS("#reason")))
	default:
		w.goTo(path)
	}
}

// Pictures are cut off where they would only go on.
const tallest = 1200

// keep writes how a page looks into a folder; "" keeps nothing. A phone in the
// dark looks like the two others.
func (w *window) keep(folder string, v view, name string) {
	w.t.Helper()
	if folder == "" || v.name == "phone-dark" {
		return
	}
	picture, err := smaller(got(w, chromedp.FullScreenshot(100)))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+"-"+v.name+".png"), picture, 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// smaller writes a picture with few colours: those that it has most of, as far as
// they differ to the eye, so that neither a rare red nor the shades at the edges
// of letters are lost.
func smaller(picture []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	bounds := full.Bounds()
	bounds.Max.Y = min(bounds.Max.Y, tallest)
	at := func(x, y int) color.RGBA {
		r, g, b, _ := full.At(x, y).RGBA()
		return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255}
	}
	counts := map[color.RGBA]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	palette := color.Palette{}
	for _, c := range all {
		if len(palette) < 64 && (len(palette) == 0 || counts[c] > 2000 || distance(c, palette[palette.Index(c)].(color.RGBA)) > 24*24) {
			palette = append(palette, c)
		}
	}
	place := map[color.RGBA]uint8{}
	for _, c := range all {
		place[c] = uint8(palette.Index(c))
	}
	small := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			small.SetColorIndex(x, y, place[at(x, y)])
		}
	}
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&b, small)
	return b.Bytes(), err
}

// distance is how far two colours are from one another, squared.
func distance(a, b color.RGBA) int {
	red, green, blue := int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B)
	return red*red + green*green + blue*blue
}
