package store

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// operation is one thing that SQLite asks the disk to do and that a power loss
// can undo or a fault can refuse.
type operation struct {
	kind   string // write, truncate, sync, delete
	file   string // base name
	offset int64
	data   []byte
}

// disk is a VFS of one test over the real one: it sees every operation before
// it is done, keeps it, and may refuse it with a result code of SQLite.
type disk struct {
	name   string
	record bool

	mu     sync.Mutex
	refuse func(n int, op operation) int32 // n counts from 1; nil refuses nothing
	n      int
	most   int // the largest n of any count
	log    []operation
	marks  []mark
}

// mark is something that was promised when the log had that many operations.
type mark struct {
	at   int
	name string
}

// see is asked before each operation.
func (d *disk) see(op operation) int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	d.most = max(d.most, d.n)
	if d.refuse != nil {
		if code := d.refuse(d.n, op); code != sqlite3.SQLITE_OK {
			return code
		}
	}
	if d.record {
		d.log = append(d.log, op)
	}
	return sqlite3.SQLITE_OK
}

// set changes what is refused, and counts from the start again.
func (d *disk) set(refuse func(n int, op operation) int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse, d.n = refuse, 0
}

func (d *disk) mark(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.marks = append(d.marks, mark{len(d.log), name})
}

// opened is what the shim knows of an open file, by its sqlite3_file.
type opened struct {
	disk    *disk
	file    string
	methods *sqlite3.Tsqlite3_io_methods // the real ones
}

// The C callbacks find their way back through these.
var (
	disks  sync.Map // *sqlite3_vfs → *disk
	files  sync.Map // *sqlite3_file → opened
	base   uintptr  // the real sqlite3_vfs
	serial sync.Mutex
	number int
)

// newDisk registers a VFS for one test.
func newDisk(t testing.TB) *disk {
	t.Helper()
	serial.Lock()
	defer serial.Unlock()
	number++
	d := &disk{name: fmt.Sprintf("disk%d", number)}
	tls := libc.NewTLS()
	t.Cleanup(tls.Close)
	if base == 0 {
		base = sqlite3.Xsqlite3_vfs_find(tls, 0)
	}
	size := unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})
	vfs := libc.Xmalloc(tls, libc.Tsize_t(size))
	shim := at[sqlite3.Tsqlite3_vfs](vfs)
	*shim = *baseVFS()
	name, err := libc.CString(d.name)
	must(t, err)
	shim.FzName, shim.FpNext = name, 0
	shim.FxOpen = address(shimOpen)
	shim.FxDelete = address(shimDelete)
	disks.Store(vfs, d)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, vfs, 0); rc != sqlite3.SQLITE_OK {
		t.Fatalf("register the VFS: %d", rc)
	}
	t.Cleanup(func() { sqlite3.Xsqlite3_vfs_unregister(tls, vfs) })
	return d
}

// address is the C function pointer of a Go function, in the transpiler's form.
func address[F any](f F) uintptr {
	return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f}))
}

// function is the Go function of a C function pointer.
func function[F any](p uintptr) F {
	return *(*F)(unsafe.Pointer(&struct{ p uintptr }{p}))
}

// at is the C structure at an address outside Go's memory.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

func baseVFS() *sqlite3.Tsqlite3_vfs { return at[sqlite3.Tsqlite3_vfs](base) }

func shimOpen(tls *libc.TLS, vfs, path, file uintptr, flags int32, out uintptr) int32 {
	rc := function[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](baseVFS().FxOpen)(tls, vfs, path, file, flags, out)
	f := at[sqlite3.Tsqlite3_file](file)
	if rc != sqlite3.SQLITE_OK || f.FpMethods == 0 || path == 0 {
		return rc
	}
	d, _ := disks.Load(vfs)
	real := at[sqlite3.Tsqlite3_io_methods](f.FpMethods)
	copied := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(*real)))
	methods := at[sqlite3.Tsqlite3_io_methods](copied)
	*methods = *real
	methods.FxWrite = address(shimWrite)
	methods.FxTruncate = address(shimTruncate)
	methods.FxSync = address(shimSync)
	methods.FxClose = address(shimClose)
	files.Store(file, opened{d.(*disk), filepath.Base(libc.GoString(path)), real})
	f.FpMethods = copied
	return rc
}

func shimDelete(tls *libc.TLS, vfs, path uintptr, syncDir int32) int32 {
	d, _ := disks.Load(vfs)
	if code := d.(*disk).see(operation{kind: "delete", file: filepath.Base(libc.GoString(path))}); code != sqlite3.SQLITE_OK {
		return code
	}
	return function[func(*libc.TLS, uintptr, uintptr, int32) int32](baseVFS().FxDelete)(tls, vfs, path, syncDir)
}

func of(file uintptr) opened {
	o, _ := files.Load(file)
	return o.(opened)
}

func shimWrite(tls *libc.TLS, file, data uintptr, amount int32, offset int64) int32 {
	o := of(file)
	op := operation{kind: "write", file: o.file, offset: offset}
	if o.disk.record {
		op.data = append([]byte(nil), unsafe.Slice(at[byte](data), amount)...)
	}
	if code := o.disk.see(op); code != sqlite3.SQLITE_OK {
		return code
	}
	return function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](o.methods.FxWrite)(tls, file, data, amount, offset)
}

func shimTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	o := of(file)
	if code := o.disk.see(operation{kind: "truncate", file: o.file, offset: size}); code != sqlite3.SQLITE_OK {
		return code
	}
	return function[func(*libc.TLS, uintptr, int64) int32](o.methods.FxTruncate)(tls, file, size)
}

func shimSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	o := of(file)
	if code := o.disk.see(operation{kind: "sync", file: o.file}); code != sqlite3.SQLITE_OK {
		return code
	}
	return function[func(*libc.TLS, uintptr, int32) int32](o.methods.FxSync)(tls, file, flags)
}

func shimClose(tls *libc.TLS, file uintptr) int32 {
	o := of(file)
	rc := function[func(*libc.TLS, uintptr) int32](o.methods.FxClose)(tls, file)
	files.Delete(file)
	return rc
}
