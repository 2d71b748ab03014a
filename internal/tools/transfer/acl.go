package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/posixacl"
	"github.com/nfsbox/nfsbox/vfs"
)

// groupBits are those of a mode that are the group's, or, under an access control
// list, the mask's.
const groupBits = 0o070

const otherBits = 0o007

// maxListed bounds how many file systems knownACLs remembers. Objects of further ones
// are asked about each time.
const maxListed = 64

// firstList bounds how long a file system has for the first answer about a list. A
// server that knows no lists may leave the question without an answer; then it has
// none. Once it has answered, a list takes as long as any call.
const firstList = 10 * time.Second

// knownACLs are the file systems of a source, or of a destination, that are known to have
// access control lists, or to have none.
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

// Lists are the access control lists of an object, as far as a copy needs them.
type Lists struct {
	// Mode is the mode that the object shall have where the lists do not come along. What
	// a mode shows as the group's rights is, under a list, the most that anyone named in
	// it has (acl(5)); the group's own are in the list. Somebody who is named is one of
	// the group or of the others without it, so neither has more than the least of those
	// who are named. Nobody has more rights than before.
	Mode uint32
	// Named says that this takes something away: a list names somebody else, or what is
	// made in the directory would begin with another one.
	Named bool
	// ACL are the lists; without an access list, Mode says all that there is.
	ACL vfs.ACL
}

// Some reports whether there are lists that the mode does not tell.
func (l *Lists) Some() bool { return len(l.ACL.Access) > 0 }

// Lists asks for the lists of the source, whose attributes are a. It asks only if they can
// make a difference: a mode with rights of the owner alone is what it seems, unless it is of a
// directory.
func (o *Options) Lists(ctx context.Context, src *Source, a *vfs.Attr) (Lists, error) {
	l, err := o.listed.lists(ctx, src, a)
	if err != nil {
		err = &sourceError{err: fmt.Errorf("access control list of the source: %w", err)}
	}
	return l, err
}

// lists are the Lists of src, whose file system is one of k.
func (k *knownACLs) lists(ctx context.Context, src *Source, a *vfs.Attr) (Lists, error) {
	l := Lists{Mode: a.Mode & 0o7777}
	f, ok := k.worth(src, a)
	if !ok {
		return l, nil
	}
	acl, _, err := k.list(ctx, f, src.Handle, a)
	if err == nil {
		l.read(acl)
	}
	return l, err
}

// CompareLists returns the lists of a, and of b in the destination, and whether they are the same.
// A list under a mode with rights of the owner alone gives nobody anything, and counts as none.
func (o *Options) CompareLists(ctx context.Context, a, b *Source) (in, out Lists, same bool, err error) {
	if in, err = o.Lists(ctx, a, &a.Attr); err != nil {
		return in, out, false, err
	}
	if out, err = o.holds.lists(ctx, b, &b.Attr); err != nil {
		return in, out, false, fmt.Errorf("access control list of the destination: %w", err)
	}
	return in, out, in.Some() == out.Some() && SameLists(in.ACL, out.ACL), nil
}

// read takes the lists of an object whose mode is l.Mode. Some servers add a mask that takes
// nothing away to what has no list of its own.
func (l *Lists) read(acl vfs.ACL) {
	var group uint32
	mask, masked := uint32(7), false
	users, groups, named := uint32(7), uint32(7), false // the least that one of them has
	for _, e := range acl.Access {
		switch e.Tag {
		case vfs.ACLGroupObj:
			group = e.Perm
		case vfs.ACLMask:
			mask, masked = e.Perm, true
		case vfs.ACLUser:
			users, named = users&e.Perm, true
		case vfs.ACLGroup:
			groups, named = groups&e.Perm, true
		}
	}
	if masked || named { // there is none without a mask, but a peer may say so
		l.Mode &^= groupBits &^ ((group & users & mask & 7) << 3)
	}
	if named {
		l.Mode &^= otherBits &^ (users & groups & mask)
	}
	if l.Named = named || len(acl.Default) > 0; l.Named || masked && mask != group {
		l.ACL = acl
	}
}

