package job

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/base/filter"
	"github.com/nfsbox/nfsbox/internal/base/throttle"
	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/hands"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// Kinds of differences that Verify reports.
const (
	DiffMissing = "missing" // not in the destination; of a directory, with all that is in it
	DiffExtra   = "extra"   // not in the source; of a directory, with all that is in it
	DiffType    = "type"
	DiffSize    = "size"
	DiffContent = "content"
	DiffTarget  = "target" // of a symbolic link
	DiffDevice  = "device" // the number of a device
	DiffMode    = "mode"
	DiffMtime   = "mtime"
	DiffOwner   = "owner"
	DiffLinks   = "links" // names that are one object on one side only
	DiffACL     = "acl"   // access control lists
	DiffXattr   = "xattr" // extended attributes
)

// VerifyOptions say what to compare.
type VerifyOptions struct {
	Source, Dest Place // two objects, of one type or not

	Pool     *bufpool.Pool
	Now      func() time.Time
	Progress *progress.Tracker // nil: no reports
	Each     bool              // report each item that was compared, as an event of type "done"

	// Filter says what is compared of a tree, and is told what is left out; nil: all. What it would leave out if the
	// source had it is not extra in the destination.
	Filter   *filter.Filter
	Throttle *throttle.Throttle // bounds the bytes that are compared, and may change meanwhile; nil: nothing does
	// OneFileSystem leaves out what is in directories that are on another file system than Source: it is
	// neither missing nor extra.
	OneFileSystem bool

	Hands    hands.Hands // compares the contents of files of trees; nil: the job does
	Parallel int         // files at once; 0: DefaultParallel
	Owner    bool        // compare owners and groups as well
	ACLs     bool        // compare access control lists and extended attributes as well
	Meta     bool        // of files compare the sizes alone, and read none
}

// VerifySummary is what a verification has found.
type VerifySummary struct {
	Files     uint64 `json:"files"` // whose bytes, or without contents whose sizes, were compared
	Dirs      uint64 `json:"dirs"`
	Symlinks  uint64 `json:"symlinks"`
	Hardlinks uint64 `json:"hardlinks"` // further names of objects
	Nodes     uint64 `json:"nodes"`
	Bytes     uint64 `json:"bytes"`

	Differences uint64  `json:"differences"` // of all kinds
	Missing     uint64  `json:"missing"`
	Extra       uint64  `json:"extra"`
	Errors      uint64  `json:"errors"`        // items that could not be compared
	Vanished    uint64  `json:"vanished"`      // items that were gone when their turn came: no failures
	DirsGone    uint64  `json:"dirs_vanished"` // directories that were gone by their turn, or at their end
	DirsChanged uint64  `json:"dirs_changed"`  // directories that changed while they were compared: what came into them then may not have been
	ACLsLost    uint64  `json:"acls_lost"`     // items with the source's mode less its access control list: no differences
	TimesLost   uint64  `json:"times_lost"`    // items with the nearest time that NFSv3 has to the source's: no differences
	Mounts      uint64  `json:"-"`             // directories of other file systems, which are not looked into
	Seconds     float64 `json:"seconds"`
}

// ExitCode is the exit code of a command that got s and err from Verify.
func (s *VerifySummary) ExitCode(err error) int { return exitCode(err, s.Errors, s.Differences) }

// verifyJob is a verification under way. It is the visitor of the walk through the source, joined
// with the destination.
type verifyJob struct {
	crew
	o       *VerifyOptions
	t       transfer.Options
	hands   hands.Hands
	srcAttr vfs.Attr
	dstAttr vfs.Attr
	times   times
	links   linkPairs

	missing, extra, aclsLost, timesLost atomic.Uint64
}

// Verify compares two trees, or two single objects: names, types, sizes, contents, targets
// of links, device numbers, modes, mtimes, which names are hard links of one object, and,
// with o.Owner, owners, and with o.ACLs access control lists and extended attributes, as far as
// the source has them to ask for. With o.Meta no file is read: sizes and times stand for the contents.
// Differences and failed items are reported to o.Progress and counted; the error is nil then.
// An error says that the job as a whole has ended early.
//
// A tree that changes meanwhile is compared as it is met.
func Verify(ctx context.Context, o VerifyOptions) (VerifySummary, error) {
	if o.Progress == nil {
		o.Progress = progress.New(nil, o.Now)
	}
	before := o.Progress.Snapshot()
	h := handsOf(o.Hands)
	slots := make(chan struct{}, max(parallel(o.Parallel, DefaultParallel), h.AtOnce()))
	j := &verifyJob{o: &o, hands: h, crew: crew{outcomes: outcomes{progress: o.Progress}, slots: slots, filter: o.Filter, oneFS: o.OneFileSystem}}
	err := j.run(ctx)
	after := j.progress.Snapshot()
	n := func(c progress.Counter) uint64 { return after.Counts[c] - before.Counts[c] }
	return VerifySummary{
		Files: n(progress.Files), Dirs: n(progress.Dirs), Symlinks: n(progress.Symlinks),
		Hardlinks: n(progress.Hardlinks), Nodes: n(progress.Nodes), Bytes: n(progress.Bytes),
		Differences: n(progress.Differences), Missing: j.missing.Load(), Extra: j.extra.Load(),
		Errors: n(progress.Errors), Vanished: n(progress.Vanished), DirsGone: j.dirs.count(), DirsChanged: j.dirsChanged.Load(), ACLsLost: j.aclsLost.Load(), TimesLost: j.timesLost.Load(), Mounts: j.elsewhere.Load(), Seconds: after.Time.Sub(before.Time).Seconds(),
	}, err
}

