package transfer

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/nfsbox/nfsbox/vfs"
)

// ErrSame says that a symbolic link leads to what it would replace.
var ErrSame = errors.New("the link leads to the very object that it would replace")

// errOutside says that a link leads out of the file system, where it cannot be followed.
var errOutside = errors.New("it leads out of what is copied from, and may lead to what has its name in the destination; move or remove that")

// Follower is an FS that knows where its links lead, out of its tree, too.
type Follower interface {
	// Follow returns the attributes of what name in dir leads to, as stat(2) does.
	Follow(ctx context.Context, dir vfs.Handle, name string) (vfs.Attr, error)
}

// LeadsTo reports whether the symbolic link that has the source's name leads to the object
// with the attributes there, which may come from another file system. With an error it is
// not known. A link that leads nowhere leads to nothing that could be lost.
func (s *Source) LeadsTo(ctx context.Context, there *vfs.Attr) (bool, error) {
	to, err := s.follow(ctx)
	for _, none := range [...]error{vfs.ErrNoEnt, vfs.ErrNotDir, vfs.ErrStale, vfs.ErrNameTooLong, syscall.ELOOP} {
		if errors.Is(err, none) {
			return false, nil
		}
	}
	if err != nil {
		return false, fmt.Errorf("follow the link: %w", err)
	}
	// Each may have a file system id of its own for it.
	const id = vfs.MaskFileID | vfs.MaskCtime
	return to.Has(id) && there.Has(id) && to.FileID == there.FileID && to.Ctime.Equal(there.Ctime), nil
}

// Spares is nil if the symbolic link may replace h, an object of f. If the link leads to h,
// replacing h would take its name and leave a link to itself: the error Is ErrSame.
func (s *Source) Spares(ctx context.Context, f vfs.FS, h vfs.Handle, attr *vfs.Attr) error {
	if attr.Type == vfs.TypeSymlink || attr.Type == vfs.TypeDir || s.Name == "" {
		return nil // no contents are lost, or it is not replaced
	}
	if !attr.Has(vfs.MaskFileID | vfs.MaskCtime) {
		var err error
		if *attr, err = f.GetAttr(ctx, h, vfs.MaskV3); err != nil {
			return fmt.Errorf("getattr: %w", err)
		}
	}
	same, err := s.LeadsTo(ctx, attr)
	if err == nil && same {
		err = ErrSame
	}
	return err
}

// follow returns the attributes of what the source's name leads to.
func (s *Source) follow(ctx context.Context) (vfs.Attr, error) {
	if f, ok := vfs.As[Follower](s.FS); ok {
		return f.Follow(ctx, s.Dir, s.Name)
	}
	r, err := vfs.Resolve(ctx, vfs.Inside(s.FS), s.Dir, s.Name, true)
	if errors.Is(err, vfs.ErrOutside) {
		err = errOutside
	}
	if err != nil {
		return vfs.Attr{}, err
	}
	if r.Attr.Has(vfs.MaskFileID | vfs.MaskCtime) {
		return r.Attr, nil
	}
	return s.FS.GetAttr(ctx, r.Handle, vfs.MaskV3)
}
