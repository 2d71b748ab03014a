package transfer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// groupBits are those of a mode that are the group's, or, under an access control
// list, the mask's.
const groupBits = 0o070

// maxWithout bounds how many file systems withoutACLs remembers. Objects of further
// ones are asked about each time.
const maxWithout = 64

// withoutACLs are the file systems of a source that are known to have no access
// control lists.
type withoutACLs struct {
	mu  sync.Mutex
	ids map[[2]uint64]struct{}
}

func (w *withoutACLs) know(a *vfs.Attr) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.ids[a.FSID]
	return ok && a.Has(vfs.MaskFSID)
}

func (w *withoutACLs) learn(a *vfs.Attr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ids == nil {
		w.ids = make(map[[2]uint64]struct{})
	}
	if a.Has(vfs.MaskFSID) && len(w.ids) < maxWithout {
		w.ids[a.FSID] = struct{}{}
	}
}

// PlainMode is the mode that an object shall have where its access control list
// does not come along: what a mode shows as the group's rights is, under a list,
// the most that anyone named in it has (acl(5)); the group's own are in the list.
// Nobody has more rights than before. lost says that the list names somebody else,
// or that what is made in the directory would begin with another one.
//
// a are the object's attributes. It is asked about only if that can make a
// difference: a mode without rights of the group is what it seems, unless it is of
// a directory.
func (o *Options) PlainMode(ctx context.Context, src *Source, a *vfs.Attr) (mode uint32, lost bool, err error) {
	mode = a.Mode & 0o7777
	f, ok := o.acls(src, a)
	if !ok {
		return mode, false, nil
	}
	acl, err := f.ACL(ctx, src.Handle)
	switch {
	case errors.Is(err, vfs.ErrNotSupp):
		o.without.learn(a)
		return mode, false, nil
	case err != nil && refused(err):
		return mode, false, nil
	case err != nil:
		return mode, false, &sourceError{err: fmt.Errorf("access control list of the source: %w", err)}
	}
	var group uint32
	mask, masked := uint32(7), false
	for _, e := range acl.Access {
		switch e.Tag {
		case vfs.ACLGroupObj:
			group = e.Perm
		case vfs.ACLMask:
			mask, masked = e.Perm, true
		case vfs.ACLUser, vfs.ACLGroup:
			lost = true
		}
	}
	if masked || lost {
		mode &^= groupBits &^ ((group & mask & 7) << 3)
	}
	return mode, lost || len(acl.Default) > 0, nil
}

// acls is what knows the lists of the source, if it is worth asking.
func (o *Options) acls(src *Source, a *vfs.Attr) (vfs.ACLer, bool) {
	isDir := a.Type == vfs.TypeDir
	if a.Type == vfs.TypeSymlink || a.Mode&groupBits == 0 && !isDir || o.without.know(a) {
		return nil, false
	}
	return vfs.As[vfs.ACLer](src.FS)
}

// Dir gives the directory h of f the attributes of src, which src.Attr are. have are
// h's, as far as they are known. It returns h's attributes afterwards, as far as the
// peer sent them.
func Dir(ctx context.Context, src Source, f vfs.FS, h vfs.Handle, have *vfs.Attr, o *Options) (after vfs.Attr, lost Lost, err error) {
	want := src.Attr
	var acl bool
	if want.Has(vfs.MaskMode) {
		want.Mode, acl, err = o.PlainMode(ctx, &src, &want)
		if movedOn(err) {
			err = fmt.Errorf("%w: %w", ErrVanished, err)
		}
		if err != nil {
			return after, lost, err
		}
	}
	after, lost, err = SetAttrs(ctx, f, h, &want, have, o.Owners)
	lost.ACL = acl
	return after, lost, err
}
