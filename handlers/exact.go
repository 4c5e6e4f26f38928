package handlers

import (
	"errors"
	"math/bits"

	"github.com/expr-lang/expr/vm/runtime"
)

// errOverflow says that a whole number does not fit where sums are made: it
// would come out as another one.
var errOverflow = errors.New("a whole number does not fit 64 bits")

// whole is a whole number as the expression language knows them.
func whole(value any) (int64, bool) {
	switch n := value.(type) {
	case int:
		return int64(n), true
	case int64:
		return n, true
	}
	return 0, false
}

func wholes(a, b any) (x, y int64, ok bool) {
	x, first := whole(a)
	y, second := whole(b)
	return x, y, first && second
}

// plus is + that does not wrap around.
func (r *run) plus(args []any) (any, error) {
	x, y, ok := wholes(args[0], args[1])
	if !ok {
		return r.keep([]any{runtime.Add(args[0], args[1])})
	}
	if sum := x + y; (sum > x) == (y > 0) {
		return sum, nil
	}
	return nil, errOverflow
}

// minus is - that does not wrap around.
func (r *run) minus(args []any) (any, error) {
	x, y, ok := wholes(args[0], args[1])
	if !ok {
		return runtime.Subtract(args[0], args[1]), nil
	}
	if rest := x - y; (rest < x) == (y > 0) {
		return rest, nil
	}
	return nil, errOverflow
}

// times is * that does not wrap around.
func (r *run) times(args []any) (any, error) {
	x, y, ok := wholes(args[0], args[1])
	if !ok {
		return runtime.Multiply(args[0], args[1]), nil
	}
	high, low := bits.Mul64(magnitude(x), magnitude(y))
	negative := (x < 0) != (y < 0)
	switch {
	case high == 0 && !negative && low <= 1<<63-1:
		return int64(low), nil
	case high == 0 && negative && low <= 1<<63:
		return -int64(low), nil
	}
	return nil, errOverflow
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// sum adds up a list.
func (r *run) sum(args []any) (any, error) {
	list, ok := args[0].([]any)
	if !ok {
		return nil, errNoList
	}
	var out any = int64(0)
	for _, element := range list {
		var err error
		if out, err = r.plus([]any{element, out}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

var errNoList = errors.New("sum needs a list")
