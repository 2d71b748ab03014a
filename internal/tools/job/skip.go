package job

import (
	"context"
	"fmt"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// before reports whether an earlier run has copied a file: the record has the source as it
// is now, and the destination still has the copy. A copy gets its owner and mode again if
// they were changed. A copy that shall be verified, or that may be another file by now, is
// compared; if it differs, the file is not done. there is what the destination has listed under the
// name: only if that is nothing, or not all, the name is looked up. fatal ends the job.
func (j *copyJob) before(ctx context.Context, s *dirState, src *transfer.Source, dst *transfer.Target, there *vfs.Entry) (copied object, known bool, fatal, err error) {
	was, first, ok, err := j.noted(s, dst.Name)
	if !ok || err != nil || !was.isSource(&src.Attr) {
		return copied, false, nil, err
	}
	if there != nil && !there.Handle.IsZero() && there.Attr.Has(vfs.MaskV3) {
		copied = object{handle: there.Handle, attr: there.Attr}
	} else if copied, ok, err = lookup(ctx, dst.FS, dst.Dir, dst.Name); err != nil {
		return copied, false, nil, fmt.Errorf("destination: %w", err)
	}
	if !ok || !was.isCopy(&copied.attr) || j.kept.another(&src.Attr, &copied.attr) {
		return copied, false, nil, nil
	}
	copied.listed, copied.xattr = was.listed || first, was.xattr || first && src.HasXattrs(ctx)
	is, err := j.standing(ctx, src, &copied)
	if err != nil || is == unfit {
		return copied, false, nil, ctx.Err()
	}
	other := was.hasOtherID(&copied.attr)
	compare := j.doubts(src, other) || is == doubtful
	if compare && !j.same(ctx, s, src, &copied, other) {
		return copied, false, nil, ctx.Err()
	}
	if err := j.asCopied(ctx, s, src, &copied); err != nil {
		return copied, false, nil, ctx.Err() // copying it again meets the same error, or none
	}
	if j.o.Verify {
		j.progress.Add(progress.Verified, 1)
	}
	if other && compare || first { // a copy that was not compared keeps its old entry, and is doubted again
		fatal = j.finished(ctx, s, dst.Name, &src.Attr, &copied)
	}
	j.progress.Add(progress.Skipped, 1)
	j.progress.Add(progress.FoundBytes, -src.Attr.Size)
	j.progress.Add(progress.SkippedBytes, src.Attr.Size)
	return copied, true, fatal, nil
}

// noted returns the record's entry for name. first says that one of the first programs wrote
// it: its entries say nothing about access control lists and extended attributes.
func (j *copyJob) noted(s *dirState, name string) (was recorded, first, ok bool, err error) {
	was, ok, err = j.record.find(j.record.fileKey(s.key, name))
	if ok || err != nil || j.record.version > 1 {
		return was, false, ok, err
	}
	was, ok, err = j.record.find(s.firstKey().child(name))
	return was, true, ok, err
}

// firstKey is the directory's key as the first programs made it: with another root, and with
// the hash's lowest bit kept.
func (s *dirState) firstKey() pathKey {
	if s.dir == nil || s.dir.Parent == nil {
		return pathKey{}
	}
	return s.up(s.dir).firstKey().hash(s.dir.Name)
}

// doubts reports whether a file with the copy's size and time has to be compared. other says
// that its file id is not the copy's. A file that is to get further names is always compared
// then, because an entry with its id is needed (isCopy).
func (j *copyJob) doubts(src *transfer.Source, other bool) bool {
	if !other {
		j.ids.keep()
		return j.o.Verify
	}
	return j.o.Verify || src.Attr.Nlink > 1 || j.ids.doubt()
}

// same compares the copy with its source. From a copy with another id it learns whether
// the destination's ids last.
func (j *copyJob) same(ctx context.Context, s *dirState, src *transfer.Source, copied *object, other bool) bool {
	same := j.sameAgain(ctx, s, src, copied)
	if other {
		j.ids.compared(same)
	}
	return same
}

// maxRenewed is how many more copies must be the same under another file id than have kept
// theirs, before ids count as not lasting. Some file systems renumber files at each mount,
// and a destination may be restored from a backup. From then on size and time suffice.
const maxRenewed = 16

// copyIDs finds out whether the destination's file ids last. As long as they do, a file with
// another id than the copy's is compared: somebody may have exchanged the names of two
// copies. Once one such file differs, all of them are compared.
type copyIDs struct {
	mu         sync.Mutex
	kept, same int
	differed   bool
}

// keep notes a copy that has kept its id.
func (k *copyIDs) keep() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept++
}

