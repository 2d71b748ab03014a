package dir

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// temp is a new object that has no name, or a temporary one.
type temp struct {
	s    *Store
	in   *folder
	fd   int
	temp string
}

// newTemp makes one in the directory where it is to stay: to move a name from
// another directory would take a lock of the whole file system.
func (s *Store) newTemp(f *folder) (*temp, error) {
	if a, ok := s.sys.(Anonymous); ok && !s.named.Load() {
		fd, err := a.Tmpfile(f.fd, 0o600)
		if err == nil {
			return &temp{s: s, in: f, fd: fd}, nil
		}
		// Older kernels take it for a directory that is to be written, and have
		// other errors for that (open(2), "BUGS").
		if !isOneOf(err, unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL) {
			return nil, fail("open", err)
		}
		s.named.Store(true)
	}
	t := &temp{s: s, in: f, temp: s.tempName()}
	var err error
	t.fd, err = s.sys.Openat(f.fd, t.temp, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o600)
	if err != nil {
		return nil, fail("open", err)
	}
	return t, nil
}

// name gives t its name. What only makes a name, and never replaces one, is a
// link; what replaces one in one step is a rename, for which a file without a name
// gets a temporary one.
func (t *temp) name(name string, ifAbsent bool) error {
	sys, dir := t.s.sys, t.in.fd
	if ifAbsent || t.temp == "" {
		err := sys.Linkat(t.fd, dir, name)
		if err == nil || ifAbsent || !errors.Is(err, unix.EEXIST) {
			return fail("link", err)
		}
		to := t.s.tempName()
		if err := sys.Linkat(t.fd, dir, to); err != nil {
			return fail("link", err)
		}
		t.temp = to
	}
	if err := sys.Renameat(dir, t.temp, dir, name); err != nil {
		return fail("rename", err)
	}
	t.temp = ""
	return nil
}

// close closes t and removes its temporary name, if it still has one. That is
// done with a place at the gate if there is one to be had, and else without.
func (t *temp) close(ctx context.Context) error {
	if t.s.o.Gate.Enter(context.WithoutCancel(ctx), Meta) == nil {
		defer t.s.o.Gate.Leave(Meta)
	}
	if t.temp != "" {
		if err := t.s.sys.Unlinkat(t.in.fd, t.temp, 0); err != nil {
			// It does no harm where it is, until a sweep finds it.
			t.s.counts.left.Add(1)
		}
	}
	return fail("close", unix.Close(t.fd))
}

// isTemp reports whether name is a temporary one, and of this very store.
func (s *Store) isTemp(name string) (temp, own bool) {
	return strings.HasPrefix(name, tempMark), strings.HasPrefix(name, s.own)
}
