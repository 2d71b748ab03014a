package dir

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object/layout"
)

// temp is a new object that has no name, or a temporary one.
type temp struct {
	s    *Store
	in   *folder
	fd   int
	temp string
}

// newTemp makes a temp in the directory where it will stay: a rename from another
// directory would take a lock of the whole file system.
func (s *Store) newTemp(f *folder) (*temp, error) {
	if a, ok := s.sys.(Anonymous); ok && !s.named.Load() {
		fd, err := a.Tmpfile(f.fd, 0o600)
		if err == nil {
			return &temp{s: s, in: f, fd: fd}, nil
		}
		// Older kernels take O_TMPFILE for an open of a directory to write, and return
		// other errors (open(2), "BUGS").
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

// name gives t its name: by a link, which never replaces one, or by a rename, which does
// so atomically. For a rename, a file without a name first gets a temporary one.
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

// close closes t and removes its temporary name, if it still has one. If it gets no place
// at the gate, it does so without.
func (t *temp) close(ctx context.Context) error {
	if t.s.o.Gate.Enter(context.WithoutCancel(ctx), Meta) == nil {
		defer t.s.o.Gate.Leave(Meta)
	}
	if t.temp != "" {
		if err := t.s.sys.Unlinkat(t.in.fd, t.temp, 0); err != nil {
			// The file stays until a sweep removes it.
			t.s.counts.left.Add(1)
		}
	}
	return fail("close", unix.Close(t.fd))
}

// isTemp reports whether name is a temporary one, and whether it is of this opening of the
// store.
func (s *Store) isTemp(name string) (temp, own bool) {
	return layout.IsTemp(name), strings.HasPrefix(name, s.own)
}
