package receiver

import (
	"bytes"
	"errors"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"creel/event"
	"creel/source"
)

// reception is one POST on its way through: cap, verify, accept, answer.
type reception struct {
	*Receiver
	w        http.ResponseWriter
	r        *http.Request
	src      Source
	name     string
	endpoint *endpoint
	at       time.Time
	body     body
	answered bool
}

// receive answers a POST to a source.
func (v *Receiver) receive(w http.ResponseWriter, r *http.Request, name string) {
	disarm(r)
	src, ok := v.sources(name)
	if !ok {
		v.unknown(w, r)
		return
	}
	p := &reception{Receiver: v, w: w, r: r, src: src, name: name, endpoint: v.endpointOf(name)}
	p.body.budget = v.budget
	defer p.end()
	if v.stopping.Load() {
		p.answer(resultStopping, 0)
		return
	}
	if !encodingAccepted(r.Header["Content-Encoding"], src) {
		p.answer(resultEncoding, 0)
		p.keepUnread(source.UnsupportedEncoding)
		return
	}
	if err := p.read(); err != nil {
		res := resultOfBody(err)
		p.answer(res, 0)
		if res == resultTooLarge {
			p.keepUnread(source.TooLarge)
		}
		return
	}
	p.at = v.clock()
	p.decide()
}

// mostInflated is how many bytes one byte of deflate can become.
const mostInflated = 1032

// read takes the body in. Where it is compressed, what the source may inflate
// it to is charged as well.
func (p *reception) read() error {
	limit := p.src.MaxBody()
	if err := p.body.read(p.r, limit); err != nil {
		return err
	}
	if len(p.r.Header["Content-Encoding"]) == 0 {
		return nil
	}
	return p.body.charge(min(limit, mostInflated*int64(len(p.body.data))))
}

// end gives the memory back and turns a panic into 503: whatever was broken,
// the sender comes again and finds a duplicate at worst.
func (p *reception) end() {
	p.body.release()
	broken := recover()
	if broken == nil {
		return
	}
	if !p.answered {
		p.answer(resultPanic, 0)
	} else {
		p.endpoint.tally.count(resultPanic)
	}
	p.log.Error().Str(event.FieldSource, p.name).Str(event.FieldReason, describePanic(broken)).
		Bytes("stack", debug.Stack()).Msg("a request panicked")
}

// describePanic says what a panic was without quoting what a request sent.
func describePanic(broken any) string {
	var known runtime.Error
	if err, ok := broken.(error); ok && errors.As(err, &known) {
		return known.Error()
	}
	return "a panic with a value of its own"
}

// answer counts and replies, once.
func (p *reception) answer(res result, status int) {
	p.answered = true
	p.endpoint.tally.count(res)
	reply(p.w, p.r, res, status)
}

// decide asks the source, and then the inbox.
func (p *reception) decide() {
	request := &source.Request{
		Method: p.r.Method,
		Query:  p.r.URL.RawQuery,
		Header: p.r.Header,
		Body:   p.body.data,
	}
	if p.pairing != nil && p.pairing.Open(p.name) && p.paired(request) {
		return
	}
	verdict := p.src.Receive(request, p.at)
	switch {
	case verdict.Cause != "":
		p.refuse(&verdict)
	case verdict.Answer != nil:
		p.handshake(verdict.Answer)
	case len(verdict.Items) == 0:
		p.succeed(resultSkipped, &verdict)
	default:
		p.accept(&verdict)
	}
}

// paired answers a request that hands over the secret for which an operator
// waits; false where it is another.
func (p *reception) paired(request *source.Request) bool {
	answer, err := p.pairing.Take(p.name, request, p.peerText())
	switch {
	case err != nil:
		p.answer(resultUnavailable, 0)
		p.log.Error().Str(event.FieldSource, p.name).AnErr(event.FieldReason, err).Msg("the secret of a sender was not kept")
	case answer != nil:
		p.handshake(answer)
	}
	return err != nil || answer != nil
}