func (j *verifyJob) run(ctx context.Context) error {
	if err := j.prepare(ctx); err != nil {
		return err
	}
	if j.srcAttr.Type != vfs.TypeDir {
		j.found(&j.srcAttr)
		e := vfs.Entry{Handle: j.o.Source.Handle, Attr: j.srcAttr}
		p := pair{src: &e, dst: object{handle: j.o.Dest.Handle, attr: j.dstAttr}, path: func() string { return "." }}
		watched, end := j.watch(ctx, func() int { return 1 })
		j.fail(watched, p.path(), j.compare(watched, &p))
		if err := end(ctx.Err()); err != nil {
			return err
		}
		j.closeTotals()
		return nil
	}
	err := j.tree(ctx, func(ctx context.Context, o walk.Options) error {
		return delta.Tree(ctx, j.o.Source.FS, j.o.Source.Handle, j.o.Dest.FS, delta.Options{Walk: o}, j)
	}, j.tellChanged)
	if err == nil {
		j.closeTotals()
	}
	return err
}

// prepare looks at both ends.
func (j *verifyJob) prepare(ctx context.Context) error {
	o := j.o
	var err error
	if j.srcAttr, err = o.Source.FS.GetAttr(ctx, o.Source.Handle, vfs.MaskV3); err != nil {
		return fmt.Errorf("the source %w: %w", ErrUnreachable, err)
	}
	j.source = source{o.Source, j.srcAttr}
	if j.dstAttr, err = o.Dest.FS.GetAttr(ctx, o.Dest.Handle, vfs.MaskV3); err != nil {
		return fmt.Errorf("the destination %w: %w", ErrUnreachable, err)
	}
	j.t = transfer.Options{
		Pool: o.Pool, Budget: transfer.NewBudget(max(maxChunks, parallel(o.Parallel, DefaultParallel)) / 2), Throttle: o.Throttle,
		Moved: func(n int64) { j.progress.Add(progress.Bytes, uint64(n)) },
	}
	if j.times, err = timesOf(ctx, o.Source, o.Dest); err != nil {
		return err
	}
	if o.ACLs && !vfs.Has[vfs.Xattrer](o.Source.FS) {
		j.progress.Report(progress.Event{Type: "note", Message: "the source cannot be asked for extended attributes: they are not compared"})
	}
	src := transfer.Source{FS: o.Source.FS, Handle: o.Source.Handle}
	j.t.Chunk, err = transfer.Chunk(ctx, src, transfer.Target{FS: o.Dest.FS, Dir: o.Dest.Handle})
	return err
}

// differ reports a difference.
func (j *verifyJob) differ(path, kind, format string, args ...any) {
	j.progress.Add(progress.Differences, 1)
	switch kind {
	case DiffMissing:
		j.missing.Add(1)
	case DiffExtra:
		j.extra.Add(1)
	}
	j.progress.Report(progress.Event{Type: "difference", Kind: kind, Path: path, Message: fmt.Sprintf(format, args...)})
}

// object is an object of the destination. listed and xattr are set for copies.
type object struct {
	handle vfs.Handle
	attr   vfs.Attr

	// Of a copy: its source has an access control list, or extended attributes.
	listed, xattr bool
}

// pair is an object of the source and its counterpart in the destination.
type pair struct {
	src  *vfs.Entry
	dst  object
	path func() string // for messages; called only when needed, as it allocates

	// Of an object in a tree, but for its root: the directory that has it, and its name there.
	dir  *delta.Dir
	name string
}

