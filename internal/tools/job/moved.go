package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxGoneDirs bounds the directories that have vanished and are looked for in the end, about
// 200 bytes each. Further ones are only counted.
const maxGoneDirs = 4096

// goneDirs are directories of the source that vanished after they were listed. Where a handle
// follows a name, a directory vanishes as well if somebody moves it. If it was moved to a place
// that the walk had passed, what is below it is in no copy.
type goneDirs struct {
	mu   sync.Mutex
	n    uint64
	dirs map[objectID]goneDir
}

// goneDir is a directory that has vanished, as it was listed.
type goneDir struct {
	path   string
	handle vfs.Handle
	born   time.Time // zero: the file system does not tell
}

// is reports whether d is the directory with the handle h and the attributes a, which have its
// file id. A file id is used again as soon as its directory is removed.
func (d *goneDir) is(h vfs.Handle, a *vfs.Attr) bool {
	if now := bornAt(a); !d.born.IsZero() && !now.IsZero() {
		return d.born.Equal(now)
	}
	return d.handle == h
}

func bornAt(a *vfs.Attr) (t time.Time) {
	if a.Has(vfs.MaskBtime) {
		t = a.Btime
	}
	return t
}

// add notes a directory that has vanished, once.
func (g *goneDirs) add(path string, h vfs.Handle, a *vfs.Attr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id, ok := idOf(a)
	if have, met := g.dirs[id]; ok && met && have.is(h, a) {
		return
	}
	if g.n++; !ok || len(g.dirs) >= maxGoneDirs {
		return
	}
	if g.dirs == nil {
		g.dirs = make(map[objectID]goneDir)
	}
	g.dirs[id] = goneDir{path, h, bornAt(a)}
}

// take returns the path of the directory with the handle h and the attributes a, if it had
// vanished, and how many more are looked for.
func (g *goneDirs) take(h vfs.Handle, a *vfs.Attr) (path string, more int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id, ok := idOf(a)
	if was, met := g.dirs[id]; ok && met && was.is(h, a) {
		path = was.path
		delete(g.dirs, id)
	}
	return path, len(g.dirs)
}

// count is how many have vanished.
func (g *goneDirs) count() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}

// findMoved looks in the whole source for the directories that have vanished. One that is
// there under another name is a failure, unless a walk has entered it under that.
func (c *crew) findMoved(ctx context.Context) error {
	if _, some := c.dirs.take(vfs.Handle{}, new(vfs.Attr)); some == 0 {
		return nil
	}
	err := walk.Tree(ctx, c.source.at.FS, c.source.at.Handle, c.choosing(walk.Options{}), &finder{c})
	if errors.Is(err, errFound) {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.failMore(ctx, ".", fmt.Errorf("look for the directories that have vanished: %w", err))
	}
	return nil
}

// errFound ends the search.
var errFound = errors.New("all are found")

// finder is the visitor of the search.
type finder struct{ *crew }

func (f *finder) Enter(ctx context.Context, d *walk.Dir) error {
	was, more := f.dirs.take(d.Handle, &d.Attr)
	if now := d.Path(""); was != "" && was != now && !f.entered(d) { // one that is back is an error already
		f.failMore(ctx, was, fmt.Errorf("it was moved to %s meanwhile, and what is below it may be missing: run the same command again", now))
	}
	if more == 0 {
		return errFound
	}
	return nil
}

// entered reports whether a walk of this run has entered d, under this name.
func (f *finder) entered(d *walk.Dir) bool {
	return f.seen[0].has(d)
}

func (*finder) Entry(context.Context, *walk.Dir, *vfs.Entry) error { return nil }

func (*finder) Fault(context.Context, *walk.Dir, string, error) error { return nil }

func (*finder) Leave(context.Context, *walk.Dir, error) error { return nil }
