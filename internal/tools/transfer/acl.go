package transfer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// groupBits are those of a mode that are the group's, or, under an access control
// list, the mask's.
const groupBits = 0o070

// maxListed bounds how many file systems knownACLs remembers. Objects of further ones
// are asked about each time.
const maxListed = 64

// firstList bounds how long a file system has for the first answer about a list. A
// server that knows no lists may leave the question without an answer; then it has
// none. Once it has answered, a list takes as long as any call.
const firstList = 10 * time.Second

// knownACLs are the file systems of a source that are known to have access control
// lists, or to have none.
type knownACLs struct {
	mu  sync.Mutex
	ids map[[2]uint64]bool
}

func (k *knownACLs) ask(a *vfs.Attr) (have, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	have, known = k.ids[a.FSID]
	return have, known && a.Has(vfs.MaskFSID)
}

func (k *knownACLs) learn(a *vfs.Attr, have bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ids == nil {
		k.ids = make(map[[2]uint64]bool)
	}
	if a.Has(vfs.MaskFSID) && len(k.ids) < maxListed && !k.ids[a.FSID] {
		k.ids[a.FSID] = have
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
	acl, err := o.list(ctx, f, src, a)
	if err != nil {
		return mode, false, err
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
	if masked || lost { // there is none without a mask, but a peer may say so
		mode &^= groupBits &^ ((group & mask & 7) << 3)
	}
	return mode, lost || len(acl.Default) > 0, nil
}

// list asks f for the lists of the source. Where there are none, they are empty.
func (o *Options) list(ctx context.Context, f vfs.ACLer, src *Source, a *vfs.Attr) (vfs.ACL, error) {
	have, _ := o.listed.ask(a)
	limited, cancel := ctx, context.CancelFunc(func() {})
	if !have {
		limited, cancel = context.WithTimeout(ctx, firstList)
	}
	defer cancel()
	acl, err := f.ACL(limited, src.Handle)
	silent := limited.Err() != nil && ctx.Err() == nil
	switch {
	case err == nil:
		o.listed.learn(a, true)
		return acl, nil
	case errors.Is(err, vfs.ErrNotSupp), silent:
		o.listed.learn(a, false)
		return vfs.ACL{}, nil
	case !have && (refused(err) || errors.Is(err, vfs.ErrServerFault)):
		return vfs.ACL{}, nil // as servers say that do not know the question
	}
	return vfs.ACL{}, &sourceError{err: fmt.Errorf("access control list of the source: %w", err)}
}

// acls is what knows the lists of the source, if it is worth asking.
func (o *Options) acls(src *Source, a *vfs.Attr) (vfs.ACLer, bool) {
	if a.Type == vfs.TypeSymlink || a.Mode&groupBits == 0 && a.Type != vfs.TypeDir {
		return nil, false
	}
	if have, known := o.listed.ask(a); known && !have {
		return nil, false
	}
	return vfs.As[vfs.ACLer](src.FS)
}

// DirMode is PlainMode of a directory. If that is gone, the error Is ErrVanished.
func (o *Options) DirMode(ctx context.Context, src *Source) (mode uint32, lost bool, err error) {
	mode, lost, err = o.PlainMode(ctx, src, &src.Attr)
	if movedOn(err) {
		err = fmt.Errorf("the %v %w: %w", src.Attr.Type, ErrVanished, err)
	}
	return mode, lost, err
}

// plainMode is PlainMode of what has the source's name.
func (s *Source) plainMode(ctx context.Context, o *Options) (mode uint32, lost bool, err error) {
	for n := 0; ; n++ {
		mode, lost, err = o.PlainMode(ctx, s, &s.Attr)
		if err == nil || s.Name == "" || n == maxLookups || !movedOn(err) {
			return mode, lost, err
		}
		if *s, err = s.again(ctx); err != nil {
			return mode, lost, err
		}
	}
}
