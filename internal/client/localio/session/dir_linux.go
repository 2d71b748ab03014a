package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// systemDir is where the servers of root are. /run is root's, so that the owner
// of this directory was given it.
const systemDir = "/run/nfsbox"

// Dirs is where clients look for servers that they were not told the directory
// of: /run/nfsbox and $XDG_RUNTIME_DIR/nfsbox.
func Dirs() []string {
	if d := userDir(); d != "" {
		return []string{systemDir, d}
	}
	return []string{systemDir}
}

// DefaultDir is where a server listens that was not told where: root's in
// /run/nfsbox, others in $XDG_RUNTIME_DIR/nfsbox. "": the user has no such
// directory.
func DefaultDir() string {
	if unix.Geteuid() == 0 {
		return systemDir
	}
	return userDir()
}

func userDir() string {
	d := os.Getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(d) { // the specification has such a value ignored
		return ""
	}
	return filepath.Join(d, "nfsbox")
}

// dir is a directory of sockets that was looked at.
type dir struct {
	fd    int
	owner uint32
}

// openDir opens a directory, which has to be one that only its owner can put
// sockets into. flags are further ones of open(2).
func openDir(path string, flags int) (*dir, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "localio: open", Path: path, Err: err}
	}
	d := &dir{fd: fd}
	if err := d.check(path); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *dir) check(path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(d.fd, &st); err != nil {
		return &fs.PathError{Op: "localio: stat", Path: path, Err: err}
	}
	d.owner = st.Uid
	if st.Mode&0o022 != 0 {
		return refused("%s can be written by others (mode %#o): take that from them (chmod go-w), or name another directory", path, st.Mode&0o7777)
	}
	// The environment may have come along from another user (su, sudo).
	if path == userDir() && !d.trusts(st.Uid, false) {
		return refused("%s belongs to uid %d", path, st.Uid)
	}
	return nil
}

// trusts reports whether a socket of uid in d may be what it says: root's, our
// own or, if owner, that of the owner of d.
func (d *dir) trusts(uid uint32, owner bool) bool {
	return uid == 0 || uid == uint32(unix.Geteuid()) || owner && uid == d.owner
}

// path is a path to an entry of d, however long that of d is.
func (d *dir) path(name string) string { return "/proc/self/fd/" + strconv.Itoa(d.fd) + "/" + name }

func (d *dir) close() error {
	if err := unix.Close(d.fd); err != nil {
		return fmt.Errorf("localio: closing a directory: %w", err)
	}
	return nil
}
