//go:build linux

package handlemap

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// The names of the map's files in Options.StateDir.
const (
	FileName    = "handles.map"
	newFileName = "handles.new" // while it is written; worth nothing after a crash
)

// flushSize is how much of the log waits in memory before it is written, though
// not synced, at the latest.
const flushSize = 64 << 10

// log is the file of the map. Records are appended, read back by offset, and made stable in
// groups. Without a directory it is a file in memory.
//
// Lock order: Map.mu, then log.mu.
type log struct {
	sys Disk
	dir int // of the directory; -1: volatile

	mu      sync.Mutex
	wake    sync.Cond // a sync has ended
	fd      int
	pend    []byte // appended and not written
	written int64  // bytes in the file
	synced  int64  // of which on disk
	base    int64  // what offsets are less than LSNs
	syncing bool
	err     error // a sync has failed: nothing here can be trusted any more
}

// LSN is a log sequence number: WaitStable waits until the log is on disk up to it. They
// grow, also when a compaction makes the file shorter. 0 needs no waiting.
type LSN int64

func newLog(sys Disk, dir int) *log {
	l := &log{sys: sys, dir: dir, fd: -1}
	l.wake.L = &l.mu
	return l
}

func (l *log) append(r *record) (off int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, l.err
	}
	if len(l.pend) >= flushSize {
		if err := l.flush(); err != nil {
			return 0, err
		}
	}
	off = l.written + int64(len(l.pend))
	l.pend = appendRecord(l.pend, r)
	return off, nil
}

func (l *log) lsn(off int64) LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return LSN(l.base + off + 1)
}

// flush writes what is pending. After an error it can be tried again.
func (l *log) flush() error {
	if err := writeAll(l.sys, l.fd, l.pend, l.written); err != nil {
		return fmt.Errorf("localfs: map of handles: %w", err)
	}
	l.written += int64(len(l.pend))
	l.pend = l.pend[:0]
	return nil
}

