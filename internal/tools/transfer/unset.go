package transfer

import (
	"context"
	"math"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// A server may answer that attributes are set, and not set them. The attributes that come
// with its answer show that. If none come, the answer is believed.

// notSet returns those owners in m that differ in want and in a, as far as a has them.
func notSet(want, a *vfs.Attr, m vfs.Mask) vfs.Mask {
	return m & a.Valid & ownersDiffer(want, a)
}

// noteUnset notes in l which attributes in set, but for the owners, h is known not to have:
// a came back after they were set.
func (l *Lost) noteUnset(ctx context.Context, f vfs.FS, h vfs.Handle, set *vfs.SetAttr, a *vfs.Attr) {
	if set.Valid&a.Valid&vfs.MaskMode != 0 {
		l.SetID = l.SetID || set.Mode&^a.Mode&(setUID|setGID) != 0
		l.Mode = (set.Mode^a.Mode)&0o1777 != 0 || a.Mode&^set.Mode&(setUID|setGID) != 0
	}
	l.Times = l.Times || TimesLost(ctx, f, h, &vfs.Attr{Valid: set.Valid, Atime: set.Atime, Mtime: set.Mtime}, a)
}

// TimesLost reports whether h, a copy with the attributes have, lacks a time of want. Many
// file systems keep no atime, or a rough one, and that is not counted. An atime that NFSv3
// cannot express is. If h's times may be coarse, the file system is asked (vfs.FS.Info).
func TimesLost(ctx context.Context, f vfs.FS, h vfs.Handle, want, have *vfs.Attr) bool {
	both := want.Valid & have.Valid
	if both&vfs.MaskMtime != 0 && !near(ctx, f, h, want.Mtime, have.Mtime) {
		return true
	}
	return both&vfs.MaskAtime != 0 && !fitsNFS(want.Atime) && !near(ctx, f, h, want.Atime, have.Atime)
}

// NFSTime is the time nearest to t that NFSv3 has: its seconds have 32 bits, without a
// sign (RFC 1813, section 2.5, nfstime3).
func NFSTime(t time.Time) time.Time {
	switch sec := t.Unix(); {
	case sec < 0:
		return time.Unix(0, 0)
	case sec > math.MaxUint32:
		return time.Unix(math.MaxUint32, 999_999_999)
	}
	return t
}

// fitsNFS reports whether NFSv3 has the time.
func fitsNFS(t time.Time) bool { return NFSTime(t).Equal(t) }

// units are the resolutions that file systems have: NTFS, databases and older
// protocols, ext3, FAT. Few servers say so.
var units = [...]time.Duration{100, time.Microsecond, time.Millisecond, time.Second, 2 * time.Second}

// near reports whether got is want as a file system of coarser times keeps it.
func near(ctx context.Context, f vfs.FS, h vfs.Handle, want, got time.Time) bool {
	apart := want.Sub(got).Abs()
	if apart == 0 {
		return true
	}
	if apart >= units[len(units)-1] {
		return false
	}
	for _, u := range units {
		if got.Equal(want.Truncate(u)) {
			return true
		}
	}
	info, err := f.Info(ctx, h, vfs.InfoLimits)
	return err == nil && info.Valid&vfs.InfoLimits != 0 && apart < info.TimeDelta
}