// compare compares two objects, except for the entries of directories.
func (j *verifyJob) compare(ctx context.Context, p *pair) error {
	src, dst := &p.src.Attr, &p.dst.attr
	if src.Type != dst.Type {
		j.differ(p.path(), DiffType, "a %v, and in the destination a %v", src.Type, dst.Type)
		return nil
	}
	if err := j.compareAttrs(ctx, p); err != nil {
		return err
	}
	if src.Type != vfs.TypeDir && j.metBefore(p) {
		return nil
	}
	switch src.Type {
	case vfs.TypeReg:
		return j.compareFiles(ctx, p)
	case vfs.TypeSymlink:
		return j.compareLinks(ctx, p)
	case vfs.TypeBlock, vfs.TypeChar:
		if src.Rdev != dst.Rdev {
			j.differ(p.path(), DiffDevice, "%d:%d, and in the destination %d:%d", src.Rdev>>32, uint32(src.Rdev), dst.Rdev>>32, uint32(dst.Rdev))
		}
	}
	if src.Type != vfs.TypeDir {
		j.progress.Add(progress.Nodes, 1)
	}
	return nil
}

// metBefore reports whether the two objects were compared under other names. Names that are
// one object on one side only are a difference.
func (j *verifyJob) metBefore(p *pair) bool {
	again, why := j.links.meet(&p.src.Attr, &p.dst.attr, p.path)
	if why != "" {
		j.differ(p.path(), DiffLinks, "%s", why)
	}
	if !again {
		return false
	}
	j.progress.Add(progress.Hardlinks, 1)
	if p.src.Attr.Type == vfs.TypeReg {
		j.progress.Add(progress.FoundBytes, -p.src.Attr.Size)
	}
	return true
}

// compareFiles compares the contents of two files.
func (j *verifyJob) compareFiles(ctx context.Context, p *pair) error {
	src, dst := &p.src.Attr, &p.dst.attr
	if j.o.Meta {
		j.compareSizes(p)
		return nil
	}
	a := transfer.Source{FS: j.o.Source.FS, Handle: p.src.Handle, Attr: *src, Name: p.name}
	b := transfer.Source{FS: j.o.Dest.FS, Handle: p.dst.handle, Attr: *dst}
	var at *hands.Dir
	if p.dir != nil {
		at, a.Dir = &hands.Dir{Path: namesTo(p.dir), Source: &p.dir.Attr}, p.dir.Handle
	}
	var cmp transfer.Comparison
	var unsized bool
	var err error
	if transfer.MayBeUnsized(src) {
		cmp, unsized, err = transfer.CompareUnsized(ctx, a, b, &j.t)
	}
	if err == nil && !unsized {
		if !j.sameSize(p) {
			return nil
		}
		cmp, err = j.hands.Compare(ctx, at, a, b, src.Size, &j.t)
	}
	if err != nil {
		return err
	}
	if cmp.Differ {
		j.differ(p.path(), DiffContent, "the first difference is at byte %d", cmp.Offset)
	}
	j.progress.Add(progress.Files, 1)
	return nil
}

// sameSize reports whether two files have the same size, and tells if they have not.
func (j *verifyJob) sameSize(p *pair) bool {
	src, dst := &p.src.Attr, &p.dst.attr
	if src.Size == dst.Size {
		return true
	}
	j.differ(p.path(), DiffSize, "%d bytes, and in the destination %d", src.Size, dst.Size)
	return false
}

// compareSizes compares two files that are not read.
func (j *verifyJob) compareSizes(p *pair) {
	j.progress.Add(progress.FoundBytes, -p.src.Attr.Size) // no bytes are to be expected
	if j.sameSize(p) {
		j.progress.Add(progress.Files, 1)
	}
}

// compareLinks compares the targets of two symbolic links.
func (j *verifyJob) compareLinks(ctx context.Context, p *pair) error {
	a, _, err := j.o.Source.FS.Readlink(ctx, p.src.Handle)
	if err != nil {
		return fmt.Errorf("read the source's link: %w", err)
	}
	b, _, err := j.o.Dest.FS.Readlink(ctx, p.dst.handle)
	if err != nil {
		return fmt.Errorf("read the destination's link: %w", err)
	}
	if a != b {
		j.differ(p.path(), DiffTarget, "%s, and in the destination %s", shorten(a), shorten(b))
	}
	j.progress.Add(progress.Symlinks, 1)
	return nil
}

// maxShown bounds how much of a link's target a message quotes.
const maxShown = 200

func shorten(target string) string {
	if len(target) > maxShown {
		return target[:maxShown] + "..."
	}
	return target
}

// lookup finds name in dir, with all attributes; false if there is none.
func lookup(ctx context.Context, f vfs.FS, dir vfs.Handle, name string) (o object, ok bool, err error) {
	o.handle, o.attr, _, err = f.Lookup(ctx, dir, name)
	if err == nil && !o.attr.Has(vfs.MaskV3) {
		o.attr, err = f.GetAttr(ctx, o.handle, vfs.MaskV3)
	}
	if errors.Is(err, vfs.ErrNoEnt) {
		return o, false, nil
	}
	if err != nil {
		return o, false, fmt.Errorf("lookup: %w", err)
	}
	return o, true, nil
}
