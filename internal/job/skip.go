package job

import (
	"context"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/progress"
	"github.com/nfsbox/nfsbox/internal/transfer"
)

// before reports whether an earlier run has done a file: whether the record has the file as it is now, and the destination
// still has the copy that was made of it. A copy that shall be verified and was not,
// when it was made, is compared now; if it differs, it is not done. fatal ends the job.
func (j *copyJob) before(ctx context.Context, s *dirState, src *transfer.Source, dst *transfer.Target) (copied object, known bool, fatal, err error) {
	was, ok, err := j.record.find(s.key.child(dst.Name))
	if !ok || err != nil || !was.isSource(&src.Attr) {
		return copied, false, nil, err
	}
	copied, ok, err = lookup(ctx, dst.FS, dst.Dir, dst.Name)
	if err != nil {
		return copied, false, nil, fmt.Errorf("destination: %w", err)
	}
	if !ok || !was.isCopy(&copied.attr) {
		return copied, false, nil, nil
	}
	if j.o.Verify && !was.verified {
		if !j.sameAgain(ctx, s, src, &copied) {
			return copied, false, nil, ctx.Err()
		}
		j.progress.Add(progress.Verified, 1)
		fatal = j.finished(ctx, s, dst.Name, &src.Attr, &copied.attr)
	}
	j.progress.Add(progress.Skipped, 1)
	j.progress.Add(progress.FoundBytes, -src.Attr.Size)
	return copied, true, fatal, nil
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
