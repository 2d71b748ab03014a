//go:build linux

package inotify

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// rig is a directory whose files are watched, and whose events come by event alone.
type rig struct {
	*testing.T
	Watches
	dir    string
	opened int
}

func newRig(t *testing.T) *rig {
	r := &rig{T: t, dir: t.TempDir()}
	r.Look = func(x vfs.Handle) (State, error) {
		fd := r.open(string(x.Bytes()))
		s, err := Of(fd)
		return s, linux.Close(fd, err)
	}
	r.Report = func(err error) { t.Error(err) }
	r.Opened = func(n int) { r.opened += n }
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Skipf("NOT TESTED: no inotify here: %v", err)
	}
	r.file, r.fd, r.most = os.NewFile(uintptr(fd), "inotify"), fd, maxWatches
	r.watched, r.byName, r.byInode = make(map[int32]*watched), make(map[vfs.Handle]*watched), make(map[inode]*watched)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) open(name string) int {
	r.Helper()
	fd, err := linux.OpenPath(unix.AT_FDCWD, filepath.Join(r.dir, name), 0)
	if err != nil {
		r.Fatal(err)
	}
	return fd
}

// make makes a file, and returns its handle and a descriptor.
func (r *rig) make(name string) (vfs.Handle, int) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), nil, 0o600); err != nil {
		r.Fatal(err)
	}
	x, err := vfs.MakeHandle([]byte(name))
	if err != nil {
		r.Fatal(err)
	}
	fd := r.open(name)
	r.Cleanup(func() { _ = unix.Close(fd) })
	return x, fd
}

// hear watches x; the changes that are told are added up in the result.
func (r *rig) hear(x vfs.Handle, fd int) (told *vfs.Change, stop func()) {
	r.Helper()
	told = new(vfs.Change)
	stop, err := r.Watch(x, fd, func(c vfs.Change) { *told |= c })
	if err != nil {
		r.Fatal(err)
	}
	return told, stop
}

func (r *rig) wantBusy(x vfs.Handle, fd int) {
	r.Helper()
	if _, err := r.Watch(x, fd, nil); !errors.Is(err, vfs.ErrBusy) {
		r.Errorf("error %v, want %v", err, vfs.ErrBusy)
	}
}

// TestOverflow: when the kernel has dropped events, all are told of everything.
func TestOverflow(t *testing.T) {
	r := newRig(t)
	x, y := r.watchTwo()
	r.event(-1, unix.IN_Q_OVERFLOW)
	if all := vfs.ChangeGone | vfs.ChangeRights; *x != all || *y != all {
		t.Errorf("told %b and %b, want %b", *x, *y, all)
	}
}

func (r *rig) watchTwo() (x, y *vfs.Change) {
	h, fd := r.make("x")
	x, _ = r.hear(h, fd)
	h, fd = r.make("y")
	y, _ = r.hear(h, fd)
	return x, y
}

// TestBounds: there may be so many watches, and so many inodes.
func TestBounds(t *testing.T) {
	r := newRig(t)
	x, xfd := r.make("x")
	y, yfd := r.make("y")
	_, stop := r.hear(x, xfd)
	r.n.Add(maxWatches - 1)
	r.wantBusy(x, xfd)
	r.n.Add(1 - maxWatches)
	r.most = 1
	r.wantBusy(y, yfd)
	_, again := r.hear(x, xfd) // the same inode
	if n, inodes := r.Count(); n != 2 || inodes != 1 {
		t.Errorf("%d watches of %d inodes", n, inodes)
	}
	r.most = 2
	r.hear(y, yfd)
	stop()
	again()
	if n, inodes := r.Count(); n != 1 || inodes != 1 {
		t.Errorf("%d watches of %d inodes are left", n, inodes)
	}
}

// TestShare leaves most of the kernel's watches to other programs of the user.
func TestShare(t *testing.T) {
	raw, err := os.ReadFile(watchesLimit)
	if err != nil {
		t.Fatal(err)
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	if n := mostInodes(); n < 1 || n > maxWatches || n > max(limit/watchesShare, 1) {
		t.Errorf("%d inodes may be watched, the kernel's limit being %d", n, limit)
	}
}

// TestThereAndBack: a right that was given and taken back before the event is read is told
// of if something was granted on it, and not otherwise.
func TestThereAndBack(t *testing.T) {
	for _, judged := range []bool{false, true} {
		r := newRig(t)
		x, fd := r.make("x")
		told, _ := r.hear(x, fd)
		chmod := func(mode os.FileMode) {
			t.Helper()
			if err := os.Chmod(filepath.Join(r.dir, "x"), mode); err != nil {
				t.Fatal(err)
			}
		}
		chmod(0o604)
		if judged {
			var st linux.Stat
			if err := st.Of(fd); err != nil {
				t.Fatal(err)
			}
			r.Judged(x, fd, &st)
		}
		chmod(0o600)
		for wd := range r.watched {
			r.event(wd, unix.IN_ATTRIB)
		}
		if got := *told&vfs.ChangeRights != 0; got != judged {
			t.Errorf("granted %t: told %b", judged, *told)
		}
	}
}
