package deliver

import "bufio"

// takeBareCodes lets the server answer with a code and nothing behind it, as
// RFC 5321 (4.2) has it. It is called again when TLS has begun.
func (s *session) takeBareCodes() {
	s.client.Text.R = bufio.NewReader(&answerLines{from: s.client.Text.R})
}

// answerLines are the lines of a server with a blank behind a code that stands
// alone: net/textproto wants one.
type answerLines struct {
	from *bufio.Reader
	line []byte // read already
	part bool   // the last line was too long to be read whole
}

// Read implements io.Reader.
func (l *answerLines) Read(into []byte) (int, error) {
	if len(l.line) == 0 {
		line, err := l.from.ReadSlice('\n')
		whole := !l.part
		l.part = err == bufio.ErrBufferFull
		if err != nil && !l.part {
			return copy(into, line), err // what it broke off with is no answer
		}
		l.line = append(l.line, line...)
		if whole && isBareCode(line) {
			l.line = append(l.line[:3], " \r\n"...)
		}
	}
	n := copy(into, l.line)
	l.line = l.line[n:]
	return n, nil
}

// isBareCode tells whether a line is a code and its end.
func isBareCode(line []byte) bool {
	if len(line) < 4 || !allDigits(string(line[:3])) {
		return false
	}
	end := string(line[3:])
	return end == "\r\n" || end == "\n"
}