// doubt reports whether a file with another id has to be compared.
func (k *copyIDs) doubt() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.differed || k.same < k.kept+maxRenewed
}

// compared notes whether a file with another id had the copy's contents.
func (k *copyIDs) compared(same bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if same {
		k.same++
	} else {
		k.differed = true
	}
}

// asCopied gives a copy of an earlier run its owner, mode, lists and extended attributes again, if
// somebody has changed them. It counts what could not be kept, as that run did. It reads the
// source's access control list only if the record has one or the modes differ, and its extended
// attributes only if the record has some.
func (j *copyJob) asCopied(ctx context.Context, s *dirState, src *transfer.Source, copied *object) error {
	want := src.Attr
	want.Valid &= vfs.MaskType | vfs.MaskMode | vfs.MaskUID | vfs.MaskGID
	want.Mode &= 0o7777
	lists := transfer.Lists{Mode: want.Mode}
	if copied.listed || copied.attr.Mode&0o7777 != want.Mode {
		var err error
		if lists, err = j.t.Lists(ctx, src, &src.Attr); err != nil {
			return err
		}
	}
	set, lost, err := j.t.KeepAll(ctx, j.o.Dest.FS, copied.handle, &want, &copied.attr, &lists)
	if err != nil {
		return err
	}
	if copied.xattr {
		var marked bool
		owned := j.o.Owner && !lost.Owner || want.UID == copied.attr.UID && want.GID == copied.attr.GID
		if marked, lost.Xattr, err = src.KeepXattrs(ctx, j.o.Dest.FS, copied.handle, owned); err != nil {
			return err
		}
		set = set || marked
	}
	lost.Times = transfer.TimesLost(ctx, j.o.Dest.FS, copied.handle, &src.Attr, &copied.attr)
	j.lost(lost, s.path(src.Name))
	if !set {
		return nil
	}
	j.attrsSet.Add(1)
	j.tell(s.path(src.Name))
	return j.syncLater(ctx, copied.handle)
}

// keptLinks maps files of the destination with several names to the file of the source that
// each is the copy of. It holds maxLinked; further files are taken for copies unchecked.
type keptLinks struct {
	mu sync.Mutex
	of map[objectID]objectID
}

// another reports whether dst was already met as the copy of another file than src: somebody
// has linked the two copies. Then src needs a copy of its own.
func (k *keptLinks) another(src, dst *vfs.Attr) bool {
	s, sok := idOf(src)
	d, dok := idOf(dst)
	if !sok || !dok || dst.Nlink < 2 {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if of, met := k.of[d]; met {
		return of != s
	}
	if k.of == nil {
		k.of = make(map[objectID]objectID)
	}
	if len(k.of) < maxLinked {
		k.of[d] = s
	}
	return false
}

// sameAgain compares a copy of an earlier run with its source. If the comparison fails, the
// file is copied again, which meets the same error or none.
func (j *copyJob) sameAgain(ctx context.Context, s *dirState, src *transfer.Source, copied *object) bool {
	t := transfer.Options{Pool: j.t.Pool, Chunk: j.t.Chunk, Budget: j.t.Budget, Throttle: j.t.Throttle}
	cmp, err := j.hands.Compare(ctx, s.where(), *src, transfer.Source{FS: j.o.Dest.FS, Handle: copied.handle, Attr: copied.attr}, src.Attr.Size, &t)
	if err != nil {
		return false
	}
	if cmp.Differ {
		j.progress.Report(progress.Event{
			Type: "note", Path: s.path(src.Name), Message: fmt.Sprintf("the copy of an earlier run differs at byte %d; it is copied again", cmp.Offset),
		})
	}
	return !cmp.Differ
}

// path is the path of name in the directory, for messages.
func (s *dirState) path(name string) string {
	if s.dir == nil {
		return name // of a single object
	}
	return s.dir.Path(name)
}

// dirPath is the path of the directory name; that of the copy itself is empty.
func (s *dirState) dirPath(name string) string {
	if s.dir == nil {
		return ""
	}
	return s.dir.Path(name)
}
