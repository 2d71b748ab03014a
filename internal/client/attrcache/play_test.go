package attrcache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/client/attrcache"
	"github.com/nfsbox/nfsbox/vfs"
)

// lossy is a file system of which some changes are made, and then fail.
type lossy struct {
	vfs.FS
	fails func() bool
}

func (l lossy) As(c *vfs.Caller) vfs.FS { return lossy{l.FS.As(c), l.fails} }
func (l lossy) Unwrap() any             { return l.FS }

func (l lossy) lose(err error) error {
	if err == nil && l.fails() {
		return fmt.Errorf("the reply is lost: %w", vfs.ErrUnknownOutcome)
	}
	return err
}

func (l lossy) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	h, a, w, err := l.FS.Create(ctx, dir, name, how)
	if err = l.lose(err); err != nil {
		return vfs.Handle{}, vfs.Attr{}, vfs.WCC{}, err
	}
	return h, a, w, err
}

func (l lossy) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	a, w, err := l.FS.Link(ctx, h, dir, name)
	return a, w, l.lose(err)
}

func (l lossy) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	w, err := l.FS.Remove(ctx, dir, name, isDir)
	return w, l.lose(err)
}

func (l lossy) Rename(ctx context.Context, fromDir vfs.Handle, fromName string, toDir vfs.Handle, toName string) (from, to vfs.WCC, err error) {
	from, to, err = l.FS.Rename(ctx, fromDir, fromName, toDir, toName)
	return from, to, l.lose(err)
}

// game plays operations that are drawn, through several callers.
type game struct {
	*rig
	draw  func(n int) int
	mu    sync.Mutex // of what follows
	dirs  []vfs.Handle
	all   []vfs.Handle
	files []vfs.File
}

var gameNames = []string{"a", "A", "b", "c"}

func newGame(r *rig, draw func(n int) int) *game {
	return &game{rig: r, draw: draw, dirs: []vfs.Handle{r.root}, all: []vfs.Handle{r.root}}
}

func (g *game) one(of []vfs.Handle) vfs.Handle {
	n := g.draw(len(of))
	g.mu.Lock()
	defer g.mu.Unlock()
	return of[n]
}

func (g *game) handles() (dirs, all []vfs.Handle) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]vfs.Handle(nil), g.dirs...), append([]vfs.Handle(nil), g.all...)
}

// made takes note of a handle.
func (g *game) made(h vfs.Handle, dir bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.all) < 40 {
		if g.all = append(g.all, h); dir {
			g.dirs = append(g.dirs, h)
		}
	}
}

// step makes one call. Whether it fails is the server's business.
func (g *game) step(ctx context.Context) {
	dirs, all := g.handles()
	fs := g.fs.As([]*vfs.Caller{nil, nil, {UID: 7}, {UID: 8, GID: 9}}[g.draw(4)])
	dir, h, name := g.one(dirs), g.one(all), gameNames[g.draw(len(gameNames))]
	switch g.draw(14) {
	case 0, 1:
		how := &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateMode(g.draw(2)), Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o666}}
		if g.draw(2) == 0 {
			how.Set.Valid |= vfs.MaskSize
		}
		if h, _, _, err := fs.Create(ctx, dir, name, how); err == nil {
			g.made(h, false)
		}
	case 2:
		if h, _, _, err := fs.Create(ctx, dir, name, &vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o777}}); err == nil {
			g.made(h, true)
		}
	case 3:
		_, _, _ = fs.Link(ctx, h, dir, name)
	case 4:
		_, _ = fs.Remove(ctx, dir, name, false)
	case 5:
		_, _ = fs.Remove(ctx, dir, name, true)
	case 6, 7:
		_, _, _ = fs.Rename(ctx, dir, name, g.one(dirs), gameNames[g.draw(len(gameNames))])
	case 8:
		_, _ = fs.SetAttr(ctx, h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: []uint32{0o700, 0o755, 0o777, 0o640}[g.draw(4)]}, nil)
	case 9:
		g.open(ctx, fs, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite, Trunc: g.draw(2) == 0})
	case 10:
		how := &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite, Trunc: g.draw(2) == 0}
		if g.draw(2) == 0 {
			how.Create = &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateMode(g.draw(2)), Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o666}}
		}
		g.open(ctx, fs, vfs.At{Dir: dir, Name: name}, how)
	case 11:
		for _, err := range fs.ReadDir(ctx, dir, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
			_ = err // what matters is what is kept of the entries
		}
	case 12:
		_, _, _, _ = fs.Lookup(ctx, dir, name)
	case 13:
		g.use(ctx)
	}
}

