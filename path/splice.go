package path

import "bytes"

// Splice writes the body with another JSON text at a place, every other byte
// as it is; body alone is the whole of it. The error wraps ErrMissing where
// nothing stands at the place. with is not checked.
func (d *Document) Splice(p Path, with []byte) ([]byte, error) {
	if p.root != Body {
		return nil, at(p.text, ErrBadPath)
	}
	if len(p.steps) == 0 {
		return with, nil
	}
	value, ok, err := d.Get(p)
	if err == nil && !ok {
		err = at(p.text, ErrMissing)
	}
	if err != nil {
		return nil, err
	}
	f := finder{scanner: scanner{data: d.json}, hasty: true, path: p}
	if err := f.find(p.steps); err != nil {
		return nil, placed(p.text, err)
	}
	before, after := d.json[:f.pos-len(value.Raw)], d.json[f.pos:]
	return bytes.Join([][]byte{before, with, after}, nil), nil
}
