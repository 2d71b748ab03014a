package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/vfs"
)

// Symlink copies a symbolic link: its target byte for byte, whatever it says. A link that is
// there already with this target is kept. On a vfs.Syncer the caller syncs its times and owner.
func Symlink(ctx context.Context, src Source, dst Target, o *Options) (Result, error) {
	target, attr, err := src.readlink(ctx)
	if err != nil {
		return Result{}, err
	}
	if len(target) > vfs.MaxPath {
		return Result{}, fmt.Errorf("the link's target has %d bytes: %w", len(target), vfs.ErrNameTooLong)
	}
	if !src.Attr.Has(vfs.MaskMtime) {
		src.Attr = attr
	}
	src.Attr.Type = vfs.TypeSymlink
	if m, ok := vfs.As[vfs.Maker](dst.FS); ok {
		return symlinkWhole(ctx, m, &src, &dst, target, o)
	}
	n := node{dst: &dst, o: o, want: &src.Attr, how: vfs.CreateHow{Type: vfs.TypeSymlink, Target: target}, src: &src, link: &src}
	return n.place(ctx)
}

// readlink reads the link that has the source's name.
func (s *Source) readlink(ctx context.Context) (target string, attr vfs.Attr, err error) {
	for n := 0; ; n++ {
		target, attr, err = s.FS.Readlink(ctx, s.Handle)
		if err == nil {
			return target, attr, nil
		}
		err = &sourceError{err: fmt.Errorf("read the link: %w", err), opening: true}
		if s.Name == "" || n == maxLookups || !movedOn(err) {
			return "", attr, err
		}
		if *s, err = s.again(ctx); err != nil {
			return "", attr, err
		}
	}
}

// Node copies a device, a pipe or a socket: the name, not what is read through it. To make a
// device takes privileges; without them the error is vfs.ErrPerm. Syncing is as for Symlink.
func Node(ctx context.Context, src Source, dst Target, o *Options) (Result, error) {
	n := node{dst: &dst, o: o, want: &src.Attr, src: &src}
	if src.Attr.Has(vfs.MaskMode) {
		lists, err := src.lists(ctx, o)
		if err != nil {
			return Result{}, err
		}
		n.lists = lists
	}
	n.how = vfs.CreateHow{Type: src.Attr.Type, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}}
	switch src.Attr.Type {
	case vfs.TypeBlock, vfs.TypeChar:
		if !src.Attr.Has(vfs.MaskRdev) {
			return Result{}, fmt.Errorf("device number: %w", vfs.ErrServerFault)
		}
		n.how.Rdev = src.Attr.Rdev
	case vfs.TypeFIFO, vfs.TypeSocket:
	default:
		return Result{}, vfs.ErrBadType
	}
	return n.place(ctx)
}

// node is an object without contents that is being made.
type node struct {
	dst   *Target
	o     *Options
	want  *vfs.Attr
	how   vfs.CreateHow
	lists Lists // of the source
	src   *Source
	link  *Source // likewise, of a symbolic link
}

// maxPlaced is how often an object is placed again because what had its name was replaced
// meanwhile, by another copy. Then that is the error.
const maxPlaced = 8

// place makes the object under its name.
func (n *node) place(ctx context.Context) (res Result, err error) {
	for range maxPlaced {
		res, err = n.placeOnce(ctx)
		if !errors.Is(err, vfs.ErrStale) && !errors.Is(err, vfs.ErrNoEnt) || ctx.Err() != nil {
			break
		}
	}
	return res, err
}

// placeOnce makes the object under its name, or, if that is taken by something else, under
// a temporary one that is then renamed.
func (n *node) placeOnce(ctx context.Context) (Result, error) {
	h, attr, _, err := n.dst.FS.Create(ctx, n.dst.Dir, n.dst.Name, &n.how)
	if err == nil {
		return n.finish(ctx, h, &attr)
	}
	if !errors.Is(err, vfs.ErrExist) {
		return Result{}, n.notMade(err)
	}
	h, attr, _, err = n.dst.FS.Lookup(ctx, n.dst.Dir, n.dst.Name)
	if err != nil {
		return Result{}, fmt.Errorf("lookup: %w", err)
	}
	if !attr.Has(vfs.MaskType | vfs.MaskRdev | vfs.MaskNlink) {
		if attr, err = n.dst.FS.GetAttr(ctx, h, vfs.MaskV3); err != nil {
			return Result{}, fmt.Errorf("getattr: %w", err)
		}
	}
	same, err := n.same(ctx, h, &attr)
	if err != nil {
		return Result{}, err
	}
	if same {
		res, err := n.finish(ctx, h, &attr)
		res.Kept = true
		return res, err
	}
	if n.link != nil {
		if err := n.link.Spares(ctx, n.dst.FS, h, &attr); err != nil {
			return Result{}, err
		}
	}
	return n.replace(ctx, attr.Type)
}

