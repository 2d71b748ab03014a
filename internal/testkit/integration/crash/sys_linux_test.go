package crash

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs"
)

// diskSys is what a localfs asks of a disk.
type diskSys interface {
	localfs.Sys
	Setxattr(fd int, name string, value []byte) error
	RenameatNoReplace(fromfd int, from string, tofd int, to string) error
}

// crashSys makes the system calls of a server that dies when the test says so: after that, no
// call reaches the disk. It knows where in the server each sync is called, and can leave out
// those of one place.
type crashSys struct {
	disk diskSys

	mu       sync.Mutex
	calls    int
	syncs    int
	dieCall  int // the call at which the process dies; 0: never
	dieSync  int // likewise, of the syncs alone
	dead     bool
	sites    map[string]int
	skip     string // the syncs of this place are left out
	skipped  int    // how many were, in this life
	leftOut  int    // how many were, in all lives
	patience int    // how many calls after the first the process dies
	from     uint64 // the directory that the last rename took a name from
	into     uint64 // and the one that it took it to, if that is another
}

// rearm begins a new life, which ends at the given call or sync, counted from now;
// 0: never.
func (s *crashSys) rearm(call, sync int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead, s.skipped, s.dieCall, s.dieSync = false, 0, 0, 0
	if call > 0 {
		s.dieCall = s.calls + call
	}
	if sync > 0 {
		s.dieSync = s.syncs + sync
	}
}

// leave says whether the syncs of a place are left out from now on.
func (s *crashSys) leave(site string, out bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.skip = ""; out {
		s.skip = site
	}
}

// kill ends the life now.
func (s *crashSys) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
}

func (s *crashSys) isDead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

// admit counts a call and says whether it may be made.
func (s *crashSys) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.dieCall > 0 && s.calls >= s.dieCall {
		s.dead = true
	}
	if s.dead {
		return unix.EIO
	}
	return nil
}

// sync is admit for a sync, and says whether it is one of those left out.
func (s *crashSys) sync(fd int, do func(int) error) error {
	if err := s.admit(); err != nil {
		return err
	}
	site := s.site(fd)
	s.mu.Lock()
	s.syncs++
	if s.dieSync > 0 && s.syncs >= s.dieSync {
		s.dead = true
	}
	s.sites[site]++
	dead, skip := s.dead, site == s.skip
	if skip && !dead {
		s.leftOut++
		if s.skipped++; s.skipped == 1 {
			s.dieCall = s.calls + 1 + s.patience
		}
	}
	s.mu.Unlock()
	switch {
	case dead:
		return unix.EIO
	case skip:
		return nil
	}
	return do(fd)
}

// site names the call of a sync: the operation of the export that it is for, the
// line of localfs that makes it, and what it is made of. A sync of the map of handles
// is named by its line in handlemap alone, whatever call it is for.
func (s *crashSys) site(fd int) string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	line, op := "", ""
	for {
		f, more := frames.Next()
		if name, ok := strings.CutPrefix(f.Function, "github.com/nfsbox/nfsbox/internal/server/localfs/handlemap."); ok {
			return fmt.Sprintf("handlemap.%s:%d", name, f.Line)
		}
		name, isLocal := strings.CutPrefix(f.Function, "github.com/nfsbox/nfsbox/internal/server/localfs.")
		name = strings.SplitN(name, ".func", 2)[0]
		if isLocal && line == "" && !strings.HasPrefix(name, "gatedSys") &&
			name != "(*host).fsync" && name != "(*host).fdatasync" {
			line = fmt.Sprintf("%s:%d", name, f.Line)
		}
		if name, ok := strings.CutPrefix(f.Function, "github.com/nfsbox/nfsbox/export."); ok {
			if name = strings.SplitN(name, ".func", 2)[0]; name != "(*ref).stable" {
				op = name
				break
			}
		}
		if isLocal && op == "" && strings.HasPrefix(name, "(*FS).tidy") {
			op = name
			break
		}
		if !more {
			break
		}
	}
	return strings.TrimSpace(op + " " + line + " " + s.kind(op, fd))
}

