package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// platter is what a power loss can leave of one file: what was synced for
// sure, and of the later operations some, in any order.
type platter struct {
	durable []byte
	exists  bool // a new file's name is durable with its first sync
	pending []operation
}

// written does one operation on the content of a file.
func written(content []byte, op operation) []byte {
	switch op.kind {
	case "write":
		if need := int(op.offset) + len(op.data); need > len(content) {
			content = append(content, make([]byte, need-len(content))...)
		}
		copy(content[op.offset:], op.data)
	case "truncate":
		content = content[:min(int(op.offset), len(content))]
	}
	return content
}

// after is the file as a power loss leaves it: keep says which of the sectors
// written since the last sync are there.
func (p *platter) after(keep func() bool) []byte {
	content := append([]byte(nil), p.durable...)
	for _, op := range p.pending {
		if op.kind == "truncate" {
			if keep() {
				content = written(content, op)
			}
			continue
		}
		for at := 0; at < len(op.data); at += sector {
			if keep() {
				piece := op.data[at:min(at+sector, len(op.data))]
				content = written(content, operation{kind: "write", offset: op.offset + int64(at), data: piece})
			}
		}
	}
	return content
}

// crashes walks a recorded run and, at each operation, builds the images that
// a power loss could leave there. It returns how many were looked at and how
// many of them miss a row that was acknowledged before.
func crashes(t *testing.T, d *disk, base []byte, stride int) (states, losses int) {
	t.Helper()
	dir := t.TempDir()
	platters := map[string]*platter{"creel.db": {durable: base, exists: true}, "creel.db-wal": {}}
	random := rand.New(rand.NewPCG(1, 2))
	keeps := map[string]func() bool{
		"none": func() bool { return false },
		"all":  func() bool { return true },
		"torn": func() bool { return random.IntN(2) == 0 },
	}
	var acked []string
	marks := d.marks
	for i := 0; i <= len(d.log); i++ {
		for len(marks) > 0 && marks[0].at <= i {
			acked = append(acked, marks[0].name)
			marks = marks[1:]
		}
		if i%stride == 0 {
			for name, keep := range keeps {
				states++
				if lost := missing(revived(t, dir, platters, keep), acked); len(lost) > 0 {
					losses++
					if losses < 3 {
						t.Logf("power lost at operation %d, unsynced writes kept: %s: lost %v", i, name, lost)
					}
				}
			}
		}
		if i == len(d.log) {
			break
		}
		op := d.log[i]
		p := platters[op.file]
		if p == nil {
			continue // the index in shared memory is made anew
		}
		switch op.kind {
		case "sync":
			p.durable, p.pending, p.exists = p.after(keeps["all"]), nil, true
		case "delete":
			t.Fatalf("operation %d deletes %s: the model does not know that", i, op.file)
		default:
			p.pending = append(p.pending, op)
		}
	}
	return states, losses
}

// revived writes the images and returns the names that a start finds.
func revived(t *testing.T, dir string, platters map[string]*platter, keep func() bool) []string {
	t.Helper()
	for name, p := range platters {
		path := filepath.Join(dir, name)
		if !p.exists {
			must(t, os.RemoveAll(path))
			continue
		}
		must(t, os.WriteFile(path, p.after(keep), 0o600))
	}
	_ = os.Remove(filepath.Join(dir, "creel.db-shm"))
	return onDisk(t, filepath.Join(dir, "creel.db"))
}

// recorded makes a prepared database and the disk that records what comes.
func recorded(t *testing.T) (path string, base []byte, d *disk) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "creel.db")
	prepared(t, path)
	base, err := os.ReadFile(path)
	must(t, err)
	d = newDisk(t)
	d.record = true
	return path, base, d
}

// TestGateF2PowerLoss loses power at each disk operation of a run with batches,
// checkpoints and a WAL that starts over: no acknowledged row is missing, and
// the file is whole.
func TestGateF2PowerLoss(t *testing.T) {
	t.Parallel()
	path, base, d := recorded(t)
	s, err := Open(t.Context(), Options{Path: path, Log: zerolog.Nop(), vfs: d.name, quietPages: 12})
	must(t, err)
	for b := range 12 {
		answers := make(chan error, 4)
		for i := range 4 {
			name := fmt.Sprintf("%d-%d", b, i)
			must(t, s.submit(intake, &unit{run: put(name, []byte(strings.Repeat(name, 300))), rows: 1, done: func(err error) {
				if err == nil {
					d.mark(name) // the writer goes on after that
				}
				answers <- err
			}}))
		}
		for range 4 {
			must(t, <-answers)
		}
	}
	checkpoints := s.Gauges().Checkpoints
	d.mu.Lock()
	d.record = false // closing deletes the WAL
	d.mu.Unlock()
	must(t, s.Close())
	if checkpoints < 2 || len(d.marks) != 48 {
		t.Fatalf("the run has %d checkpoints and %d acknowledged rows: too few to prove anything", checkpoints, len(d.marks))
	}
	states, losses := crashes(t, d, base, stride(4))
	if losses > 0 || states < 100 {
		t.Errorf("%d of %d states lost an acknowledged row", losses, states)
	}
}

// TestGateF2HarnessFindsLosses runs without the sync of each commit and wants
// the same model to find lost rows: or the model is broken.
func TestGateF2HarnessFindsLosses(t *testing.T) {
	t.Parallel()
	path, base, d := recorded(t)
	settings := writerSettings(0)
	for i := range settings {
		if settings[i].pragma == "synchronous" {
			settings[i].set = "NORMAL"
		}
	}
	c, err := connect(dataSource(path, settings, "vfs="+d.name))
	must(t, err)
	tx := tx{c: c}
	for i := range 10 {
		name := fmt.Sprint(i)
		_, err := c.exec(sqlBegin, nil)
		must(t, err)
		must(t, put(name, make([]byte, 2000))(&tx))
		_, err = c.exec(sqlCommit, nil)
		must(t, err)
		d.mark(name)
	}
	d.mu.Lock()
	d.record = false
	d.mu.Unlock()
	must(t, c.close())
	if states, losses := crashes(t, d, base, stride(4)); losses == 0 {
		t.Errorf("%d states, none lost a row although nothing was synced", states)
	}
}
