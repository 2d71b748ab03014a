package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// A directory is listed once. What somebody moves into it afterwards, from a part of the source
// that was not listed yet, is met nowhere. So in the end each directory is looked up once more,
// by its name, from the root down: one call for a directory, many at once. One whose times are
// not those from before its listing has changed, or another has its name.
//
// What no times can show: a change within the same tick of the source's clock as the change
// before it, if the directory was listed in between. A tick is some milliseconds on Linux, a
// second or two on old servers and on FAT. Nor can it show what changes after this look.

// maxSeen is how many directories of the source are looked at again in the end, about 130 bytes
// each. Further ones are looked at when they are left, and no more.
const maxSeen = 1 << 19

// seenDir is a directory of the source as it was before it was listed.
type seenDir struct {
	up    *seenDir // nil: the root
	name  string
	id    uint64 // hash of its identity
	times uint64 // hash of mtime and ctime
	below []*seenDir
	full  bool // there is no place for all that are below it

	// Known when they have been looked at again.
	changed  bool // its times, or its identity
	replaced bool // its identity
	way      bool // to a changed one
	missing  bool // something that was listed in it had vanished

	condemned bool // something of its copy, or below it, is to be deleted

	failed bool   // that it could not be looked at again was told
	late   string // what came into it after its last listing, and is older than that
}

// path is the directory's path in the source.
func (s *seenDir) path() string {
	if s.up == nil {
		return "."
	}
	return path.Join(s.up.path(), s.name)
}

// child finds a directory in s, once they have been sorted.
func (s *seenDir) child(name string) *seenDir {
	i, ok := slices.BinarySearchFunc(s.below, name, func(b *seenDir, name string) int { return cmp.Compare(b.name, name) })
	if !ok {
		return nil
	}
	return s.below[i]
}

// seenDirs are the directories that a walk has entered. Its methods may be called concurrently.
type seenDirs struct {
	mu      sync.Mutex
	seed    maphash.Seed
	root    *seenDir
	n       int
	changed []*seenDir
	newest  time.Time // the latest ctime of those that have changed
}

// seenTimes are the attributes by which a directory is known again.
const seenTimes = vfs.MaskType | vfs.MaskFSID | vfs.MaskFileID | vfs.MaskMtime | vfs.MaskCtime

// add notes a directory below up, or the root. It is nil if there is no place for it.
func (t *seenDirs) add(up *seenDir, name string, a *vfs.Attr) *seenDir {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case up == nil && t.root != nil:
		return nil
	case t.n >= maxSeen:
		up.full = true
		return nil
	case t.seed == maphash.Seed{}:
		t.seed = maphash.MakeSeed()
	}
	s := &seenDir{up: up, name: name}
	s.id, s.times = t.hashes(a)
	if t.n++; up == nil {
		t.root = s
	} else {
		up.below = append(up.below, s)
	}
	return s
}

// has reports whether d was entered, under its name. Of one below what was gone or replaced when
// it was looked at again, it may say no.
func (t *seenDirs) has(d *walk.Dir) bool {
	s := t.find(d)
	if s == nil {
		return false
	}
	id, _ := t.hashes(&d.Attr)
	return s.id == id
}

// find returns what is known of the name of d. The directories have been looked at again.
func (t *seenDirs) find(d *walk.Dir) *seenDir {
	if d.Parent == nil {
		return t.root
	}
	up := t.find(d.Parent)
	if up == nil {
		return nil
	}
	return up.child(d.Name)
}

func (t *seenDirs) hashes(a *vfs.Attr) (id, times uint64) {
	is, _ := idOf(a)
	return maphash.Comparable(t.seed, is), maphash.Comparable(t.seed, [2]stamp{stampOf(a.Mtime), stampOf(a.Ctime)})
}

// judge compares a directory with what it is now.
func (t *seenDirs) judge(s *seenDir, now *vfs.Attr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, times := t.hashes(now)
	s.replaced = id != s.id
	if !s.replaced && times == s.times {
		return
	}
	t.mark(s)
	if now.Has(vfs.MaskCtime) && now.Ctime.After(t.newest) {
		t.newest = now.Ctime
	}
}

// mark notes that s has changed. seenDirs.mu is held.
func (t *seenDirs) mark(s *seenDir) {
	if s.changed {
		return
	}
	s.changed = true
	t.changed = append(t.changed, s)
	for up := s.up; up != nil && !up.way; up = up.up {
		up.way = true
	}
}