// kind tells the syncs of one operation apart.
func (s *crashSys) kind(op string, fd int) string {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return "file"
	case op == "(*View).Rename" && s.into != 0 && st.Ino == s.into:
		return "new directory"
	case op == "(*View).Rename" && s.into != 0 && st.Ino == s.from:
		return "old directory"
	}
	return "directory"
}

func (s *crashSys) Openat(dirfd int, name string, flags int, mode uint32) (int, error) {
	if err := s.admit(); err != nil {
		return -1, err
	}
	return s.disk.Openat(dirfd, name, flags, mode)
}

func (s *crashSys) Pwrite(fd int, p []byte, off int64) (int, error) {
	if err := s.admit(); err != nil {
		return 0, err
	}
	return s.disk.Pwrite(fd, p, off)
}

// then makes a call if it is admitted.
func (s *crashSys) then(call func() error) error {
	if err := s.admit(); err != nil {
		return err
	}
	return call()
}

func (s *crashSys) Mkdirat(dirfd int, name string, mode uint32) error {
	return s.then(func() error { return s.disk.Mkdirat(dirfd, name, mode) })
}
func (s *crashSys) Symlinkat(target string, dirfd int, name string) error {
	return s.then(func() error { return s.disk.Symlinkat(target, dirfd, name) })
}
func (s *crashSys) Mknodat(dirfd int, name string, mode uint32, dev uint64) error {
	return s.then(func() error { return s.disk.Mknodat(dirfd, name, mode, dev) })
}
func (s *crashSys) Linkat(fromfd, dirfd int, name string) error {
	return s.then(func() error { return s.disk.Linkat(fromfd, dirfd, name) })
}
func (s *crashSys) Unlinkat(dirfd int, name string, flags int) error {
	return s.then(func() error { return s.disk.Unlinkat(dirfd, name, flags) })
}
func (s *crashSys) Renameat(fromfd int, from string, tofd int, to string) error {
	return s.then(func() error {
		s.moves(fromfd, tofd)
		return s.disk.Renameat(fromfd, from, tofd, to)
	})
}
func (s *crashSys) RenameatNoReplace(fromfd int, from string, tofd int, to string) error {
	return s.then(func() error {
		s.moves(fromfd, tofd)
		return s.disk.RenameatNoReplace(fromfd, from, tofd, to)
	})
}

// moves notes between which directories a name is moved.
func (s *crashSys) moves(fromfd, tofd int) {
	var a, b unix.Stat_t
	if unix.Fstat(fromfd, &a) != nil || unix.Fstat(tofd, &b) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from, s.into = a.Ino, 0
	if a.Ino != b.Ino {
		s.into = b.Ino
	}
}

func (s *crashSys) Ftruncate(fd int, size int64) error {
	return s.then(func() error { return s.disk.Ftruncate(fd, size) })
}
func (s *crashSys) Fallocate(fd int, mode uint32, off, n int64) error {
	return s.then(func() error { return s.disk.Fallocate(fd, mode, off, n) })
}
func (s *crashSys) Fchmod(fd int, mode uint32) error {
	return s.then(func() error { return s.disk.Fchmod(fd, mode) })
}
func (s *crashSys) Fchown(fd, uid, gid int) error {
	return s.then(func() error { return s.disk.Fchown(fd, uid, gid) })
}
func (s *crashSys) Futimens(fd int, as, an, ms, mn int64) error {
	return s.then(func() error { return s.disk.Futimens(fd, as, an, ms, mn) })
}
func (s *crashSys) Setxattr(fd int, name string, value []byte) error {
	return s.then(func() error { return s.disk.Setxattr(fd, name, value) })
}
func (s *crashSys) Fdatasync(fd int) error { return s.sync(fd, s.disk.Fdatasync) }
func (s *crashSys) Fsync(fd int) error     { return s.sync(fd, s.disk.Fsync) }
func (s *crashSys) Syncfs(fd int) error    { return s.sync(fd, s.disk.Syncfs) }
