package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// Attributes alone do not say whether the destination lies in the source: one tree may be
// reached in two ways, and two servers may hand out the same handles and ids. Equal ids are
// only a suspicion. An experiment settles it: make a name in the destination, and look for
// it in the source.

// maxClimb bounds how many directories above the destination are compared with the source.
// Higher ones are not compared.
const maxClimb = walk.DefaultMaxDepth

// refuseOntoItself refuses the job, before anything is copied, if the
// destination is seen to be the source or to lie in it.
func (j *copyJob) refuseOntoItself(ctx context.Context, e *ends) error {
	src, ok := idOf(&j.srcAttr)
	if !ok {
		return nil
	}
	if j.srcAttr.Type != vfs.TypeDir {
		return j.refuseSameFile(ctx, src, e)
	}
	h, attr := j.o.Dest.Handle, e.dst
	for range maxClimb {
		if mayBe(&attr, &j.srcAttr) {
			if err := j.refuseIf(ctx, h, j.o.Source.Handle); err != nil && !cannotMake(err) {
				return err
			}
		}
		up, _, _, err := j.o.Dest.FS.Lookup(ctx, h, "..")
		if err != nil || up == h {
			// The destination shows nothing above. refuseIntoItself compares each
			// directory of the source during the walk.
			return ctx.Err()
		}
		if attr, err = j.o.Dest.FS.GetAttr(ctx, up, vfs.MaskV3); err != nil {
			return ctx.Err()
		}
		h = up
	}
	return nil
}

// refuseSameFile refuses to copy a file to its own name.
func (j *copyJob) refuseSameFile(ctx context.Context, src objectID, e *ends) error {
	attr, err := e.there, e.none
	if errors.Is(err, vfs.ErrNoEnt) {
		return nil
	}
	if err == nil && !attr.Has(vfs.MaskV3) {
		attr, err = j.o.Dest.FS.GetAttr(ctx, e.at, vfs.MaskV3)
	}
	if err != nil {
		return fmt.Errorf("look at the destination: %w", err)
	}
	if id, ok := idOf(&attr); ok && id == src && !j.o.SourceDir.IsZero() {
		return j.refuseIf(ctx, j.o.Dest.Handle, j.o.SourceDir)
	}
	return j.refuseByLink(ctx, &attr)
}

// refuseByLink refuses to replace a file by a link that leads to it, which would lose the
// file, and to replace a link by the file that it leads to.
func (j *copyJob) refuseByLink(ctx context.Context, there *vfs.Attr) error {
	link := transfer.Source{FS: j.o.Source.FS, Dir: j.o.SourceDir, Name: j.o.SourceName}
	to, isLink, wasLink := there, j.srcAttr.Type == vfs.TypeSymlink, there.Type == vfs.TypeSymlink
	if wasLink {
		link, to = transfer.Source{FS: j.o.Dest.FS, Dir: j.o.Dest.Handle, Name: j.o.Name}, &j.srcAttr
	}
	if isLink == wasLink || link.Name == "" {
		return nil
	}
	same, err := link.LeadsTo(ctx, to)
	switch {
	case err == nil && same:
		return ErrIntoItself
	case isLink || ctx.Err() != nil:
		return err
	}
	return nil // replacing a link loses no contents
}

// mayBe reports whether a and b, of two file systems, may describe one object. File system
// ids are not compared: each side may have its own.
func mayBe(a, b *vfs.Attr) bool {
	const id = vfs.MaskFileID | vfs.MaskCtime
	return a.Has(id) && b.Has(id) && a.FileID == b.FileID && a.Ctime.Equal(b.Ctime)
}

// cannotMake reports whether the experiment was not permitted: a directory above the
// destination may belong to another user.
func cannotMake(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, vfs.ErrROFS)
}

// refuseIntoItself refuses to go on if d, of the source, is the directory that
// the copy is made in.
func (j *copyJob) refuseIntoItself(ctx context.Context, d *walk.Dir) error {
	if !d.Attr.Has(vfs.MaskFileID) || d.Attr.FileID != j.targetID.fileID {
		return nil
	}
	return j.refuseIf(ctx, j.target, d.Handle)
}

// refuseIf makes a name in dst, a directory of the destination, and refuses if
// the source shows it in its directory src.
func (j *copyJob) refuseIf(ctx context.Context, dst, src vfs.Handle) error {
	shown, err := transfer.Probe(ctx, transfer.Target{FS: j.o.Dest.FS, Dir: dst}, j.o.Source.FS, src, &j.t)
	if err != nil {
		return err
	}
	if shown {
		return ErrIntoItself
	}
	return nil
}