// refuse answers what the source did not take. Three of its causes are no
// doubt about the sender and have an answer of their own.
func (p *reception) refuse(verdict *source.Result) {
	switch verdict.Cause {
	case source.NoSecret:
		p.answer(resultAwaiting, 0)
	case source.UnsupportedEncoding:
		p.answer(resultEncoding, 0)
		p.keepRejected(verdict)
	case source.TooLarge:
		p.answer(resultTooLarge, 0)
		p.keepRejected(verdict)
	default:
		p.answer(resultRejected, p.src.RejectStatus())
		p.keepRejected(verdict)
	}
}

func (p *reception) handshake(a *source.Answer) {
	p.answered = true
	p.endpoint.tally.count(resultHandshake)
	replyWith(p.w, p.r, a)
}

// accept hands the receipt to the inbox and waits, with a deadline of its
// own. After an error the outcome can be unknown, so the answer is 503: when
// the commit happens all the same, the sender's retry is a duplicate.
func (p *reception) accept(verdict *source.Result) {
	receipt := &event.Receipt{
		Source:     p.name,
		Origin:     event.FromWebhook,
		At:         p.at,
		Body:       verdict.Body,
		Header:     p.keptHeader(verdict),
		Query:      p.r.URL.RawQuery,
		BodyKey:    verdict.BodyKey,
		BodyWindow: verdict.BodyWindow,
		Items:      verdict.Items,
	}
	receipt.Alike, _ = p.src.(event.Likeness)
	accepted, err := p.inbox.Accept(p.patience.context(), receipt)
	if err != nil {
		res := resultOfInbox(err)
		p.answer(res, 0)
		p.logTrouble(res, err)
		return
	}
	p.succeed(resultOfItems(accepted.Items), verdict)
	p.endpoint.pace.acknowledged(p.at, p.clock())
	p.record(verdict, accepted.Items)
}

// keptHeader is what is kept of the head.
func (p *reception) keptHeader(verdict *source.Result) string {
	return keptLines(p.filterOf(p.endpoint, p.src), p.r.Header, p.body.data, verdict.Body)
}

// KeptHeader is what is kept of the head of a request that did not come through
// the front door. secret names the headers that carry the source's secret; sent
// is its body, and stored what is kept of it.
func KeptHeader(header http.Header, secret []string, sent, stored []byte) string {
	return keptLines(newFilter(nil, secret), header, sent, stored)
}

// keptLines are the header lines that are stored. A body that was inflated is
// no longer in the encoding that its sender named.
func keptLines(f *filter, header http.Header, sent, stored []byte) string {
	lines := f.lines(header)
	if header.Get("Content-Encoding") == "" || bytes.Equal(stored, sent) {
		return lines
	}
	var kept strings.Builder
	for line := range strings.Lines(lines) {
		if !strings.HasPrefix(line, "Content-Encoding: ") && !strings.HasPrefix(line, "Content-Length: ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// succeed answers what is stored, or needs no storing, in the words that the
// sender wants where it wants any.
func (p *reception) succeed(res result, verdict *source.Result) {
	status := 0
	if res == resultDuplicate {
		status = p.src.DuplicateStatus()
	}
	if verdict.Reply == nil || status == http.StatusConflict {
		p.answer(res, status)
		return
	}
	p.answered = true
	p.endpoint.tally.count(res)
	replyWith(p.w, p.r, verdict.Reply)
}

// resultOfItems is what a request came to whose events are stored: new when
// any of them was, a duplicate only when all of them were.
func resultOfItems(items []event.AcceptedItem) result {
	res := resultDuplicate
	for i := range items {
		switch items[i].Result {
		case event.New:
			return resultNew
		case event.Conflict:
			res = resultConflict
		}
	}
	return res
}

// encodingAccepted tells whether the body is sent as it is, or compressed in
// a way that the source knows.
func encodingAccepted(values []string, src Source) bool {
	for _, line := range values {
		for coding := range strings.SplitSeq(line, ",") {
			coding = strings.ToLower(strings.TrimSpace(coding))
			if coding != "" && coding != "identity" && !src.AcceptsEncoding(coding) {
				return false
			}
		}
	}
	return true
}
