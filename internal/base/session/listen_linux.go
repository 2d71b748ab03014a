package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/proto/localio"
)

// maxSwept is how many sockets of a directory a new server checks for those of killed servers.
// At the bound the rest is left to the next server.
const maxSwept = 1024

// Listener is a server's socket. All methods may be called concurrently.
type Listener struct {
	l    *net.UnixListener
	dir  *dir
	path string // of the directory
	name string
	ino  uint64 // of the socket

	once     sync.Once
	closeErr error
}

// Listen makes a server's socket in a directory. It makes the directory, if its parent exists,
// and removes what killed servers of the same user have left there. Every user may connect. The
// UUID is random, so that no two servers have the same.
func Listen(path string, uuid [localio.UUID_SIZE]byte) (*Listener, error) {
	d, err := makeDir(path)
	if err != nil {
		return nil, err
	}
	l := &Listener{dir: d, path: path, name: FormatUUID(uuid) + suffix}
	if err := l.listen(); err != nil {
		return nil, errors.Join(err, d.close())
	}
	if err := d.sweep(path, l.name); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// makeDir opens a directory, and makes it if necessary.
func makeDir(path string) (*dir, error) {
	err := os.Mkdir(path, 0o700)
	switch {
	case err == nil:
		return openMade(path)
	case errors.Is(err, fs.ErrExist):
		return openDir(path, 0)
	}
	return nil, fmt.Errorf("localio: %w", err)
}

// openMade opens a directory that was just made, and lets all users enter it, whatever the
// umask. If another user has replaced it since, it is not changed: it could be any directory of
// ours.
func openMade(path string) (*dir, error) {
	d, err := openDir(path, unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	if d.owner != uint32(unix.Geteuid()) {
		return nil, errors.Join(refused("%s is another's as soon as it is made (uid %d)", path, d.owner), d.close())
	}
	if err := unix.Fchmod(d.fd, 0o755); err != nil {
		return nil, errors.Join(&fs.PathError{Op: "localio: chmod", Path: path, Err: err}, d.close())
	}
	return d, nil
}

// listen binds the socket under a temporary name, and renames it once it listens: a socket
// without a listener counts as dead.
func (l *Listener) listen() error {
	bound := l.name + ".new"
	var how net.ListenConfig
	how.Control = func(_, _ string, c syscall.RawConn) error { return takeNoRights(c) }
	nl, err := how.Listen(context.Background(), network, l.dir.path(bound)) // does not block
	if err != nil {
		return fmt.Errorf("localio: %s/%s: %w", l.path, bound, err)
	}
	ul := nl.(*net.UnixListener)
	ul.SetUnlinkOnClose(false)
	var st unix.Stat_t
	err = unix.Fchmodat(l.dir.fd, bound, 0o666, 0)
	if err == nil {
		err = unix.Fstatat(l.dir.fd, bound, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil {
		err = unix.Renameat(l.dir.fd, bound, l.dir.fd, l.name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("localio: %s/%s: %w", l.path, bound, err), unix.Unlinkat(l.dir.fd, bound, 0), ul.Close())
	}
	l.l, l.ino = ul, st.Ino
	return nil
}

// takeNoRights has the kernel refuse descriptors that a process sends to a socket, or to one
// that it accepts. Kernels before Linux 6.16 cannot, and drop them when they are received: see
// the package.
func takeNoRights(c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0) })
	if err == nil && !errors.Is(set, unix.ENOPROTOOPT) {
		err = set
	}
	return err
}

// sweep removes our own user's sockets without a listener.
func (d *dir) sweep(path, except string) error {
	f, err := os.Open(d.path("."))
	if err != nil {
		return fmt.Errorf("localio: %w", err)
	}
	names, err := f.Readdirnames(maxSwept)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("localio: listing %s: %w", path, err)
	}
	for _, name := range names {
		if name == except || !strings.HasSuffix(name, suffix) || !d.dead(name) {
			continue
		}
		// Another new server may have been faster.
		if err := unix.Unlinkat(d.fd, name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("localio: removing %s/%s, a dead server's socket: %w", path, name, err)
		}
	}
	return nil
}

// dead reports whether an entry is our own user's socket without a listener.
func (d *dir) dead(name string) bool {
	var st unix.Stat_t
	if err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil ||
		st.Mode&unix.S_IFMT != unix.S_IFSOCK || st.Uid != uint32(unix.Geteuid()) {
		return false
	}
	c, err := net.DialUnix(network, nil, &net.UnixAddr{Name: d.path(name), Net: network})
	if err == nil {
		// The server sees a client that disconnects at once.
		_ = c.Close()
	}
	return errors.Is(err, unix.ECONNREFUSED)
}

// Path is the path of the socket.
func (l *Listener) Path() string { return filepath.Join(l.path, l.name) }

// Accept waits for the next client. After Close the error is net.ErrClosed. Others, such as a
// lack of descriptors, may be temporary.
func (l *Listener) Accept() (*Conn, error) {
	c, err := l.l.AcceptUnix()
	if err != nil {
		return nil, fmt.Errorf("localio: %w", err)
	}
	return newConn(c, true)
}

// Close stops listening and removes the socket. It may be called several times.
func (l *Listener) Close() error {
	l.once.Do(func() { l.closeErr = errors.Join(l.remove(), l.l.Close(), l.dir.close()) })
	return l.closeErr
}

// remove removes the socket, unless it is gone or its name is another socket's.
func (l *Listener) remove() error {
	var st unix.Stat_t
	err := unix.Fstatat(l.dir.fd, l.name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && st.Ino == l.ino {
		err = unix.Unlinkat(l.dir.fd, l.name, 0)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("localio: removing %s: %w", l.Path(), err)
	}
	return nil
}
