//go:build linux

package handlemap

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
)

// load opens the file that is there, hands every record to apply, and cuts off
// what a crash has left half written. os.ErrNotExist: there is none.
func (l *log) load(begin func(*header) error, apply func(r *record, off int64) error) (err error) {
	l.fd, err = unix.Openat(l.dir, FileName, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		l.fd = -1
		return err
	}
	var st linux.Stat
	if err := st.Of(l.fd); err != nil {
		return linux.Fail("statx", err)
	}
	s := scanner{fd: l.fd, size: int64(st.Size)}
	var h header
	if err := s.fill(headerSize); err != nil {
		return err
	}
	if err := parseHeader(s.buf, &h); err != nil {
		return err
	}
	s.skip(headerSize)
	if err := begin(&h); err != nil {
		return err
	}
	if err := s.records(apply); err != nil {
		return err
	}
	if s.off < s.size {
		if err := l.sys.Ftruncate(l.fd, s.off); err != nil {
			return linux.Fail("ftruncate", err)
		}
	}
	// What the last process had not synced may be in the cache only.
	if err := l.sys.Fsync(l.fd); err != nil {
		return linux.Fail("fsync", err)
	}
	l.written, l.synced = s.off, s.off
	return nil
}

// scanner reads a map's file through a window.
type scanner struct {
	fd   int
	size int64
	off  int64  // of buf
	buf  []byte // a part of the file, in mem
	mem  []byte
}

// scanWindow is the size of the window: many records.
const scanWindow = 256 << 10

// fill makes the window hold n bytes, or all that are left of the file.
func (s *scanner) fill(n int) error {
	if len(s.buf) >= n || s.off+int64(len(s.buf)) >= s.size {
		return nil
	}
	if s.mem == nil {
		s.mem = make([]byte, scanWindow)
	}
	have := copy(s.mem, s.buf)
	for have < len(s.mem) {
		n, err := unix.Pread(s.fd, s.mem[have:], s.off+int64(have))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return linux.Fail("pread", err)
		}
		if n == 0 {
			break
		}
		have += n
	}
	s.buf = s.mem[:have]
	return nil
}

func (s *scanner) skip(n int) {
	s.buf = s.buf[n:]
	s.off += int64(n)
}

// records hands all records to apply and stops, with off, where they end: at the
// end of the file, or where a crash has torn it.
func (s *scanner) records(apply func(*record, int64) error) error {
	var r record
	for s.off < s.size {
		if err := s.fill(maxRecord); err != nil {
			return err
		}
		n, err := parseRecord(s.buf, &r)
		if err != nil {
			return s.torn()
		}
		if r.typ == recSynced && r.synced > s.off {
			return fmt.Errorf("damaged at offset %d: a sync of what was not there yet", s.off)
		}
		if err := apply(&r, s.off); err != nil {
			return fmt.Errorf("damaged at offset %d: %w", s.off, err)
		}
		s.skip(n)
	}
	return nil
}

// torn decides what unreadable bytes at off mean. If a later record says that
// they had reached the disk, they are damage, and an error; else they were
// never relied upon.
func (s *scanner) torn() error {
	at := *s // the outer scanner stays where the records end
	at.mem, at.buf = nil, nil
	var r record
	for at.off < at.size {
		if err := at.fill(recordHead + syncedSize); err != nil {
			return err
		}
		if len(at.buf) < recordHead+syncedSize {
			return nil
		}
		if at.buf[6] == byte(recSynced) {
			n, err := parseRecord(at.buf[:recordHead+syncedSize], &r)
			if err == nil && r.synced > s.off {
				return fmt.Errorf("damaged at offset %d, before offset %d, up to which it was on disk", s.off, r.synced)
			}
			if err == nil {
				at.skip(n)
				continue
			}
		}
		at.skip(1)
	}
	return nil
}

// isNoMap reports whether load has found that there is no file yet.
func isNoMap(err error) bool { return errors.Is(err, unix.ENOENT) }