// list asks f for the lists of h, whose attributes are a. Where there are none, they are empty,
// and has is false.
func (k *knownACLs) list(ctx context.Context, f vfs.ACLer, h vfs.Handle, a *vfs.Attr) (acl vfs.ACL, has bool, err error) {
	have, _ := k.ask(a)
	limited, cancel := ctx, context.CancelFunc(func() {})
	if !have {
		limited, cancel = context.WithTimeout(ctx, firstList)
	}
	defer cancel()
	acl, err = f.ACL(limited, h)
	silent := limited.Err() != nil && ctx.Err() == nil
	switch {
	case err == nil && len(acl.Access) == 0: // as servers say that have none, whatever they answer
		return vfs.ACL{}, false, nil
	case err == nil:
		k.learn(a, true)
		return acl, true, nil
	case errors.Is(err, vfs.ErrNotSupp), silent:
		k.learn(a, false)
		return vfs.ACL{}, false, nil
	case !have && (refused(err) || errors.Is(err, vfs.ErrServerFault)):
		return vfs.ACL{}, false, nil // as servers say that do not know the question
	}
	return vfs.ACL{}, false, err
}

// worth is what knows the lists of src, if it is worth asking.
func (k *knownACLs) worth(src *Source, a *vfs.Attr) (vfs.ACLer, bool) {
	if a.Type == vfs.TypeSymlink || a.Mode&(groupBits|otherBits) == 0 && a.Type != vfs.TypeDir {
		return nil, false
	}
	if have, known := k.ask(a); known && !have {
		return nil, false
	}
	return vfs.As[vfs.ACLer](src.FS)
}

// DirLists are the Lists of a directory. If that is gone, the error Is ErrVanished.
func (o *Options) DirLists(ctx context.Context, src *Source) (Lists, error) {
	l, err := o.Lists(ctx, src, &src.Attr)
	if movedOn(err) {
		err = fmt.Errorf("the %v %w: %w", src.Attr.Type, ErrVanished, err)
	}
	return l, err
}

// lists are those of what has the source's name.
func (s *Source) lists(ctx context.Context, o *Options) (l Lists, err error) {
	for n := 0; ; n++ {
		l, err = o.Lists(ctx, s, &s.Attr)
		if err == nil || s.Name == "" || n == maxLookups || !movedOn(err) {
			return l, err
		}
		if *s, err = s.again(ctx); err != nil {
			return l, err
		}
	}
}

// Listed reports whether h, a directory of the destination with the attributes a, has lists that
// its mode does not tell: then what is made in it may have some, too. One that does not say so has
// none.
func (o *Options) Listed(ctx context.Context, f vfs.FS, h vfs.Handle, a *vfs.Attr) bool {
	if have, known := o.holds.ask(a); known && !have {
		return false
	}
	x, ok := vfs.As[vfs.ACLer](f)
	if !ok {
		return false
	}
	acl, _, err := o.holds.list(ctx, x, h, a)
	var l Lists
	l.read(acl)
	return err == nil && l.Some()
}

// holder is what can give lists to h, an object of the destination with the attributes a.
func (o *Options) holder(ctx context.Context, f vfs.FS, h vfs.Handle, a *vfs.Attr) (vfs.ACLer, bool) {
	x, ok := vfs.As[vfs.ACLer](f)
	if !ok {
		return nil, false
	}
	has, known := o.holds.ask(a)
	if !known {
		_, has, _ = o.holds.list(ctx, x, h, a)
	}
	return x, has
}

