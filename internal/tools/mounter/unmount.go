package mounter

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/nfsbox/nfsbox/internal/tools/fusefs"
)

// Unmounting says how to unmount.
type Unmounting struct {
	Lazy  bool // the directory disappears at once, and the mount ends when nobody uses it any more
	Force bool // what waits there ends with an error, and what is not stable is given up
}

// Unmount unmounts the nfsbox at dir, and waits until it has ended, unless lazily. It touches nothing below dir, so it
// does not wait for the server. A mount that another mount namespace has as well (a container's, a service's) is waited
// for no longer than busyPatience. The report is nil if the mount could not be asked, or is not waited for.
func Unmount(ctx context.Context, dir string, how Unmounting) (*Report, error) {
	abs, err := named(dir)
	if err != nil {
		return nil, usage{error: err}
	}
	switch at := mountedAt(abs); {
	case at.kind == "":
		return nil, usage{error: fmt.Errorf("%s: nothing is mounted there", abs)}
	case at.kind != fuseType:
		return nil, usage{error: fmt.Errorf("%s: a file system of type %s is mounted there, and no nfsbox; use umount", abs, at.kind)}
	case at.others():
		return nil, usage{error: fmt.Errorf("%s: user %d has mounted it; only that user and root can unmount it", abs, at.user)}
	}
	c := ask(socketPath(abs), tellPatience)
	if c != nil {
		defer func() { _ = c.Close() }() // it was read to the end
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	}
	if err := fusefs.Unmount(abs, how.Lazy, how.Force); err != nil {
		if errors.Is(err, syscall.EBUSY) {
			err = fmt.Errorf("%w; lsof or fuser -m says who uses it, and -l lets it go all the same", err)
		}
		return nil, err
	}
	if c == nil || how.Lazy && !how.Force {
		return nil, nil
	}
	words := []byte{leftWord}
	if how.Force {
		words = append(words, hurryWord)
	}
	_, _ = c.Write(words) // a mount that has ended is read below
	r, err := hear(c)
	if ctx.Err() != nil {
		err = fmt.Errorf("it is unmounted, but its process may still send what is not stable: %w", ctx.Err())
	}
	return r, err
}

// named is the absolute path of dir. Links on the way are followed, but dir itself is not looked at.
func named(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if mountedAt(abs).kind != "" {
		return abs, nil
	}
	up, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", err
	}
	if at := filepath.Join(up, filepath.Base(abs)); mountedAt(at).kind != "" {
		return at, nil
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", err
	}
	return real, nil
}
