package cache

import (
	"context"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/cache/store"
	"github.com/nfsbox/nfsbox/vfs"
)

// grantKey is a caller and an object.
type grantKey struct {
	h   vfs.Handle
	who string
}

// grant is the right to read an object, as the server has told.
type grant struct {
	ctime time.Time // that the object had: whatever changes rights changes it
	until int64
}

// granted reports whether the server has let the caller read the object lately.
func (s *shared) granted(k grantKey, a *vfs.Attr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.grants[k]
	return ok && g.ctime.Equal(a.Ctime) && s.now() < g.until
}

func (s *shared) grant(k grantKey, a *vfs.Attr, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.grants) >= maxGrants {
		clear(s.grants)
	}
	s.grants[k] = grant{a.Ctime, now + int64(maxAge)}
}

// versioned are the attributes that tell one version of a file from another.
const versioned = vfs.MaskType | vfs.MaskSize | vfs.MaskMtime | vfs.MaskCtime | vfs.MaskFSID

// versionOf is the version that a file with these attributes has.
func versionOf(a *vfs.Attr) store.Version {
	v := store.Version{Size: a.Size, Mtime: a.Mtime, Ctime: a.Ctime}
	if a.Has(vfs.MaskChange) {
		v.Change = a.Change
	}
	return v
}

// ask returns the file's attributes, if the server lets the caller read it. What came with the open will do
// if the right is known.
func (f *file) ask(ctx context.Context, gen uint64) (a vfs.Attr, ok bool) {
	s, k := f.v.s, grantKey{f.h, f.v.who}
	now := s.now()
	if a, f.seen.Valid = f.seen, 0; a.Has(versioned) && f.seenGen == gen && now-f.seenAt < int64(minAge) && s.granted(k, &a) {
		return a, a.Type == vfs.TypeReg
	}
	rights, a, err := f.v.FS.Access(ctx, f.h, vfs.AccessRead)
	if err != nil || rights&vfs.AccessRead == 0 {
		return a, false
	}
	if !a.Has(versioned) {
		if a, err = f.v.FS.GetAttr(ctx, f.h, vfs.MaskV3); err != nil || !a.Has(versioned) {
			return a, false
		}
	}
	s.grant(k, &a, now)
	return a, a.Type == vfs.TypeReg
}

// settleTime is how long after a change its times tell it from the next one.
func (f *file) settleTime(ctx context.Context) time.Duration {
	s := f.v.s
	if d := s.settle.Load(); d != 0 {
		return time.Duration(d)
	}
	info, err := f.v.FS.Info(ctx, f.h, vfs.InfoLimits)
	if err != nil || info.Valid&vfs.InfoLimits == 0 {
		return unknownSettle
	}
	d := max(info.TimeDelta, minSettle)
	s.settle.Store(int64(d))
	return d
}

// settled reports whether bytes that were asked for at time sent are surely not older than l's version.
// A change is told from the one before if the clock of the server has moved on between them. By how much
// that clock and ours differ is not known, but bounded. If the version was seen here long enough
// before, no clock is needed.
func (f *file) settled(l *lease, sent time.Time, at int64, settle time.Duration) bool {
	if at-l.since >= int64(settle) {
		return true
	}
	most := settle + maxSkew
	since := sent.Sub(l.version.Mtime) // a time far ahead was set by a program, and says nothing
	return sent.Sub(l.version.Ctime) >= most && (since >= most || since <= -most)
}
