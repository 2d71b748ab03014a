package mounter

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/fusefs"
	"github.com/nfsbox/nfsbox/internal/tools/place"
)

// standPatience is how long a mount that stands in the way may take to say whether its process lives. One that is silent
// for longer lives: its server does not answer.
const standPatience = 5 * time.Second

// usage is an error of the arguments, and what to do about it.
type usage struct {
	error
	advice string
}

func (usage) Is(target error) bool { return target == place.ErrUsage }
func (e usage) Unwrap() error      { return e.error }

// Advice is what to do; "" if the text says it all.
func (e usage) Advice() string { return e.advice }

// CheckDir returns the absolute path of DIR, which has to be a directory on which no nfsbox is mounted. A mount whose
// process has died is taken away, unless look says only to look. What is wrong with DIR is place.ErrUsage; a mount that
// lives is an error of its own, and one that cannot be taken away a SystemError.
func CheckDir(dir string, look bool, note func(string)) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", usage{error: err}
	}
	if resolved, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(resolved, filepath.Base(abs))
	}
	if stays, err := makeRoom(abs, look, note); stays || err != nil {
		return abs, err
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", usage{&os.PathError{Op: "mount at", Path: abs, Err: syscall.ENOENT}, "make the directory first: mkdir -p DIR"}
	case errors.Is(err, syscall.ENOTCONN):
		return "", usage{fmt.Errorf("%s: what was mounted there has died: %w", abs, err), "unmount it first: umount -l DIR"}
	case err != nil:
		return "", usage{error: err}
	case !info.IsDir():
		return "", usage{&os.PathError{Op: "mount at", Path: abs, Err: syscall.ENOTDIR}, "DIR is where the files are to appear: an existing directory, such as one made by mkdir"}
	}
	real, err := filepath.EvalSymlinks(abs) // the kernel knows no other name
	if err != nil || real == abs {
		return abs, nil
	}
	_, err = makeRoom(real, look, note)
	return real, err
}

// makeRoom makes room at dir: a mount whose process has died is taken away, or stays for now, and one that lives is in the
// way.
func makeRoom(dir string, look bool, note func(string)) (stays bool, err error) {
	at := mountedAt(dir)
	if at.kind != fuseType {
		return false, nil
	}
	if at.lives(dir) {
		return false, fmt.Errorf("%s: an nfsbox of user %d is mounted there already; nfsbox umount takes it away", dir, at.user)
	}
	if look {
		note("a mount whose process has died will be taken away from " + dir)
		return true, nil
	}
	if at.others() {
		return false, fmt.Errorf("%s: the nfsbox of user %d is mounted there, and its process has died; that user or root can take it away (umount -l %s)", dir, at.user, dir)
	}
	if err := fusefs.Unmount(dir, true, false); err != nil {
		return false, &SystemError{fmt.Errorf("a mount whose process has died is in the way: %w; try umount -l %s", err, dir)}
	}
	note("a mount whose process had died was taken away from " + dir)
	return false, nil
}

// others reports whether this process may not unmount it.
func (p mountPoint) others() bool { return os.Geteuid() != 0 && os.Geteuid() != p.user }

// lives reports whether the process of the nfsbox at dir answers the kernel. The mount of a user lets nobody else in, root
// neither. So a process of that user would have to be started in it: where the mount is dead that is ENOTCONN.
func (p mountPoint) lives(dir string) bool {
	if c := ask(socketPath(dir), standPatience); c != nil {
		_ = c.Close() // nothing was asked
		return true
	}
	dead := make(chan bool, 1)
	go func() {
		probe := exec.Cmd{Path: os.DevNull, Dir: dir, SysProcAttr: p.asUser()} // which is no program
		dead <- errors.Is(probe.Start(), syscall.ENOTCONN)
	}()
	select {
	case is := <-dead:
		return !is
	case <-time.After(standPatience):
		return true
	}
}
