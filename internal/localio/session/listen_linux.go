package session

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/proto/localio"
)

// maxSwept is how many sockets of a directory a new server looks at, for those of
// servers that were killed. More are left to the next.
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

// Listen makes the socket of a server in a directory, which is made, too, if only
// its parent is there, and removes what killed servers of the same user have left
// there. Every user may connect. The UUID is random, for no two servers to have
// the same.
func Listen(path string, uuid [localio.UUID_SIZE]byte) (*Listener, error) {
	if err := makeDir(path); err != nil {
		return nil, err
	}
	d, err := openDir(path)
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

// makeDir makes a directory that all may enter, whatever the umask.
func makeDir(path string) error {
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = os.Chmod(path, 0o755)
	}
	if err != nil {
		return fmt.Errorf("localio: %w", err)
	}
	return nil
}

// listen binds the socket under another name, which it changes when there is
// somebody listening: a socket at which nobody listens is a dead one.
func (l *Listener) listen() error {
	bound := l.name + ".new"
	ul, err := net.ListenUnix(network, &net.UnixAddr{Name: l.dir.path(bound), Net: network})
	if err != nil {
		return fmt.Errorf("localio: %s/%s: %w", l.path, bound, err)
	}
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

// sweep removes the sockets of our own user at which nobody listens.
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

// dead reports whether an entry is a socket of our own user at which nobody
// listens.
func (d *dir) dead(name string) bool {
	var st unix.Stat_t
	if err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil ||
		st.Mode&unix.S_IFMT != unix.S_IFSOCK || st.Uid != uint32(unix.Geteuid()) {
		return false
	}
	c, err := net.DialUnix(network, nil, &net.UnixAddr{Name: d.path(name), Net: network})
	if err == nil {
		// The peer sees a client who thinks better of it.
		_ = c.Close()
	}
	return errors.Is(err, unix.ECONNREFUSED)
}

// Path is the path of the socket.
func (l *Listener) Path() string { return filepath.Join(l.path, l.name) }

// Accept waits for the next client. Once the listener is closed the error is
// net.ErrClosed; of others, such as a lack of descriptors, some pass.
func (l *Listener) Accept() (*Conn, error) {
	c, err := l.l.AcceptUnix()
	if err != nil {
		return nil, fmt.Errorf("localio: %w", err)
	}
	return newConn(c, true)
}

// Close ends the listening and removes the socket. It may be called several times.
func (l *Listener) Close() error {
	l.once.Do(func() { l.closeErr = errors.Join(l.remove(), l.l.Close(), l.dir.close()) })
	return l.closeErr
}

// remove removes the socket, unless its name is another's by now, or it is gone.
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
