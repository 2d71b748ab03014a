//go:build linux

package fusefs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// Mount is a mounted file system. It implements the requests of the kernel.
type Mount struct {
	fuse.RawFileSystem

	opt        Options
	dir        string
	server     *fuse.Server
	base       context.Context // of all requests
	stop       context.CancelFunc
	fsid       [2]uint64 // of the root
	generation uint64    // of this mount's nodes: a handle of an earlier mount is stale
	locker     vfs.Locker

	callers callers
	flights flights
	nodes   *nodes
	files   handles[*openFile]
	folders handles[*folder]
	settle  settling
}

// New mounts fs at dir, which is a directory. Serve must follow. As root it mounts by itself, else by fusermount3.
// Nothing is left mounted if it fails. fs is the caller's, to close after Drain.
func New(fs vfs.FS, dir string, opt Options) (*Mount, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	base, stop := context.WithCancel(context.Background())
	root, a, err := fs.Root(base)
	if err != nil {
		stop()
		return nil, fmt.Errorf("root: %w", err)
	}
	m := &Mount{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		opt:           opt, dir: dir, base: base, stop: stop, fsid: a.FSID,
		generation: uint64(time.Now().UnixNano()),
		nodes:      newNodes(root),
		callers:    callers{fs: fs, fixed: opt.Fixed, groups: groupsOf, seen: make(map[fuse.Caller]view)},
	}
	m.settle.init()
	if !opt.LocalPosix || !opt.LocalFlock {
		m.locker, _ = vfs.As[vfs.Locker](fs)
	}
	if err := m.start(); err != nil {
		stop()
		return nil, explain(err)
	}
	return m, nil
}

// start mounts, and has the kernel and go-fuse agree on how they speak.
func (m *Mount) start() (err error) {
	at := m.dir
	if os.Geteuid() != 0 {
		if missing(device) {
			return os.ErrNotExist
		}
		fd, err := mountAsUser(m.dir, m.userOptions())
		if err != nil {
			return err
		}
		at = fmt.Sprintf("/dev/fd/%d", fd) // as go-fuse wants it
	}
	if m.server, err = fuse.NewServer(m, at, m.options()); err != nil && at != m.dir {
		err = errors.Join(err, m.Unmount(true))
	}
	return err
}

// Locks reports which locks are the file system's, and not only the kernel's: those of fcntl(2), and of flock(2).
func (m *Mount) Locks() (posix, flock bool) {
	return m.locker != nil && !m.opt.LocalPosix, m.locker != nil && !m.opt.LocalFlock
}

// typeName is what the kernel calls the type of a mount, behind "fuse.".
const typeName = "nfsbox"

// device is by what the kernel asks.
const device = "/dev/fuse"

// options are those of the mount, as go-fuse has them.
func (m *Mount) options() *fuse.MountOptions {
	o := &fuse.MountOptions{
		FsName: strings.ReplaceAll(m.opt.Source, ",", "%2C"), Name: typeName,
		Options: m.opt.Kernel, AllowOther: m.opt.AllowOther,
		MaxWrite: maxTransfer, MaxReadAhead: maxTransfer, MaxBackground: maxBackground,
		DisableSplice: true, // a descriptor's READ of 1 MiB does not fit a pipe
		EnableLocks:   m.locker != nil,
		// Who writes by its own rights clears set-uid bits itself, as servers do; else each write(2) asks for them.
		ExtraCapabilities: fuse.CAP_ASYNC_DIO | fuse.CAP_HANDLE_KILLPRIV_V2 | fuse.CAP_DONT_MASK,
		Logger:            log.New(io.Discard, "", 0),
		PanicHandler: func(v any) fuse.Status {
			m.log(fmt.Sprintf("a fault of nfsbox: %v", v))
			return fuse.EIO
		},
	}
	switch m.opt.Plus {
	case PlusAuto:
		o.ExtraCapabilities |= fuse.CAP_READDIRPLUS_AUTO
	case PlusNever:
		o.DisabledCapabilities |= fuse.CAP_READDIRPLUS
	}
	if m.opt.LocalPosix {
		o.DisabledCapabilities |= fuse.CAP_POSIX_LOCKS
	}
	if m.opt.LocalFlock {
		o.DisabledCapabilities |= fuse.CAP_FLOCK_LOCKS
	}
	if os.Geteuid() == 0 {
		o.DirectMountStrict = true
		o.DirectMountFlags, o.Options = split(m.opt.Kernel)
	}
	return o
}

