package dir

import (
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object/layout"
)

// eachName calls f with every name in a folder, in no order, and stops at its
// first error. What comes or goes meanwhile may be among them or not. Each has a
// place of its own in the folder's list, so several may read one at once.
func (s *Store) eachName(d *folder, f func(name string) error) (err error) {
	fd, err := openFolder(d.fd, ".")
	if err != nil {
		return fail("open", err)
	}
	list := os.NewFile(uintptr(fd), d.path)
	defer func() { err = errors.Join(err, list.Close()) }()
	for {
		names, err := list.Readdirnames(listBatch)
		for _, name := range names {
			if err := f(name); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fail("getdents", err)
		}
	}
}

// names returns the smallest n names in a folder that pass keep, sorted, and
// whether there are others that do.
func (s *Store) names(d *folder, n int, keep func(name string) bool) ([]string, bool, error) {
	l := layout.Least[string]{N: n, Compare: strings.Compare}
	err := s.eachName(d, func(name string) error {
		if keep(name) {
			l.Add(name)
		}
		return nil
	})
	l.Cut()
	return l.All, l.Left, err
}

// lstat looks at what name itself stands for.
func lstat(d *folder, name string) (st unix.Stat_t, err error) {
	err = again(func() error { return unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, err
}