// same reports whether h, found under our name, is what we would make. An object with further
// names is not: they may stand for other objects, and would get our attributes.
func (n *node) same(ctx context.Context, h vfs.Handle, attr *vfs.Attr) (bool, error) {
	if attr.Type != n.how.Type || attr.Nlink > 1 {
		return false, nil
	}
	if n.how.Type == vfs.TypeSymlink {
		target, _, err := n.dst.FS.Readlink(ctx, h)
		if err != nil {
			return false, fmt.Errorf("read the link that is there: %w", err)
		}
		return target == n.how.Target, nil
	}
	return attr.Rdev == n.how.Rdev, nil
}

// replace makes the object under a temporary name and renames it.
func (n *node) replace(ctx context.Context, there vfs.Type) (Result, error) {
	if there == vfs.TypeDir {
		return Result{}, inTheWay("create", vfs.ErrIsDir)
	}
	temp, err := n.o.TempName()
	if err != nil {
		return Result{}, err
	}
	h, attr, made := CreateTemp(ctx, n.dst, temp, &n.how)
	if made != nil && !errors.Is(made, vfs.ErrUnknownOutcome) {
		return Result{}, n.notMade(made)
	}
	res, err := Result{}, made
	if err == nil {
		res, err = n.finish(ctx, h, &attr)
	}
	if err == nil {
		if _, _, err = n.dst.FS.Rename(ctx, n.dst.Dir, temp, n.dst.Dir, n.dst.Name); err == nil {
			return res, nil
		}
	}
	return Result{}, errors.Join(frozen("replace", err), RemoveTemp(ctx, n.dst, temp, made))
}

// finish sets the attributes.
func (n *node) finish(ctx context.Context, h vfs.Handle, have *vfs.Attr) (Result, error) {
	unmarked := false
	if n.src.HasXattrs(ctx) {
		var err error
		if _, unmarked, err = n.src.KeepXattrs(ctx, n.dst.FS, h, false); err != nil {
			return Result{}, err
		}
	}
	after, lost, err := n.o.SetAll(ctx, n.dst.FS, h, n.want, have, &n.lists, n.link == nil && n.dst.lists())
	if err != nil {
		return Result{}, err
	}
	lost.Xattr = unmarked
	return Result{Source: *n.want, Handle: h, Attr: after, Lost: lost}, nil
}

// linkTemp gives h a temporary name, and waits for the answer.
func linkTemp(ctx context.Context, h vfs.Handle, dst *Target, temp string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, end := whileMade(ctx)
	defer end()
	_, _, err := dst.FS.Link(ctx, h, dst.Dir, temp)
	return err
}

// Link gives h, an object of dst.FS, the name of dst. It replaces what has the name, unless
// that is a directory. An error that Is vfs.ErrMLink, vfs.ErrNotSupp or vfs.ErrXDev says that
// the object has to be copied instead.
func Link(ctx context.Context, h vfs.Handle, dst Target, o *Options) error {
	_, _, err := dst.FS.Link(ctx, h, dst.Dir, dst.Name)
	if !errors.Is(err, vfs.ErrExist) {
		return err
	}
	there, attr, _, err := dst.FS.Lookup(ctx, dst.Dir, dst.Name)
	if err != nil {
		return fmt.Errorf("lookup: %w", err)
	}
	same, err := sameObject(ctx, dst.FS, there, &attr, h)
	if same || err != nil {
		return err
	}
	if attr.Type == vfs.TypeDir {
		return inTheWay("link", vfs.ErrIsDir)
	}
	temp, err := o.TempName()
	if err != nil {
		return err
	}
	made := linkTemp(ctx, h, &dst, temp)
	if err = made; err == nil {
		_, _, err = dst.FS.Rename(ctx, dst.Dir, temp, dst.Dir, dst.Name)
	}
	if err != nil {
		err = frozen("replace", err)
	}
	// If someone else has made the same link meanwhile, both names are of one
	// object, and the rename has left the temporary where it was.
	return errors.Join(err, RemoveTemp(ctx, &dst, temp, made))
}

// sameObject reports whether a, whose attributes are completed, is the same
// object as b. Handles of one object need not be equal.
func sameObject(ctx context.Context, f vfs.FS, a vfs.Handle, attr *vfs.Attr, b vfs.Handle) (bool, error) {
	const id = vfs.MaskFSID | vfs.MaskFileID | vfs.MaskType
	var err error
	if !attr.Has(id) {
		if *attr, err = f.GetAttr(ctx, a, vfs.MaskV3); err != nil {
			return false, fmt.Errorf("getattr: %w", err)
		}
	}
	if a == b {
		return true, nil
	}
	other, err := f.GetAttr(ctx, b, vfs.MaskV3)
	if err != nil {
		return false, fmt.Errorf("getattr: %w", err)
	}
	return attr.Has(id) && other.Has(id) && attr.FSID == other.FSID && attr.FileID == other.FileID, nil
}
