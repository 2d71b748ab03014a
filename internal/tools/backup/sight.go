package backup

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nfsbox/nfsbox/internal/base/posixacl"
	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxBlind bounds the file systems of which it is remembered that they have no lists, or extended attributes. Of further
// ones each object is asked.
const maxBlind = 1024

// sight is what of an object can be seen beside its attributes.
type sight struct {
	acl        vfs.ACLer   // nil: the tree has no lists
	xattr      vfs.Xattrer // likewise
	privileged bool

	mu    sync.Mutex
	blind [2]map[[2]uint64]struct{} // by file system: it has no lists; no extended attributes
}

const lists, xattrs = 0, 1

func (s *sight) begin(o *Options) {
	s.acl, _ = vfs.As[vfs.ACLer](o.FS)
	s.xattr, _ = vfs.As[vfs.Xattrer](o.FS)
	s.privileged = o.Privileged
	for i := range s.blind {
		s.blind[i] = make(map[[2]uint64]struct{})
	}
}

// looked says what was seen of each object: what one file system does not have another one, or a later version of it, may.
func (s *sight) looked() *snapshot.Looked {
	s.mu.Lock()
	defer s.mu.Unlock()
	attributes := s.xattr != nil && len(s.blind[xattrs]) == 0
	return &snapshot.Looked{ACLs: s.acl != nil && len(s.blind[lists]) == 0, Xattrs: attributes, Privileged: s.privileged, Special: attributes}
}

// cannot notes that the file system of a does not have what.
func (s *sight) cannot(what int, a *vfs.Attr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.blind[what]) < maxBlind && a.Has(vfs.MaskFSID) && (a.Type == vfs.TypeReg || a.Type == vfs.TypeDir) {
		s.blind[what][a.FSID] = struct{}{}
	}
}

// can reports whether an object may have what.
func (s *sight) can(what int, a *vfs.Attr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, not := s.blind[what][a.FSID]
	return !not
}

// dirExtra sets the lists and extended attributes of a directory. Those of one that has not changed are known.
func (r *run) dirExtra(ctx context.Context, d *delta.Dir, e *snapshot.Entry, there *vfs.Entry) error {
	if there != nil {
		from, h := r.was.source(&there.Handle)
		if from.same(&e.Attr, &there.Attr) {
			old, err := from.s.Entry(ctx, h)
			if err == nil && r.proof != nil {
				err = r.w.Whole(ctx, old)
			}
			if err == nil {
				e.Extra = old.Extra
				return nil
			}
			if errors.Is(err, snapshot.ErrDamaged) {
				r.was.tell(from, d.Path(""), err)
			}
		}
	}
	return r.extra(ctx, d.Handle, e)
}

// extra sets the lists and the extended attributes of an object. A symbolic link has no lists, and attributes as any.
func (r *run) extra(ctx context.Context, h vfs.Handle, e *snapshot.Entry) error {
	e.Extra = snapshot.Extra{}
	if e.Attr.Type != vfs.TypeSymlink {
		if err := r.lists(ctx, h, e); err != nil {
			return err
		}
	}
	if r.sight.xattr == nil || !r.sight.can(xattrs, &e.Attr) {
		return nil
	}
	names, err := r.sight.xattr.Xattrs(ctx, h)
	if errors.Is(err, vfs.ErrNotSupp) {
		r.sight.cannot(xattrs, &e.Attr)
		return nil
	}
	for _, name := range names {
		value, verr := r.sight.xattr.Xattr(ctx, h, name)
		if errors.Is(verr, vfs.ErrNoXattr) {
			continue // it was removed meanwhile
		}
		if verr != nil {
			return fmt.Errorf("extended attribute %q: %w", name, verr)
		}
		e.Extra.AddXattr(name, value)
	}
	if err != nil {
		return fmt.Errorf("extended attributes: %w", err)
	}
	return nil
}

// lists sets the access control lists of an object, if it has others than its mode.
func (r *run) lists(ctx context.Context, h vfs.Handle, e *snapshot.Entry) error {
	if r.sight.acl == nil || !r.sight.can(lists, &e.Attr) {
		return nil
	}
	acl, err := r.sight.acl.ACL(ctx, h)
	if errors.Is(err, vfs.ErrNotSupp) {
		r.sight.cannot(lists, &e.Attr)
		return nil
	}
	if err != nil {
		return fmt.Errorf("access control list: %w", err)
	}
	if !posixacl.Minimal(acl.Access) || len(acl.Default) > 0 {
		e.Extra.SetACL(acl)
	}
	return nil
}