func writeAll(sys Disk, fd int, p []byte, off int64) error {
	for len(p) > 0 {
		n, err := sys.Pwrite(fd, p, off)
		if err != nil {
			return linux.Fail("pwrite", err)
		}
		if n == 0 {
			return io.ErrShortWrite
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// waitStable waits until the log is on disk up to at. One of the calls that wait syncs for
// all whose records were appended by then.
func (l *log) waitStable(m LSN) error {
	if l.dir < 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.base+l.synced < int64(m) {
		if l.err != nil {
			return l.err
		}
		if l.syncing {
			l.wake.Wait()
			continue
		}
		if err := l.sync(); err != nil {
			return err
		}
	}
	return nil
}

// sync writes what is pending and syncs the file, without the lock.
func (l *log) sync() error {
	l.syncing = true
	err := l.syncNow()
	l.syncing = false
	l.wake.Broadcast()
	return err
}

// syncNow is the part of sync that only one does at a time.
func (l *log) syncNow() error {
	n := len(l.pend)
	l.pend = appendRecord(l.pend, &record{typ: recSynced, synced: l.synced})
	if err := l.flush(); err != nil {
		l.pend = l.pend[:n]
		return err
	}
	upTo := l.written
	l.mu.Unlock()
	err := l.sys.Fdatasync(l.fd)
	l.mu.Lock()
	if err != nil {
		l.err = fmt.Errorf("localfs: map of handles: no handles can be given out any more: %w", linux.Fail("fdatasync", err))
	} else {
		l.synced = upTo
	}
	return l.err
}

// nameReader reads names back from a log.
type nameReader struct {
	l   *log
	buf *[maxRecord]byte
}

func (l *log) reader() nameReader { return nameReader{l, new([maxRecord]byte)} }

// name returns the name in the bind at off. The caller holds Map.mu, so that no compaction
// moves it.
func (n nameReader) name(off int64) (string, error) {
	n.l.mu.Lock()
	defer n.l.mu.Unlock()
	return n.nameLocked(off)
}

// nameLocked is name for a call that holds log.mu as well.
func (n nameReader) nameLocked(off int64) (string, error) {
	l := n.l
	var b []byte
	if off >= l.written {
		b = l.pend[min(int(off-l.written), len(l.pend)):]
	} else {
		got, err := unix.Pread(l.fd, n.buf[:], off)
		if err != nil {
			return "", linux.Fail("pread", err)
		}
		b = n.buf[:got]
	}
	var r record
	if _, err := parseRecord(b, &r); err != nil || r.typ != recBind {
		return "", fmt.Errorf("localfs: map of handles: damaged at offset %d, which was whole: %w", off, vfs.ErrIO)
	}
	return string(r.name), nil
}

// replace puts a new file in the place of the log, on disk before it returns. write writes
// it, through w, and keeps the offsets that w tells. The caller holds Map.mu.
func (l *log) replace(write func(w *writer) error) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.syncing {
		l.wake.Wait()
	}
	if l.err != nil {
		return l.err
	}
	fd, err := l.create()
	if err != nil {
		return err
	}
	w := &writer{log: l, fd: fd}
	if err = write(w); err == nil {
		err = w.flush()
	}
	if err == nil {
		err = l.install(fd)
	}
	if err != nil {
		return linux.Close(fd, fmt.Errorf("localfs: map of handles: %w", err))
	}
	if l.fd >= 0 {
		_ = unix.Close(l.fd) // what it held is in the new file
	}
	end := l.base + l.written + int64(len(l.pend))
	l.fd, l.written, l.synced, l.pend = fd, w.off, w.off, l.pend[:0]
	l.base = end - w.off
	l.wake.Broadcast()
	return nil
}

// create makes the file that is to take the log's place.
func (l *log) create() (int, error) {
	if l.dir < 0 {
		fd, err := unix.MemfdCreate("nfsbox handles", unix.MFD_CLOEXEC)
		return fd, linux.Fail("memfd_create", err)
	}
	if err := l.sys.Unlinkat(l.dir, newFileName, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return -1, linux.Fail("unlink", err)
	}
	fd, err := l.sys.Openat(l.dir, newFileName, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o600)
	return fd, linux.Fail("create", err)
}

// install gives the new file its name.
func (l *log) install(fd int) error {
	if l.dir < 0 {
		return nil
	}
	if err := l.sys.Fsync(fd); err != nil {
		return linux.Fail("fsync", err)
	}
	if err := l.sys.Renameat(l.dir, newFileName, l.dir, FileName); err != nil {
		return linux.Fail("rename", err)
	}
	if err := l.sys.Fsync(l.dir); err != nil {
		// Which of the two files a crash would leave is not known.
		l.err = fmt.Errorf("localfs: map of handles: %w", linux.Fail("fsync", err))
		return l.err
	}
	return nil
}

// discard lets go of a file that was loaded in vain.
func (l *log) discard() {
	if l.fd >= 0 {
		_ = unix.Close(l.fd) // nothing was written to it
	}
	l.fd = -1
}

func (l *log) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fd < 0 {
		return nil
	}
	var err error
	if l.dir >= 0 && l.err == nil && (l.synced < l.written || len(l.pend) > 0) {
		// Twice: the second sync has the record that the first has reached the disk.
		if err = l.sync(); err == nil {
			err = l.sync()
		}
	}
	err = linux.Close(l.fd, err)
	l.fd = -1
	return err
}

// writer writes a new file from its start.
type writer struct {
	log *log
	fd  int
	buf []byte
	off int64 // where buf goes
}

func (w *writer) record(r *record) (int64, error) {
	off := w.off + int64(len(w.buf))
	w.buf = appendRecord(w.buf, r)
	if len(w.buf) >= flushSize {
		return off, w.flush()
	}
	return off, nil
}

func (w *writer) flush() error {
	if err := writeAll(w.log.sys, w.fd, w.buf, w.off); err != nil {
		return err
	}
	w.off += int64(len(w.buf))
	w.buf = w.buf[:0]
	return nil
}

// stable reports whether waitStable need not wait.
func (l *log) stable(m LSN) bool {
	if l.dir < 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.base+l.synced >= int64(m)
}
