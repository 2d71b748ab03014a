package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"

	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// Attributes alone do not say whether the destination lies in the source: one tree may be
// reached in two ways, and two servers may hand out the same ids. Equal ids are only a
// suspicion. An experiment settles it: make a name in the destination, and look for it in the
// source, in the directory to which the same ids lead.

// maxClimb bounds how many directories above the destination are compared with the source.
// Higher ones are not compared.
const maxClimb = walk.DefaultMaxDepth

// refuseOntoItself refuses the job, before anything is made, if the destination is seen to be the
// source or to lie in it.
func (j *copyJob) refuseOntoItself(ctx context.Context, e *ends) error {
	if j.srcAttr.Type != vfs.TypeDir {
		return j.refuseOver(ctx, e)
	}
	if !j.srcAttr.Has(vfs.MaskFileID) {
		return nil
	}
	var way []uint64 // ids of the directories from the destination up to the one at hand
	for attr := range j.upwards(ctx, &e.dst) {
		if j.mayBeSource(ctx, &attr) {
			if err := j.refuseBelow(ctx, way); err != nil && !cannotMake(err) {
				return err
			}
		}
		if len(way) == maxClimb {
			break
		}
		way = append(way, attr.FileID)
	}
	// What the destination does not show refuseIntoItself finds during the walk, which compares each
	// directory of the source.
	return ctx.Err()
}

// upwards yields the attributes of the destination and of the directories above it, as far as they
// can be looked at.
func (j *copyJob) upwards(ctx context.Context, dst *vfs.Attr) iter.Seq[vfs.Attr] {
	return func(yield func(vfs.Attr) bool) {
		h, attr := j.o.Dest.Handle, *dst
		for yield(attr) {
			up, _, _, err := j.o.Dest.FS.Lookup(ctx, h, "..")
			if err != nil {
				return
			}
			if up == h {
				if j.o.Above != nil {
					j.o.Above(ctx)(yield)
				}
				return
			}
			if attr, err = j.o.Dest.FS.GetAttr(ctx, up, vfs.MaskV3); err != nil {
				return
			}
			h = up
		}
	}
}

// refuseBelow refuses if the destination is in the source where way leads: the ids of the
// directories from the destination up to the source, without the source's.
func (j *copyJob) refuseBelow(ctx context.Context, way []uint64) error {
	at := j.o.Source.Handle
	for _, id := range slices.Backward(way) {
		below, err := j.sourceDir(ctx, at, id)
		if err != nil || below.IsZero() {
			return ctx.Err() // the ids are of something else, or it cannot be listed for the copy, either
		}
		at = below
	}
	return j.refuseIf(ctx, j.o.Dest.Handle, at)
}

// mayBeSource reports whether a, of a directory of the destination, may describe the source. File
// system ids are not compared: each side may have its own.
func (j *copyJob) mayBeSource(ctx context.Context, a *vfs.Attr) bool {
	const id = vfs.MaskFileID | vfs.MaskCtime
	if !a.Has(id) || !j.srcAttr.Has(id) || a.FileID != j.srcAttr.FileID {
		return false
	}
	if a.Ctime.Equal(j.srcAttr.Ctime) {
		return true
	}
	// It may have changed since it was looked at.
	now, err := j.o.Source.FS.GetAttr(ctx, j.o.Source.Handle, id)
	return err == nil && now.Has(id) && a.Ctime.Equal(now.Ctime)
}

// sourceDir finds the directory of this id in the directory at of the source; zero if there is none.
func (j *copyJob) sourceDir(ctx context.Context, at vfs.Handle, id uint64) (h vfs.Handle, err error) {
	f := j.o.Source.FS
	for e, err := range walk.List(ctx, f, at, vfs.MaskType|vfs.MaskFileID) {
		if err != nil {
			return h, err
		}
		if e.Attr.FileID == id && e.Attr.Type == vfs.TypeDir {
			h, _, _, err = f.Lookup(ctx, at, string(e.Name))
			return h, err
		}
	}
	return h, nil
}

// refuseOver refuses to copy an object that is no directory to its own name, and a file to the name
// of what is no file and no link. cp(1) writes into a device or a pipe that is named; a copy would
// replace it.
func (j *copyJob) refuseOver(ctx context.Context, e *ends) error {
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
	if j.srcAttr.Type == vfs.TypeReg && isSpecial(attr.Type) {
		return fmt.Errorf("the destination is a %v, %w", attr.Type, ErrSpecial)
	}
	src, ok := idOf(&j.srcAttr)
	if !ok {
		return nil
	}
	if id, ok := idOf(&attr); ok && id == src && !j.o.SourceDir.IsZero() {
		return j.refuseIf(ctx, j.o.Dest.Handle, j.o.SourceDir)
	}
	return j.refuseByLink(ctx, &attr)
}

// isSpecial reports whether what is written to such an object goes elsewhere.
func isSpecial(t vfs.Type) bool {
	switch t {
	case vfs.TypeFIFO, vfs.TypeSocket, vfs.TypeBlock, vfs.TypeChar:
		return true
	}
	return false
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
	if j.dry() {
		return nil // no name is made, nor anything else
	}
	return j.keepMtime(ctx, dst, func() error {
		shown, err := transfer.Probe(ctx, transfer.Target{FS: j.o.Dest.FS, Dir: dst}, j.o.Source.FS, src, &j.t)
		if err == nil && shown {
			err = ErrIntoItself
		}
		return err
	})
}
