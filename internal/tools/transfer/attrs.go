package transfer

import (
	"context"
	"errors"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	setUID = 0o4000
	setGID = 0o2000
)

// Lost says which attributes a copy does not have because the caller may not
// set them, the destination cannot hold them, or its server says that it has set
// them and has not.
type Lost struct {
	Owner bool // owner or group
	SetID bool // set-uid or set-gid, which would speak for another owner
	Mode  bool // other bits of the mode
	Times bool
	ACL   bool // an access control list
	Xattr bool // extended attributes, as far as they are known
	Holes bool // holes: the copy has zeros there, which take storage
}

// maxRefused bounds how many owners Owners remembers, about 50 bytes each. For
// further ones it is asked each time.
const maxRefused = 4096

// Owners remembers which owners the caller could not give its copies, so that a
// job does not ask again for every file. The zero Owners is ready; it may be
// used concurrently.
type Owners struct {
	mu   sync.Mutex
	most map[ownerKey]vfs.Mask // of owner and group, what was allowed
}

// ownerKey is what was asked for: fields that differ, and their values.
type ownerKey struct {
	give     vfs.Mask
	uid, gid uint32
}

// allowed is what is worth asking for.
func (o *Owners) allowed(k ownerKey) vfs.Mask {
	if k.give == 0 {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if most, ok := o.most[k]; ok {
		return most
	}
	return k.give
}

// learn notes that only most of what was asked for is allowed.
func (o *Owners) learn(k ownerKey, most vfs.Mask) {
	if most == k.give || o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.most == nil {
		o.most = make(map[ownerKey]vfs.Mask)
	}
	if len(o.most) < maxRefused {
		o.most[k] = most
	}
}

// SetAttrs gives h the mode and times of want and, if owners is not nil, its owner and group.
// have are h's attributes as far as they are known. It returns h's attributes afterwards, as
// far as the peer sent them.
//
// If the caller may not set the owner, the owner is lost, which is no error. Then the group is
// tried alone, since users may choose among their own groups. A file that does not get the
// owner of want gets no set-id bits: they would run it in another user's name. If it keeps
// them, the owner is set before them, since a new owner clears them.
//
// If the peer claims to have set something, and its attributes show that it has not, that is
// lost as well.
func SetAttrs(ctx context.Context, f vfs.FS, h vfs.Handle, want, have *vfs.Attr, owners *Owners) (after vfs.Attr, lost Lost, err error) {
	differs := ownersDiffer(want, have)
	key := ownerKey{uid: want.UID, gid: want.GID}
	if owners != nil {
		key.give = differs
	}
	most := owners.allowed(key)
	for _, m := range [...]vfs.Mask{key.give, key.give & vfs.MaskGID, 0} {
		if m&^most != 0 {
			continue // refused before
		}
		set := settings(want, differs&^m)
		if err = setBoth(ctx, f, h, want, m, &set, &after); err != nil && m != 0 && refused(err) {
			continue
		}
		if err == nil {
			m &^= notSet(want, &after, m)
			owners.learn(key, m)
		}
		lost.Owner = key.give&^m != 0
		lost.SetID = want.Has(vfs.MaskMode) && want.Type != vfs.TypeSymlink && set.Mode != want.Mode&0o7777
		if err == nil {
			lost.noteUnset(ctx, f, h, &set, &after)
		}
		break
	}
	if err != nil && want.Type == vfs.TypeSymlink && refused(err) {
		lost.Times, err = true, nil
	}
	if err != nil {
		err = frozen("set attributes", err)
	}
	return after, lost, err
}

// KeepAttrs is SetAttrs for an object that may have the attributes already. have are all
// attributes of h that are wanted. If SetAttrs would change none, no call is made, and set is
// false.
func KeepAttrs(ctx context.Context, f vfs.FS, h vfs.Handle, want, have *vfs.Attr, owners *Owners) (set bool, lost Lost, err error) {
	differs := ownersDiffer(want, have)
	key := ownerKey{uid: want.UID, gid: want.GID}
	if owners != nil {
		key.give = differs
	}
	as := settings(want, differs)
	if owners.allowed(key) == 0 && have.Has(vfs.MaskMode) && as.Mode == have.Mode&0o7777 {
		lost.Owner, lost.SetID = key.give != 0, as.Mode != want.Mode&0o7777
		return false, lost, nil
	}
	_, lost, err = SetAttrs(ctx, f, h, want, have, owners)
	return err == nil, lost, err
}

// Gives reports what SetAttrs would try to give an object with the attributes have: another owner or group, and set-id bits, new ones or with
// another owner. owners may be nil.
func (o *Owners) Gives(want, have *vfs.Attr) (owner, setID bool) {
	differs := ownersDiffer(want, have)
	var give vfs.Mask
	if o != nil {
		give = o.allowed(ownerKey{give: differs, uid: want.UID, gid: want.GID})
	}
	set := settings(want, differs&^give)
	ids := set.Mode & (setUID | setGID)
	return give != 0, want.Has(vfs.MaskMode) && ids != 0 && (give != 0 || !have.Has(vfs.MaskMode) || ids&^have.Mode != 0)
}

// ownersDiffer returns which of owner and group differ between want and have, or are not known
// of have.
func ownersDiffer(want, have *vfs.Attr) vfs.Mask {
	var m vfs.Mask
	if want.Has(vfs.MaskUID) && !(have.Has(vfs.MaskUID) && have.UID == want.UID) {
		m |= vfs.MaskUID
	}
	if want.Has(vfs.MaskGID) && !(have.Has(vfs.MaskGID) && have.GID == want.GID) {
		m |= vfs.MaskGID
	}
	return m
}

// settings is what of want is set. other says which of owner and group h will not have from
// want: that takes set-id bits away.
func settings(want *vfs.Attr, other vfs.Mask) vfs.SetAttr {
	set := vfs.SetAttr{
		Valid: want.Valid & (vfs.MaskMode | vfs.MaskAtime | vfs.MaskMtime),
		Mode:  want.Mode & 0o7777,
		Atime: want.Atime,
		Mtime: want.Mtime,
	}
	if want.Type == vfs.TypeSymlink {
		set.Valid &^= vfs.MaskMode // links have none that could be set
	}
	if want.Type == vfs.TypeDir {
		return set // set-gid of a directory is no privilege
	}
	if other&vfs.MaskUID != 0 {
		set.Mode &^= setUID
	}
	if other != 0 {
		set.Mode &^= setGID
	}
	return set
}

// setBoth sets set, and of the owner what m says. It does so in one call if that is safe.
func setBoth(ctx context.Context, f vfs.FS, h vfs.Handle, want *vfs.Attr, m vfs.Mask, set *vfs.SetAttr, after *vfs.Attr) error {
	both := *set
	if m != 0 && set.Mode&(setUID|setGID) != 0 {
		only := vfs.SetAttr{Valid: m, UID: want.UID, GID: want.GID}
		wcc, err := f.SetAttr(ctx, h, &only, nil)
		if err == nil && !wcc.After.Has(m) {
			wcc.After, err = f.GetAttr(ctx, h, vfs.MaskV3) // the answer is not believed here
		}
		if err == nil && notSet(want, &wcc.After, m) != 0 {
			err = vfs.ErrPerm
		}
		if err != nil {
			return err
		}
	} else {
		both.Valid |= m
		both.UID, both.GID = want.UID, want.GID
	}
	wcc, err := f.SetAttr(ctx, h, &both, nil)
	*after = wcc.After
	return err
}

// refused reports whether err says that this caller may not set that, or that the file system
// cannot hold it.
func refused(err error) bool {
	for _, s := range [...]vfs.Status{vfs.ErrPerm, vfs.ErrAccess, vfs.ErrInval, vfs.ErrNotSupp} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}