// SetAll is SetAttrs with access control lists. want has the source's mode, and l its lists.
// inherited says that h may have lists that it shall not keep: from before, or from the directory
// that it was made in.
//
// At no moment anybody has more rights than in the end. A mode would open lists that are
// inherited, and lists would give a group's rights to the group that the object has before it
// gets its own. So the owner comes first, with a mode for the owner alone, and the lists come
// last, and are read back: a server may claim to have set them. Where they cannot be set, the
// object gets the mode l.Mode instead, and the lists are lost. Nothing else is done for an object
// without lists.
func (o *Options) SetAll(ctx context.Context, f vfs.FS, h vfs.Handle, want, have *vfs.Attr, l *Lists, inherited bool) (after vfs.Attr, lost Lost, err error) {
	as := *want
	as.Mode = l.Mode
	if !l.Some() && !inherited || !want.Has(vfs.MaskMode) {
		return SetAttrs(ctx, f, h, &as, have, o.Owners)
	}
	if holder, ok := o.holder(ctx, f, h, have); ok {
		acl := l.list()
		if want.Type == vfs.TypeDir && inherited && o.hasLists(ctx, holder, h, have, acl) {
			as.Mode = as.Mode&^0o777 | posixacl.Mode(acl.Access) // it is open to others meanwhile, as it was
			return SetAttrs(ctx, f, h, &as, have, o.Owners)
		}
		closed := as
		closed.Mode &^= groupBits | otherBits
		if after, lost, err = SetAttrs(ctx, f, h, &closed, have, o.Owners); err != nil {
			return after, lost, err
		}
		err = holder.SetACL(ctx, h, acl)
		switch {
		case err == nil && o.hasLists(ctx, holder, h, have, acl):
			after.Mode = after.Mode&^0o777 | posixacl.Mode(acl.Access)
			after.Valid &^= vfs.MaskCtime | vfs.MaskChange // they have moved
			return after, lost, nil
		case err == nil:
			inherited = true // nobody knows what it has
		case !unfit(err):
			return after, lost, frozen("set the access control list", err)
		}
	}
	if inherited {
		as.Mode &^= groupBits // they would be the mask of the lists that it has
	}
	after, lost, err = SetAttrs(ctx, f, h, &as, have, o.Owners)
	lost.ACL, lost.Mode = l.Named, lost.Mode || as.Mode != l.Mode
	return after, lost, err
}

// list are the lists that a copy shall have, also if they say no more than the mode.
func (l *Lists) list() vfs.ACL {
	acl := l.ACL
	if !l.Some() {
		acl.Access = posixacl.FromMode(l.Mode)
	}
	if list, err := posixacl.Canonical(acl.Access); err == nil { // else the destination refuses it
		acl.Access = list
	}
	return acl
}

// hasLists reports whether h, an object of the destination with the attributes a, has these lists.
func (o *Options) hasLists(ctx context.Context, f vfs.ACLer, h vfs.Handle, a *vfs.Attr, want vfs.ACL) bool {
	acl, has, err := o.holds.list(ctx, f, h, a)
	return err == nil && has && SameLists(acl, want)
}

// unfit reports whether err says that the destination does not take such a list or attribute,
// this caller's or any. One may find no room where files do: many file systems keep them in one
// block.
func unfit(err error) bool {
	return refused(err) || errors.Is(err, vfs.ErrNoSpace) || errors.Is(err, vfs.ErrQuota) ||
		errors.Is(err, vfs.ErrXattr2Big) || errors.Is(err, vfs.ErrNameTooLong)
}

// KeepAll is SetAll for a copy that was made before, with the attributes have. It changes what
// differs, and set says whether anything did.
func (o *Options) KeepAll(ctx context.Context, f vfs.FS, h vfs.Handle, want, have *vfs.Attr, l *Lists) (set bool, lost Lost, err error) {
	as := *want
	as.Mode = l.Mode
	if !l.Some() {
		return KeepAttrs(ctx, f, h, &as, have, o.Owners)
	}
	holder, ok := o.holder(ctx, f, h, have)
	if !ok {
		set, lost, err = KeepAttrs(ctx, f, h, &as, have, o.Owners)
		lost.ACL = l.Named
		return set, lost, err
	}
	acl, _, err := o.holds.list(ctx, holder, h, have)
	if err != nil {
		return false, lost, fmt.Errorf("access control list of the copy: %w", err)
	}
	if SameLists(acl, l.ACL) {
		as.Mode = as.Mode&^0o777 | posixacl.Mode(l.list().Access)
		return KeepAttrs(ctx, f, h, &as, have, o.Owners)
	}
	var was Lists
	was.read(acl)
	_, lost, err = o.SetAll(ctx, f, h, want, have, l, was.Some())
	return err == nil && !lost.ACL, lost, err
}

// SameLists reports whether two objects have the same lists, in whatever order. A mask that takes
// nothing away, where nobody is named, makes no difference: NFS does not tell whether it is there.
func SameLists(a, b vfs.ACL) bool {
	return sameList(a.Access, b.Access) && sameList(a.Default, b.Default)
}

func sameList(a, b []vfs.ACLEntry) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	x, xerr := posixacl.Canonical(a)
	y, yerr := posixacl.Canonical(b)
	return xerr == nil && yerr == nil && slices.Equal(posixacl.Unmasked(x), posixacl.Unmasked(y))
}
