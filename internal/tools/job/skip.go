package job

import (
	"context"
	"fmt"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// before reports whether an earlier run has done a file: whether the record has the file as
// it is now, and the destination still has the copy that was made of it. What is not the
// copy's any more of owner and mode it gets again. A copy that shall be verified, and one
// that may be another file by now, is compared; if it differs, it is not done. fatal ends
// the job.
func (j *copyJob) before(ctx context.Context, s *dirState, src *transfer.Source, dst *transfer.Target) (copied object, known bool, fatal, err error) {
	was, first, ok, err := j.noted(s, dst.Name)
	if !ok || err != nil || !was.isSource(&src.Attr) {
		return copied, false, nil, err
	}
	copied, ok, err = lookup(ctx, dst.FS, dst.Dir, dst.Name)
	if err != nil {
		return copied, false, nil, fmt.Errorf("destination: %w", err)
	}
	if !ok || !was.isCopy(&copied.attr) || j.kept.another(&src.Attr, &copied.attr) {
		return copied, false, nil, nil
	}
	copied.listed, copied.xattr = was.listed || first, was.xattr || first && src.HasXattrs(ctx)
	other := was.hasOtherID(&copied.attr)
	compare := j.doubts(src, other)
	if compare && !j.same(ctx, s, src, &copied, other) {
		return copied, false, nil, ctx.Err()
	}
	if err := j.asCopied(ctx, src, &copied); err != nil {
		return copied, false, nil, ctx.Err() // to copy it again meets the same error, or none
	}
	if j.o.Verify {
		j.progress.Add(progress.Verified, 1)
	}
	if other && compare || first { // what was not compared is doubted the next time, too
		fatal = j.finished(ctx, s, dst.Name, &src.Attr, &copied)
	}
	j.progress.Add(progress.Skipped, 1)
	j.progress.Add(progress.FoundBytes, -src.Attr.Size)
	return copied, true, fatal, nil
}

// noted is what the record has of name. first says that one of the first programs has noted
// it, which did not say whether there was an access control list, or were attributes.
func (j *copyJob) noted(s *dirState, name string) (was recorded, first, ok bool, err error) {
	was, ok, err = j.record.find(s.key.child(name))
	if ok || err != nil || j.record.version > 1 {
		return was, false, ok, err
	}
	was, ok, err = j.record.find(s.firstKey().child(name))
	return was, true, ok, err
}

// firstKey is the directory's key as the first programs made it: with another root, and of
// whole hashes.
func (s *dirState) firstKey() pathKey {
	if s.dir == nil || s.dir.Parent == nil {
		return pathKey{}
	}
	return s.up(s.dir).firstKey().hash(s.dir.Name)
}

// doubts reports whether what has the size and the time of the copy has to be compared. other
// says that it has not its file id. One that is to get further names has to be what the record
// says then (isCopy).
func (j *copyJob) doubts(src *transfer.Source, other bool) bool {
	if !other {
		j.ids.keep()
		return j.o.Verify
	}
	return j.o.Verify || src.Attr.Nlink > 1 || j.ids.doubt()
}

// same compares the copy with its source, and learns from it whether file ids last.
func (j *copyJob) same(ctx context.Context, s *dirState, src *transfer.Source, copied *object, other bool) bool {
	same := j.sameAgain(ctx, s, src, copied)
	if other {
		j.ids.compared(same)
	}
	return same
}

// maxRenewed is how many more copies with another file id have to prove the same than have
// kept theirs. Then the ids of the destination do not last: there are file systems that give
// them anew with each mount, and destinations that were restored from a backup. From there on
// size and time are believed without them.
const maxRenewed = 16

// copyIDs finds out whether the file ids of the destination last. As long as they do, a file
// with another id than the copy's is compared: somebody may have given two copies each other's
// name. Once one has proved another file, all are compared.
type copyIDs struct {
	mu         sync.Mutex
	kept, same int
	differed   bool
}

// keep takes note of a copy that has kept its id.
func (k *copyIDs) keep() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept++
}

// doubt reports whether a file of another id has to be compared. While it is, more of them
// are: nothing is believed before enough have been.
func (k *copyIDs) doubt() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.differed || k.same < k.kept+maxRenewed
}

// compared takes note of a file of another id that was the copy, or was not.
func (k *copyIDs) compared(same bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if same {
		k.same++
	} else {
		k.differed = true
	}
}

// asCopied gives a copy of an earlier run the owner and the mode that it was given then, if
// somebody has changed them, and counts what could not be preserved, as that run did. For an
// access control list it asks only if there was one, or if the modes are not the same.
func (j *copyJob) asCopied(ctx context.Context, src *transfer.Source, copied *object) error {
	want := src.Attr
	want.Valid &= vfs.MaskType | vfs.MaskMode | vfs.MaskUID | vfs.MaskGID
	want.Mode &= 0o7777
	acl := false
	if copied.listed || copied.attr.Mode&0o7777 != want.Mode {
		var err error
		if want.Mode, acl, err = j.t.PlainMode(ctx, src, &src.Attr); err != nil {
			return err
		}
	}
	set, lost, err := transfer.KeepAttrs(ctx, j.o.Dest.FS, copied.handle, &want, &copied.attr, j.t.Owners)
	if err != nil {
		return err
	}
	lost.ACL, lost.Xattr = acl, copied.xattr
	j.lost(lost)
	if !set {
		return nil
	}
	j.attrsSet.Add(1)
	return j.syncLater(ctx, copied.handle)
}

// keptLinks knows which file of the source the files of the destination stand for that were
// found there with several names: maxLinked of them. Further ones are believed.
type keptLinks struct {
	mu sync.Mutex
	of map[objectID]objectID
}

// another reports whether dst was met as the copy of another file than src: somebody has
// made one of the two. Then each of them needs a copy of its own.
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

// sameAgain compares a copy of an earlier run with its source. One that cannot be
// compared is made again, which meets the same error or none.
func (j *copyJob) sameAgain(ctx context.Context, s *dirState, src *transfer.Source, copied *object) bool {
	t := transfer.Options{Pool: j.t.Pool, Chunk: j.t.Chunk, Window: j.t.Window, Budget: j.t.Budget}
	cmp, err := transfer.Compare(ctx, *src, transfer.Source{FS: j.o.Dest.FS, Handle: copied.handle, Attr: copied.attr}, src.Attr.Size, &t)
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

// path is the path of name in the directory, as it is shown.
func (s *dirState) path(name string) string {
	if s.dir == nil {
		return name // of a single object
	}
	return s.dir.Path(name)
}

// dirPath is the path of the directory name. That of the copy itself is empty.
func (s *dirState) dirPath(name string) string {
	if s.dir == nil {
		return ""
	}
	return s.dir.Path(name)
}
