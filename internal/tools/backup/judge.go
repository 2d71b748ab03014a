package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// Change is a set of differences between an object and what an earlier snapshot has of it.
type Change uint8

// The differences. Another type or device number, and another size, always count: content of another size is other
// content.
const (
	Size Change = 1 << iota
	Mtime
	Ctime
	FileID
	All = Size | Mtime | Ctime | FileID
)

var changes = []string{"size", "mtime", "ctime", "fileid"}

// ParseChange reads a list of differences, with commas between.
func ParseChange(list string) (c Change, err error) {
	for word := range strings.SplitSeq(list, ",") {
		i := slices.Index(changes, strings.TrimSpace(word))
		if i < 0 {
			return 0, fmt.Errorf("%q is none of %s", word, strings.Join(changes, ", "))
		}
		c |= 1 << i
	}
	return c | Size, nil
}

// verdict says whether an object is as an earlier snapshot has it.
type verdict struct {
	why   string // why it cannot be taken from there; "": it can
	from  *past
	old   *snapshot.Entry // as the writer can add it; nil in a dry run
	begun *snapshot.Entry // of a file that is to be read, what is stored of it; nil: nothing
	blind bool            // its lists and extended attributes have to be asked for
	pack  bool            // its content is to be copied to another pack, and old is as the earlier snapshot has it
}

// judge judges an object.
func (r *run) judge(ctx context.Context, a *vfs.Attr, there *vfs.Entry) (v verdict, err error) {
	if r.was == nil || there == nil || there.Attr.Type != a.Type {
		return verdict{why: "new"}, nil
	}
	from, h := r.was.source(&there.Handle)
	if v.why = from.differs(a, &there.Attr); v.why != "" {
		if from.partial && v.why == "size" && a.Type == vfs.TypeReg && a.Size > there.Attr.Size {
			err = r.begun(ctx, &v, from, h, a, &there.Attr)
		}
		return v, err
	}
	if v.old, err = from.s.Entry(ctx, h); err == nil && v.old.Changed {
		return verdict{why: "changed"}, nil
	}
	if err == nil && from.s == r.o.Base {
		v.pack = r.repack.take(&v.old.Content)
	}
	if err == nil && r.w != nil && !v.pack {
		err = r.w.Reuse(ctx, from.s, v.old)
	}
	if errors.Is(err, snapshot.ErrDamaged) {
		r.was.tell(from, string(there.Name), err)
		return verdict{why: "damaged"}, nil
	}
	v.from = from
	v.blind = !from.sees(a.Type) || !a.Ctime.Equal(there.Attr.Ctime)
	return v, err
}

// begun finds out whether b, of a checkpoint, is the beginning of a file.
func (r *run) begun(ctx context.Context, v *verdict, from *past, h vfs.Handle, a, b *vfs.Attr) error {
	old, err := from.s.Entry(ctx, h)
	if err == nil && old.Of == 0 {
		return nil
	}
	if err == nil && r.w != nil {
		err = r.w.Reuse(ctx, from.s, old)
	}
	if err == nil && r.proof != nil {
		err = r.w.Whole(ctx, old)
	}
	if errors.Is(err, snapshot.ErrDamaged) {
		r.distrust(err)
		return nil // it is read
	}
	v.why = "new"
	now := *a
	if now.Size = b.Size; err == nil && old.Of == a.Size && from.differs(&now, b) == "" {
		v.begun = old
	}
	return err
}

// differs says in what an object differs from b, which the snapshot has; "" if it does not.
func (s *past) differs(a, b *vfs.Attr) string {
	switch {
	case a.Size != b.Size || a.Rdev != b.Rdev:
		return "size"
	case s.change&Mtime != 0 && !a.Mtime.Equal(b.Mtime):
		return "mtime"
	case s.change&Ctime != 0 && !a.Ctime.Equal(b.Ctime):
		return "ctime"
	case s.change&FileID != 0 && a.FileID != b.FileID:
		return "fileid"
	case s.recent(a):
		return "recent"
	}
	return ""
}

// recent reports whether an object may have changed behind the reading before, with the times that it had already. An mtime of the
// future is somebody's choice, or of a clock that is ahead: ctime, which nobody sets, tells the one from the other.
func (s *past) recent(a *vfs.Attr) bool {
	if s.change&Ctime == 0 {
		return a.Mtime.After(s.since)
	}
	return a.Ctime.After(s.since) || a.Mtime.After(s.since) && !a.Mtime.After(s.until)
}

// same reports whether a directory is the one that the snapshot has, with the lists and extended attributes that it had.
func (s *past) same(a, b *vfs.Attr) bool {
	return s.sees(b.Type) && b.Type == vfs.TypeDir && a.FileID == b.FileID && a.Ctime.Equal(b.Ctime) && !a.Ctime.After(s.since)
}
