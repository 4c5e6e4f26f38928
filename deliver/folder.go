package deliver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"creel/config"
	"creel/event"
)

// defaultFileMode lets nobody but our own user read what is written.
const defaultFileMode = 0o600

// Folder makes attempts by writing files into a folder of the owner's, and
// nowhere else. It is safe for concurrent use.
type Folder struct {
	limits
	folder string
	mode   fs.FileMode
	clock  func() time.Time
}

// NewFolder compiles the configuration of a destination that is a folder.
// prefix is the key path of its table. With a fault among the problems the
// folder is nil.
func NewFolder(name string, cfg config.Destination, prefix string, opt Options) (*Folder, config.Problems) {
	if opt.Clock == nil {
		return nil, config.Problems{{Path: prefix, Message: errNoClock.Error()}}
	}
	c := compiler{prefix: prefix, env: opt.Env}
	d := &Folder{
		limits: limits{name: name, rate: float64(cfg.Rate), inFlight: c.inFlight(cfg.MaxInFlight)},
		folder: cfg.Folder,
		mode:   defaultFileMode,
		clock:  opt.Clock,
	}
	if cfg.Mode != "" {
		mode, err := strconv.ParseUint(cfg.Mode, 8, 9)
		if err != nil {
			c.fault("mode", strconv.Quote(cfg.Mode)+" is not a mode of files", `write it as "0640"`)
		}
		d.mode = fs.FileMode(mode)
	}
	faults := len(c.problems)
	c.folder("folder", cfg.Folder)
	if len(c.problems) == faults && syscall.Access(cfg.Folder, accessWrite|accessExecute) != nil {
		// The start must not depend on a disk that is full or read-only today:
		// the deliveries wait for it.
		c.warn("folder", fmt.Sprintf("user id %d can not write into it now", os.Getuid()), "see who owns it, and whether its disk is read-only: ls -ld "+cfg.Folder)
	}
	if len(c.problems.Faults()) > 0 {
		return nil, c.problems
	}
	return d, c.problems
}

// String is the folder.
func (d *Folder) String() string { return d.folder }

// Attempt writes the body of a shipment under its path. It never returns an
// error of its own: what went wrong is in the result. An attempt that was cut
// off by the end of the process leaves a temporary file or the whole one,
// never a part under the path; the next attempt ends alike.
func (d *Folder) Attempt(_ context.Context, s event.Shipment, now time.Time) Result {
	began := d.clock()
	err := d.write(&s)
	result := Result{
		Attempt: event.Attempt{
			Delivery: s.ID, Run: s.Run, Number: s.Tries, Spent: !s.Probe, Start: now,
			Duration: max(d.clock().Sub(began), 0),
			Outcome:  ClassifyFile(err),
		},
	}
	if err != nil {
		result.Attempt.Error = printable(strings.ReplaceAll(toldFile(err), "\n", " "), mostError)
		result.Alive = isOfItsPath(err)
	}
	return result
}

var (
	// errTaken says that something else stands at a path.
	errTaken = errors.New("another file stands there already, with other content")
	// errNoFolder says that the folder itself can not be opened.
	errNoFolder = errors.New("opening the folder")
	// errUnwritable says that nothing can be written for a delivery whatever
	// the state of the disk.
	errUnwritable = errors.New("the file can not be made")
)

// ClassifyFile is the one function that says what the writing of a file came
// to: permanent where the delivery itself is the reason, transient where the
// disk or the folder is. Nothing is in doubt: a second writing ends alike.
func ClassifyFile(err error) event.Outcome {
	switch {
	case err == nil:
		return event.OK
	case errors.Is(err, errTaken), errors.Is(err, errUnwritable),
		errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EILSEQ):
		return event.Permanent
	}
	return event.Transient
}

// isOfItsPath tells whether an error is about the path that an event chose and
// says nothing of the folder, which could be opened: what stands there, or a
// link of the owner's on the way.
func isOfItsPath(err error) bool {
	return errors.Is(err, errTaken) || errors.Is(err, syscall.ELOOP) || leadsOut(err) ||
		errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNoFolder)
}

// leadsOut tells whether a path would lead out of the folder. Package os has no
// name for the error.
func leadsOut(err error) bool {
	var place *fs.PathError
	return errors.As(err, &place) && place.Err != nil && place.Err.Error() == "path escapes from parent"
}

// toldFile is the error for the operator.
func toldFile(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "the disk of the folder is full: " + err.Error()
	case errors.Is(err, syscall.EROFS):
		return "the disk of the folder is read-only: " + err.Error()
	case leadsOut(err):
		return "a link on the way leads out of the folder, and is not followed: " + err.Error()
	}
	return err.Error()
}
