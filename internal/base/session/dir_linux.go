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

// systemDir is the directory of root's servers. Only root can make an entry in /run, so root
// has given this directory to its owner.
const systemDir = "/run/nfsbox"

// Dirs are the directories in which clients look for servers by default: /run/nfsbox and
// $XDG_RUNTIME_DIR/nfsbox.
func Dirs() []string {
	if d := userDir(); d != "" {
		return []string{systemDir, d}
	}
	return []string{systemDir}
}

// DefaultDir is the directory in which a server listens by default: /run/nfsbox for root,
// $XDG_RUNTIME_DIR/nfsbox for other users; "" if the user has no such directory.
func DefaultDir() string {
	if unix.Geteuid() == 0 {
		return systemDir
	}
	return userDir()
}

func userDir() string {
	d := os.Getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(d) { // the specification says to ignore such a value
		return ""
	}
	return filepath.Join(d, "nfsbox")
}

// dir is a directory of sockets that was checked.
type dir struct {
	fd    int
	owner uint32
}

// openDir opens a directory into which only its owner can put sockets. flags are further ones
// of open(2).
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
	// The variable may come from another user's environment (su, sudo).
	if path == userDir() && !d.trusts(st.Uid, false) {
		return refused("%s belongs to uid %d", path, st.Uid)
	}
	return nil
}

// trusts reports whether a socket of uid in d may be used: root's, our own user's or, if owner
// is set, that of d's owner.
func (d *dir) trusts(uid uint32, owner bool) bool {
	return uid == 0 || uid == uint32(unix.Geteuid()) || owner && uid == d.owner
}

// path is a path to an entry of d whose length does not depend on d's.
func (d *dir) path(name string) string { return "/proc/self/fd/" + strconv.Itoa(d.fd) + "/" + name }

func (d *dir) close() error {
	if err := unix.Close(d.fd); err != nil {
		return fmt.Errorf("localio: closing a directory: %w", err)
	}
	return nil
}
