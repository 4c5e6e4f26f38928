package store

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
)

const (
	pageSize = 4096
	// walLimit is the size that the WAL file is cut back to when it starts
	// over, and above which the writer asks for a truncation. In bytes.
	walLimit = 16 << 20
	// minSQLite is the first release without the WAL-reset bug
	// (https://www.sqlite.org/wal.html#walresetbug).
	minSQLite = "3.51.3"
)

// setting is one PRAGMA of a connection: what it is set to, and what it reads
// as once it is really on.
type setting struct{ pragma, set, reads string }

// shared are the settings of every connection, writer and readers.
func shared(busy time.Duration) []setting {
	ms := strconv.FormatInt(busy.Milliseconds(), 10)
	return []setting{
		{"busy_timeout", ms, ms},
		{"foreign_keys", "1", "1"},
		{"trusted_schema", "0", "0"},
		{"cell_size_check", "1", "1"},
		{"mmap_size", "0", "0"},
		{"temp_store", "2", "2"},
	}
}

// writerSettings are those that durability rests on, besides the shared ones.
// Checkpoints are the writer's own step (checkpoint.go), because an automatic
// one hides its result, a failed sync included.
func writerSettings(busy time.Duration) []setting {
	limit := strconv.Itoa(walLimit)
	return append(shared(busy),
		setting{"page_size", strconv.Itoa(pageSize), strconv.Itoa(pageSize)},
		setting{"journal_mode", "WAL", "wal"},
		setting{"synchronous", "FULL", "2"},
		setting{"wal_autocheckpoint", "0", "0"},
		setting{"journal_size_limit", limit, limit},
		// What a page held is zeroed where the page is written anyway, so that a
		// purge (retention.go) leaves no copy from when rows were moved.
		setting{"secure_delete", "FAST", "2"},
	)
}

func readerSettings(busy time.Duration) []setting {
	return append(shared(busy), setting{"query_only", "1", "1"})
}

// dataSource builds the driver's name for a connection. The path is escaped:
// one that has a "?" or "%" in it names that file and no option.
func dataSource(path string, settings []setting, options ...string) string {
	query := []string{"_defensive=1", "_txlock=immediate", "_dqs=0", "_error_rc=1"}
	query = append(query, options...)
	for _, s := range settings {
		query = append(query, "_pragma="+url.QueryEscape(s.pragma+"("+s.set+")"))
	}
	escaped := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
	return "file:" + escaped + "?" + strings.Join(query, "&")
}

// verify reads every setting back: a PRAGMA that does not take says nothing.
func verify(c *connection, settings []setting) error {
	for _, s := range settings {
		got, err := c.value("PRAGMA " + s.pragma)
		if err != nil {
			return fmt.Errorf("read %s: %w", s.pragma, err)
		}
		if text := fmt.Sprint(got); text != s.reads {
			return fmt.Errorf("%w: %s is %s, must be %s", ErrSettings, s.pragma, text, s.reads)
		}
	}
	return verifyDefensive(c)
}

// verifyDefensive sees whether defensive mode is on, which no PRAGMA reads:
// under it writable_schema stays off when it is switched on.
func verifyDefensive(c *connection) error {
	if _, err := c.value("PRAGMA writable_schema = 1"); err != nil {
		return fmt.Errorf("try writable_schema: %w", err)
	}
	got, err := c.value("PRAGMA writable_schema")
	if err != nil {
		return fmt.Errorf("read writable_schema: %w", err)
	}
	if on, _ := got.(int64); on != 0 {
		return fmt.Errorf("%w: defensive mode is off", ErrSettings)
	}
	return nil
}

// verifyVersion refuses a library with known corruption bugs.
func verifyVersion(c *connection) error {
	got, err := c.value("SELECT sqlite_version()")
	if err != nil {
		return fmt.Errorf("read the library version: %w", err)
	}
	text, _ := got.(string)
	if !atLeast(text, minSQLite) {
		return fmt.Errorf("%w: SQLite is %s, must be %s or later", ErrSettings, text, minSQLite)
	}
	return nil
}

// atLeast compares dotted versions by their numbers.
func atLeast(version, min string) bool {
	have, need := strings.Split(version, "."), strings.Split(min, ".")
	for i := range need {
		var h int
		if i < len(have) {
			h, _ = strconv.Atoi(have[i])
		}
		n, _ := strconv.Atoi(need[i])
		if h != n {
			return h > n
		}
	}
	return true
}

// prepareLibrary sets what the driver keeps for the whole process. It is
// called before the first connection and may be called again.
func prepareLibrary() error {
	sqlite.StrictPragmas(true)
	// A POSIX lock would be lost by any close of any descriptor of the file,
	// also by another package's (https://www.sqlite.org/howtocorrupt.html
	// section 2.2). Where the kernel or file system has no such locks the
	// library falls back to POSIX ones, and the rule that nobody opens the
	// file outside SQLite still holds.
	if _, err := sqlite.OFDLocking(true); err != nil && err != sqlite.ErrOFDLockingUnavailable {
		return fmt.Errorf("ask for open file description locks: %w", err)
	}
	// fdatasync leaves out the timestamps of a file and nothing that is
	// needed to read it back.
	if _, err := sqlite.Fdatasync(true); err != nil && err != sqlite.ErrFdatasyncUnavailable {
		return fmt.Errorf("ask for fdatasync: %w", err)
	}
	return nil
}
