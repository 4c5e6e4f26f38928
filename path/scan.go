package path

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// MaxDepth is how deep arrays and objects may stand inside one another.
const MaxDepth = 512

// scanner walks JSON text (RFC 8259) once, forward, without recursion over
// the input. Like encoding/json it takes bytes that are not UTF-8 inside
// strings as they are.
type scanner struct {
	data  []byte
	pos   int
	depth int // containers open around pos
}

func (s *scanner) broken() error {
	return fmt.Errorf("%w: byte %d", ErrUnparsable, s.pos)
}

// peek skips white space and gives the byte that stands there, 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) && s.data[s.pos] > ' ' {
		return s.data[s.pos]
	}
	return s.peekSpace()
}

func (s *scanner) peekSpace() byte {
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
		s.pos++
	}
	return 0
}

// end demands that nothing but white space follows.
func (s *scanner) end() error {
	s.peek()
	if s.pos != len(s.data) {
		return s.broken()
	}
	return nil
}

// enter opens the container whose bracket stands at pos.
func (s *scanner) enter() error {
	if s.depth == MaxDepth {
		return ErrTooDeep
	}
	s.depth++
	s.pos++
	return nil
}

// more stands before a member or element, or before the bracket that closes:
// it moves to the next one, or past the bracket. first is true right after
// enter.
func (s *scanner) more(closing byte, first bool) (bool, error) {
	c := s.peek()
	switch {
	case c == closing:
		s.pos++
		s.depth--
		return false, nil
	case first:
		return true, nil
	case c == ',':
		s.pos++
		return true, nil
	}
	return false, s.broken()
}

// member reads a member's name, quotes included, and the colon behind it.
func (s *scanner) member() ([]byte, error) {
	if s.peek() != '"' {
		return nil, s.broken()
	}
	start := s.pos
	if err := s.skipString(); err != nil {
		return nil, err
	}
	name := s.data[start:s.pos]
	if s.peek() != ':' {
		return nil, s.broken()
	}
	s.pos++
	return name, nil
}

// brackets remembers which kind each open container is: one bit a level.
type brackets [MaxDepth/64 + 1]uint64

func (b *brackets) set(level int, object bool) {
	bit := uint64(1) << (level & 63)
	if object {
		b[level>>6] |= bit
	} else {
		b[level>>6] &^= bit
	}
}

func (b *brackets) object(level int) bool { return b[level>>6]>>(level&63)&1 == 1 }

// skip moves past one value, checking it on the way.
func (s *scanner) skip() error {
	c := s.peek()
	if c != '{' && c != '[' {
		return s.skipScalar(c)
	}
	var open brackets
	base := s.depth
	fresh := false // right behind an opening bracket
	for {
		if c == '{' || c == '[' {
			if err := s.enter(); err != nil {
				return err
			}
			open.set(s.depth, c == '{')
			fresh = true
		} else if err := s.skipScalar(c); err != nil {
			return err
		}
		done, err := s.next(&open, base, fresh)
		if done || err != nil {
			return err
		}
		fresh = false
		c = s.peek()
	}
}

// next moves from behind a value (or an opening bracket, when fresh) to the
// start of the next value, closing containers on the way; done says that the
// one that skip began with is closed.
func (s *scanner) next(open *brackets, base int, fresh bool) (done bool, err error) {
	for {
		object := open.object(s.depth)
		closing := byte(']')
		if object {
			closing = '}'
		}
		more, err := s.more(closing, fresh)
		if err != nil {
			return false, err
		}
		if more {
			if object {
				_, err = s.member()
			}
			return false, err
		}
		if s.depth == base {
			return true, nil
		}
		fresh = false
	}
}

func (s *scanner) skipScalar(c byte) error {
	switch c {
	case '"':
		return s.skipString()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.skipNumber()
}

func (s *scanner) literal(word string) error {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return s.broken()
	}
	s.pos += len(word)
	return nil
}

const (
	eachByte = 0x0101010101010101
	highBits = 0x8080808080808080
)

// special marks the high bit of the first byte of eight that is a quote, a
// backslash or a control character; bytes behind it may be marked without
// need. 0 says that there is none.
func special(w uint64) uint64 {
	quote := w ^ ('"' * eachByte)
	slash := w ^ ('\\' * eachByte)
	below := (w - ' '*eachByte) &^ w
	return (((quote - eachByte) &^ quote) | ((slash - eachByte) &^ slash) | below) & highBits
}

// skipString moves past the string whose opening quote stands at pos.
func (s *scanner) skipString() error {
	data, i := s.data, s.pos+1
	for {
		for i+8 <= len(data) {
			if mark := special(binary.LittleEndian.Uint64(data[i:])); mark != 0 {
				i += bits.TrailingZeros64(mark) >> 3
				break
			}
			i += 8
		}
		for i < len(data) && data[i] != '"' && data[i] != '\\' && data[i] >= ' ' {
			i++
		}
		if i < len(data) && data[i] == '"' {
			s.pos = i + 1
			return nil
		}
		size := escapeSize(data[i:])
		if size == 0 {
			s.pos = i
			return s.broken()
		}
		i += size
	}
}

// escapeSize is the length of the escape at the start of data, 0 where it is
// none.
func escapeSize(data []byte) int {
	if len(data) < 2 || data[0] != '\\' {
		return 0
	}
	switch data[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(data[2:]); ok {
			return 6
		}
	}
	return 0
}

// skipNumber moves past a number; anything else is an error.
func (s *scanner) skipNumber() error {
	i := s.pos
	if i < len(s.data) && s.data[i] == '-' {
		i++
	}
	whole := s.digits(i)
	ok := whole > i && (s.data[i] != '0' || whole == i+1)
	i = whole
	if ok && i < len(s.data) && s.data[i] == '.' {
		end := s.digits(i + 1)
		ok = end > i+1
		i = end
	}
	if ok && i < len(s.data) && (s.data[i] == 'e' || s.data[i] == 'E') {
		i++
		if i < len(s.data) && (s.data[i] == '+' || s.data[i] == '-') {
			i++
		}
		end := s.digits(i)
		ok = end > i
		i = end
	}
	if !ok {
		return s.broken()
	}
	s.pos = i
	return nil
}

func (s *scanner) digits(i int) int {
	for i < len(s.data) && s.data[i] >= '0' && s.data[i] <= '9' {
		i++
	}
	return i
}
