package receiver

import (
	"net/http"
	"net/netip"

	"creel/event"
	"creel/source"
)

// record counts the events of an accepted receipt and writes a line for those
// that were not new. It runs after the answer: nothing here can change it.
func (p *reception) record(verdict *source.Result, items []event.AcceptedItem) {
	p.endpoint.tally.secret(verdict.SecretIndex)
	for i := range items {
		item := &items[i]
		switch item.Result {
		case event.New:
			p.endpoint.tally.events[countNew].Add(1)
		case event.Duplicate:
			p.endpoint.tally.events[countDuplicate].Add(1)
			p.log.Info().Str(event.FieldEvent, item.Key.String()).Str(event.FieldSource, p.name).
				Int(event.FieldDuplicates, item.Duplicates).Bool("revived", item.Revived).Msg("duplicate received")
		case event.Conflict:
			p.endpoint.tally.events[countConflict].Add(1)
			p.log.Warn().Str(event.FieldEvent, item.Key.String()).Str(event.FieldSource, p.name).
				Int("conflicts", item.Conflicts).
				Str(event.FieldHint, "the first body is kept and used; compare the bodies, and ask the sender which one holds").
				Msg("same event key with another body")
		}
	}
}

// keepRejected counts why a request was not authentic, and keeps it in the
// drawer and, bounded, in the log.
func (p *reception) keepRejected(verdict *source.Result) {
	cause := string(verdict.Cause)
	p.endpoint.tally.reject(cause)
	peer, text := PeerOf(p.r, p.settings.Load().proxies), p.peerText()
	secret := p.src.SecretHeaders()
	entry := Rejected{
		At:     p.at,
		Source: p.name,
		Peer:   text,
		Cause:  cause,
		Detail: verdict.Detail,
		Method: p.r.Method,
		Host:   p.r.Host,
		Query:  p.r.URL.RawQuery,
		Header: newFilter(nil, secret).lines(p.r.Header),
		Body:   p.body.data,
		hidden: provingLines(p.r.Header, secret),
	}
	entry.ID = p.drawer.put(entry)
	if p.told != nil {
		entry.Body, entry.BodySize = nil, len(entry.Body) // the bytes are lent
		p.told(entry)
	}
	if left, ok := p.hush.allow(peer, p.at); ok {
		p.log.Warn().Str(event.FieldSource, p.name).Str(event.FieldCause, cause).Str(event.FieldPeer, text).
			Int("left_out", left).Msg("request rejected")
	}
}

// peerText is the sender's address, for people.
func (p *reception) peerText() string {
	if peer := PeerOf(p.r, p.settings.Load().proxies); peer.IsValid() {
		return peer.String()
	}
	return ""
}

// provingLines are the header lines that keepRejected shows nobody and that a
// scheme may verify by: the source's own, and those of HTTP itself.
func provingLines(header http.Header, secret []string) string {
	proving := http.Header{}
	for _, name := range append([]string{"Authorization"}, secret...) {
		if lines := header.Values(name); len(lines) > 0 {
			proving[http.CanonicalHeaderKey(name)] = lines
		}
	}
	return newFilter([]string{"Authorization"}, nil).lines(proving)
}

// logTrouble writes why the inbox did not take a receipt: a few lines, then
// one in a while, however many senders knock.
func (p *reception) logTrouble(res result, err error) {
	if left, ok := p.trouble.allow(netip.Addr{}, p.at); ok {
		p.log.Error().Str(event.FieldSource, p.name).Stringer(event.FieldOutcome, res).AnErr(event.FieldReason, err).
			Int("left_out", left).Msg("a verified request was not stored")
	}
}
