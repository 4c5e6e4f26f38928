package receiver

import (
	"fmt"
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
	p.keep(Rejected{Cause: string(verdict.Cause), Detail: verdict.Detail, Body: p.body.data, BodySize: len(p.body.data)})
}

// keepUnread does the same for a request whose body is not taken, so that
// nothing is known of its sender: it may be a stranger, or the provider with an
// event that nobody would miss otherwise. Of the body nothing is kept.
func (p *reception) keepUnread(cause source.Cause) {
	p.at = p.clock()
	entry := Rejected{Cause: string(cause), BodySize: len(p.body.data), Unread: true}
	if p.r.ContentLength > 0 {
		entry.BodySize = int(p.r.ContentLength)
	}
	entry.Detail = "its body is compressed, and the source takes no such encoding; see verify.content_encodings"
	if cause == source.TooLarge {
		entry.Detail = p.overLimit()
	}
	p.keep(entry)
}

// overLimit says how a body is too large.
func (p *reception) overLimit() string {
	if p.r.ContentLength > 0 {
		return fmt.Sprintf("its body of %d bytes is over max_body = %d of the source", p.r.ContentLength, p.src.MaxBody())
	}
	return fmt.Sprintf("its body is over max_body = %d of the source", p.src.MaxBody())
}

// keep counts a reject, puts it into the drawer, and tells of it. The same
// bounds hold for every cause.
func (p *reception) keep(entry Rejected) {
	p.endpoint.tally.reject(entry.Cause)
	peer, secret := PeerOf(p.r, p.settings.Load().proxies), p.src.SecretHeaders()
	entry.At, entry.Source, entry.Peer = p.at, p.name, p.peerText()
	entry.Method, entry.Host, entry.Query = p.r.Method, p.r.Host, p.r.URL.RawQuery
	entry.Header, entry.hidden = newFilter(nil, secret).lines(p.r.Header), provingLines(p.r.Header, secret)
	entry.ID = p.drawer.put(entry)
	if p.told != nil {
		entry.Body = nil // the bytes are lent
		p.told(entry)
	}
	left, ok := p.hush.allow(peer, p.at)
	if !ok {
		return
	}
	line := p.log.Warn().Str(event.FieldSource, p.name).Str(event.FieldCause, entry.Cause).Str(event.FieldPeer, entry.Peer)
	switch source.Cause(entry.Cause) {
	case source.TooLarge:
		line.Int("size", entry.BodySize).Int64("limit", p.src.MaxBody()).
			Str(event.FieldHint, "where its sender is the right one, raise max_body of the source, and let it send again")
	case source.UnsupportedEncoding:
		line.Str(event.FieldHint, `where its sender is the right one and compresses with gzip, write verify.content_encodings = ["gzip"]`)
	}
	line.Int("left_out", left).Msg("request rejected")
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