// update takes over what a later walk has seen, which has listed the changed directories again. They
// count as unchanged until they are looked at once more. later has the seed of t.
func (t *seenDirs) update(later *seenDirs) {
	if later.root != nil {
		t.graft(t.root, later.root)
	}
	t.root.settle()
	t.changed, t.newest = nil, time.Time{}
}

// graft brings s, and what is below it, up to date. One that was not listed again stays as it was.
func (t *seenDirs) graft(s, now *seenDir) {
	if s.changed {
		s.id, s.times = now.id, now.times
	}
	if s.replaced {
		s.below, s.full = nil, now.full
	}
	var more []*seenDir
	for _, b := range now.below {
		if was := s.child(b.name); was != nil {
			t.graft(was, b)
			continue
		}
		if n := b.count(); t.n+n <= maxSeen {
			b.up, t.n = s, t.n+n
			more = append(more, b)
		} else {
			s.full = true
		}
	}
	s.below = append(s.below, more...) // in order when they have been looked at
}

func (s *seenDir) count() int {
	n := 1
	for _, b := range s.below {
		n += b.count()
	}
	return n
}

// settle forgets what looking at s again has shown, and at what is below it.
func (s *seenDir) settle() {
	s.changed, s.replaced, s.way = false, false, false
	for _, b := range s.below {
		b.settle()
	}
}

// lookOver looks at the directories of t once more, and returns those that have changed, in the
// order of their paths.
func (c *crew) lookOver(ctx context.Context, t *seenDirs) ([]*seenDir, error) {
	if t.root == nil {
		return nil, nil
	}
	at := c.source.at
	now, err := at.FS.GetAttr(ctx, at.Handle, seenTimes)
	if gone, err := noMore(err); gone || err != nil {
		c.failMore(ctx, ".", err)
		return nil, ctx.Err()
	}
	t.judge(t.root, &now)
	c.lookBelow(ctx, t, t.root, at.Handle)
	slices.SortFunc(t.changed, func(a, b *seenDir) int { return cmp.Compare(a.path(), b.path()) })
	return t.changed, ctx.Err()
}

// noMore divides the errors of a directory that is looked at again. Of one that is gone, nothing
// is left to be copied.
func noMore(err error) (gone bool, other error) {
	if err == nil || isGone(err) || errors.Is(err, vfs.ErrNotDir) {
		return err != nil, nil
	}
	return false, fmt.Errorf("look whether the directory has changed: %w", err)
}

// lookBelow looks at what is below s, which has the handle h now. Where there is a free slot, it
// does so beside the others.
func (c *crew) lookBelow(ctx context.Context, t *seenDirs, s *seenDir, h vfs.Handle) {
	slices.SortFunc(s.below, func(a, b *seenDir) int { return cmp.Compare(a.name, b.name) })
	var wg sync.WaitGroup
	for _, b := range s.below {
		if ctx.Err() != nil {
			break
		}
		select {
		case c.slots <- struct{}{}:
			wg.Go(func() {
				defer func() { <-c.slots }()
				c.look(ctx, t, b, h)
			})
		default:
			c.look(ctx, t, b, h)
		}
	}
	wg.Wait()
	if s.up != nil {
		forget(c.source.at.FS, h)
	}
}

// look looks at s, in the directory up, and at what is below it.
func (c *crew) look(ctx context.Context, t *seenDirs, s *seenDir, up vfs.Handle) {
	f := c.source.at.FS
	h, now, _, err := f.Lookup(ctx, up, s.name)
	if err == nil && !now.Has(seenTimes) {
		now, err = f.GetAttr(ctx, h, seenTimes)
	}
	gone, err := noMore(err)
	if err != nil && !s.failed {
		s.failed = true
		c.failMore(ctx, s.path(), err)
	}
	if gone || err != nil || now.Type != vfs.TypeDir {
		return
	}
	t.judge(s, &now)
	if !s.replaced {
		c.lookBelow(ctx, t, s, h)
	}
}

// hasChanged reports whether a directory for which t had no place has changed since its parent
// was listed. It is asked when the directory is left.
func (c *crew) hasChanged(ctx context.Context, d *walk.Dir) bool {
	now, err := c.source.at.FS.GetAttr(ctx, d.Handle, seenTimes)
	return err == nil && (!now.Mtime.Equal(d.Attr.Mtime) || !now.Ctime.Equal(d.Attr.Ctime))
}

// noteChanged tells of a directory that has changed, and is not looked at again.
func (c *crew) noteChanged(path, message string) {
	c.dirsChanged.Add(1)
	c.progress.Report(progress.Event{Type: "note", Kind: KindDirChanged, Path: path, Message: message})
}