// explain says what to do about an error of mounting.
func explain(err error) error {
	_, told := errors.AsType[*RefusedError](err)
	switch {
	case missing(device):
		return fmt.Errorf("/dev/fuse is not there: load the module (modprobe fuse), or give it to the container (--device /dev/fuse --cap-add SYS_ADMIN): %w", err)
	case told, os.Geteuid() != 0:
		return err
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("mount(2): %w; in a container it takes CAP_SYS_ADMIN (--cap-add SYS_ADMIN)", err)
	}
	return fmt.Errorf("mount: %w", errors.New(strings.TrimSpace(err.Error())))
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}

// Serve answers the kernel until the directory is unmounted.
func (m *Mount) Serve() { m.server.Serve() }

// Wait waits until the kernel is answered. Serve runs meanwhile.
func (m *Mount) Wait() error {
	if err := m.server.WaitMount(); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return unpoll(m.dir)
	}
	m.widen()
	return nil
}

// unpoll has the kernel learn that files cannot be polled, which go-fuse says of a file of that name. Otherwise a process
// that uses its own mount, as tests do, could wait for itself.
func unpoll(dir string) error {
	fd, err := unix.Open(filepath.Join(dir, ".go-fuse-epoll-hack"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) // whatever the answer
	return unix.Close(fd)
}

// Unmount unmounts the directory: if it is in use that is EBUSY, but with lazy it disappears at once, and ends when
// nobody uses it any more.
func (m *Mount) Unmount(lazy bool) error { return Unmount(m.dir, lazy, false) }

// Unmount unmounts dir, whatever has mounted it. force ends what waits there, too.
func Unmount(dir string, lazy, force bool) error {
	if os.Geteuid() != 0 {
		args := []string{"-u", dir}
		if lazy || force {
			args = []string{"-u", "-z", dir}
		}
		path, err := fusermount()
		if err != nil {
			return err
		}
		out, err := exec.Command(path, args...).CombinedOutput()
		switch text := strings.TrimSpace(string(out)); {
		case err == nil:
			return nil
		case strings.Contains(text, "busy"):
			return &os.PathError{Op: "unmount", Path: dir, Err: unix.EBUSY}
		default:
			return fmt.Errorf("fusermount3: %s: %w", text, err)
		}
	}
	flags := unix.UMOUNT_NOFOLLOW
	if force {
		flags |= unix.MNT_FORCE
	}
	if lazy {
		flags |= unix.MNT_DETACH
	}
	err := unix.Unmount(dir, flags)
	if force && errors.Is(err, unix.EBUSY) {
		// Force has ended the file system, whoever uses it: what is left is a directory where nothing works.
		err = unix.Unmount(dir, flags|unix.MNT_DETACH)
	}
	if err != nil {
		return &os.PathError{Op: "unmount", Path: dir, Err: err}
	}
	return nil
}

// Drain follows Serve. It closes all files that the kernel has left open, and waits until the server has answered for
// all, or ctx ends: then what is not stable is given up. It says what was not.
func (m *Mount) Drain(ctx context.Context) Unfinished {
	for _, f := range m.files.all() {
		m.shut(f)
	}
	for _, d := range m.folders.all() {
		d.close()
	}
	u := Unfinished{Open: m.settle.drain(ctx)}
	_, before := m.settle.errors()
	m.stop() // ends what is left
	if u.Open > 0 {
		over, cancel := context.WithTimeout(context.Background(), settleAge)
		defer cancel()
		left := m.settle.drain(over) // their errors say how much
		_, failed := m.settle.errors()
		u.Open = left + failed - before // others have closed as well, and had nothing to lose
	}
	u.Errors, _ = m.settle.errors()
	return u
}

func (m *Mount) log(text string) {
	if m.opt.Log != nil {
		m.opt.Log(text)
	}
}

// String implements fuse.RawFileSystem.
func (m *Mount) String() string { return "nfsbox" }

// handles are the numbers by which the kernel knows what is open.
type handles[T any] struct {
	mu   sync.Mutex
	m    map[uint64]T
	next uint64
}

func (h *handles[T]) add(v T) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.m == nil {
		h.m = make(map[uint64]T)
	}
	h.next++
	h.m[h.next] = v
	return h.next
}

func (h *handles[T]) get(id uint64) (T, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, ok := h.m[id]
	return v, ok
}

func (h *handles[T]) take(id uint64) (T, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, ok := h.m[id]
	delete(h.m, id)
	if len(h.m) == 0 {
		h.m = nil // a map keeps the memory of its most entries
	}
	return v, ok
}

func (h *handles[T]) all() []T {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]T, 0, len(h.m))
	for _, v := range h.m {
		list = append(list, v)
	}
	h.m = nil
	return list
}