func (g *game) open(ctx context.Context, fs vfs.FS, at vfs.At, how *vfs.OpenHow) {
	f, o, err := fs.Open(ctx, at, how)
	if err != nil {
		return
	}
	if o.Created {
		g.made(o.H, false)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.files = append(g.files, f)
}

// use writes to an open file, or closes it.
func (g *game) use(ctx context.Context) {
	n, what := g.draw(64), g.draw(4)
	g.mu.Lock()
	if len(g.files) == 0 {
		g.mu.Unlock()
		return
	}
	n %= len(g.files)
	f := g.files[n]
	if what == 0 {
		g.files = append(g.files[:n], g.files[n+1:]...)
	}
	g.mu.Unlock()
	var w vfs.Written
	switch what {
	case 0:
		_ = f.Close(ctx)
	case 1:
		_, _ = f.Truncate(ctx, uint64(n))
	case 2:
		_, _ = f.WriteAt(ctx, []byte("some data"), uint64(n), vfs.Unstable, &w)
		_ = f.Commit(ctx, 0, 0, &w)
	default:
		_, _ = f.WriteAt(ctx, []byte("some data"), uint64(n), vfs.FileSync, &w)
	}
}

// compare compares one object, or all.
func (g *game) compare(all bool) {
	g.t.Helper()
	dirs, handles := g.handles()
	if !all {
		handles = []vfs.Handle{g.one(dirs), g.one(handles)}
	}
	differences(g.rig, handles, gameNames)
}

// gameOptions are what games are played with.
var gameOptions = []attrcache.Options{
	{Times: long},
	{Times: long, Objects: 5, MaxNames: 5},
	{Times: long, Names: attrcache.NamesPositive},
	{Times: long, Names: attrcache.NamesNone},
}

// play plays until draw has no more, and compares with the server at each step.
func play(t *testing.T, o attrcache.Options, loses bool, steps int, draw func(n int) int) {
	t.Helper()
	r := newRig(t, o)
	g := newGame(r, draw)
	switch {
	case loses:
		r.fs = attrcache.New(lossy{doubtful{r.server}, func() bool { return draw(8) == 0 }}, o)
	case draw(2) == 0:
		r.fs = attrcache.New(r.server, o) // which proves its changes
	}
	for range steps {
		g.step(t.Context())
		g.compare(false)
	}
	g.compare(true)
}

// TestNothingDiffers: where nobody else changes anything, answers are those of the server, whatever is done, and fails.
func TestNothingDiffers(t *testing.T) {
	for i, o := range gameOptions {
		for seed := range uint64(12) {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			t.Run(fmt.Sprint(i, "/", seed), func(t *testing.T) { play(t, o, seed%3 == 0, 400, random.IntN) })
		}
	}
}

// FuzzNothingDiffers is the same, with the operations that the input says.
func FuzzNothingDiffers(f *testing.F) {
	f.Add([]byte("\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d"), uint8(0))
	f.Fuzz(func(t *testing.T, p []byte, kind uint8) {
		if len(p) > 2000 {
			return
		}
		steps := len(p) / 6
		play(t, gameOptions[int(kind)%len(gameOptions)], kind >= 128, steps, func(n int) int {
			if len(p) == 0 {
				return 0
			}
			b := int(p[0])
			p = p[1:]
			return b % n
		})
	})
}

// TestTogether: many goroutines change and ask at once. When they have ended, nothing that is kept differs from what the
// server has.
func TestTogether(t *testing.T) {
	for i, o := range gameOptions {
		r := newRig(t, o)
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(1813, uint64(i)))
		g := newGame(r, func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return random.IntN(n)
		})
		for range 8 {
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 30 {
						g.step(t.Context())
						_, handles := g.handles()
						for _, h := range handles[:min(len(handles), 4)] {
							_, _ = g.fs.GetAttr(t.Context(), h, vfs.MaskV3)
						}
					}
				})
			}
			all.Wait()
			g.compare(true)
		}
	}
}
