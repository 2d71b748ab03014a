package job

import (
	"context"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// compareAttrs compares the attributes that every type has.
func (j *verifyJob) compareAttrs(ctx context.Context, p *pair) error {
	src, dst := &p.src.Attr, &p.dst.attr
	if src.Type != vfs.TypeSymlink && src.Mode != dst.Mode {
		if err := j.compareModes(ctx, p); err != nil {
			return err
		}
	}
	j.compareTimes(p)
	if j.o.Owner && (src.UID != dst.UID || src.GID != dst.GID) {
		j.differ(p.path(), DiffOwner, "%d:%d, and in the destination %d:%d", src.UID, src.GID, dst.UID, dst.GID)
	}
	if j.o.ACLs {
		return j.compareLists(ctx, p)
	}
	return nil
}

// times is what two sides keep of times.
type times struct {
	delta time.Duration // times that are closer than this are the same
	nfs   bool          // the destination may have, for a time that NFSv3 has not, the nearest that it has
}

// timesOf finds out what both sides keep.
func timesOf(ctx context.Context, src, dst Place) (times, error) {
	kept := times{delta: 1}
	for _, p := range [...]struct {
		name string
		Place
	}{{"source", src}, {"destination", dst}} {
		info, err := p.FS.Info(ctx, p.Handle, vfs.InfoLimits)
		if err != nil {
			return times{}, fmt.Errorf("limits of the %s: %w", p.name, err)
		}
		kept.delta, kept.nfs = max(kept.delta, info.TimeDelta), info.NFSTimes
	}
	return kept, nil
}

// same reports whether two times are the same, as far as both sides keep them.
func (t times) same(src, dst time.Time) bool { return t.equal(src, dst) || t.nearest(src, dst) }

// equal reports whether both sides have the time.
func (t times) equal(src, dst time.Time) bool { return src.Sub(dst).Abs() < t.delta }

// nearest reports whether dst is what the destination has for src, as the nearest time.
func (t times) nearest(src, dst time.Time) bool {
	return t.nfs && transfer.NFSTime(src).Sub(dst).Abs() < t.delta
}

// compareLists compares access control lists, which symbolic links have not, and extended attributes.
func (j *verifyJob) compareLists(ctx context.Context, p *pair) error {
	a := transfer.Source{FS: j.o.Source.FS, Handle: p.src.Handle, Attr: p.src.Attr}
	b := transfer.Source{FS: j.o.Dest.FS, Handle: p.dst.handle, Attr: p.dst.attr}
	in, out, same, err := j.t.CompareLists(ctx, &a, &b)
	switch {
	case err != nil:
		return err
	case same:
	case !out.Some():
		j.differ(p.path(), DiffACL, "an access control list, and in the destination none")
	case !in.Some():
		j.differ(p.path(), DiffACL, "no access control list, and in the destination one")
	default:
		j.differ(p.path(), DiffACL, "another access control list in the destination")
	}
	names, more, err := transfer.DifferingXattrs(ctx, &a, &b)
	names = append(names, more...)
	if err == nil && len(names) > 0 {
		j.differ(p.path(), DiffXattr, "%d extended attributes differ, the first is %s", len(names), shorten(names[0]))
	}
	return err
}

// compareTimes reports mtimes that differ. If the destination is one of NFSv3, which does not have the source's,
// the nearest that it has, as Copy sets it, is counted as a lost time and no difference.
func (j *verifyJob) compareTimes(p *pair) {
	was, is := p.src.Attr.Mtime, p.dst.attr.Mtime
	switch {
	case j.times.equal(was, is):
	case j.times.nearest(was, is):
		if j.timesLost.Add(1) == 1 {
			j.progress.Report(progress.Event{Type: "note", Path: p.path(), Message: fmt.Sprintf(
				"NFSv3 does not have the time %s; the copy has the nearest one, %s (further such items are counted, and not listed)", shown(was), shown(is))})
		}
	default:
		j.differ(p.path(), DiffMtime, "%s, and in the destination %s", shown(was), shown(is))
	}
}

func shown(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// compareModes reports modes that differ. If the source has an access control list, which the
// copy may not have, the group's bits of its mode are the list's mask. A copy with the group's own
// rights, as Copy makes it, is counted as a lost list and no difference.
func (j *verifyJob) compareModes(ctx context.Context, p *pair) error {
	src, dst := &p.src.Attr, &p.dst.attr
	from := transfer.Source{FS: j.o.Source.FS, Handle: p.src.Handle, Attr: *src}
	lists, err := j.t.Lists(ctx, &from, src)
	if err != nil {
		return err
	}
	plain := lists.Mode
	if plain == src.Mode&0o7777 || plain != dst.Mode&0o7777 {
		j.differ(p.path(), DiffMode, "%04o, and in the destination %04o", src.Mode, dst.Mode)
		return nil
	}
	if j.aclsLost.Add(1) == 1 {
		j.progress.Report(progress.Event{Type: "note", Path: p.path(), Message: fmt.Sprintf(
			"an access control list, which the copy does not have, makes its mode %04o; without the list it is %04o, as that of the copy (further such items are counted, and not listed)", src.Mode, dst.Mode)})
	}
	return nil
}
