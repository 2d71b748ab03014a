package writeback

import (
	"context"
	"iter"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// slowReplies is an FS whose attributes are of before something else happens: of
// two connections, the other one's reply comes first.
type slowReplies struct {
	vfs.FS
	meanwhile func()
}

func (s *slowReplies) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	h, attr, dirAttr, err := s.FS.Lookup(ctx, dir, name)
	s.meanwhile()
	return h, attr, dirAttr, err
}

// GetAttr is that of a server that restarts before it answers.
func (s *slowReplies) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	if below, ok := s.FS.(*memfs.FS); ok {
		below.Restart()
	}
	attr, err := s.FS.GetAttr(ctx, h, want)
	s.meanwhile()
	return attr, err
}

func (s *slowReplies) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, vfs.Attr, error) {
	got, attr, err := s.FS.Access(ctx, h, want)
	s.meanwhile()
	return got, attr, err
}

func (s *slowReplies) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, opened, err := s.FS.Open(ctx, at, how)
	s.meanwhile()
	return f, opened, err
}

func (s *slowReplies) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		for e, err := range s.FS.ReadDir(ctx, dir, from, want, maxBytes) {
			s.meanwhile()
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestSizesWhileStored: bytes that become stable while a reply is on its way that
// does not know of them yet are not missing in its size: it has none then.
func TestSizesWhileStored(t *testing.T) {
	ctx := t.Context()
	for name, size := range map[string]func(r *rig, root, h vfs.Handle) (vfs.Attr, error){
		"Lookup": func(r *rig, root, _ vfs.Handle) (vfs.Attr, error) {
			_, a, _, err := r.fs.Lookup(ctx, root, "f")
			return a, err
		},
		"Access": func(r *rig, _, h vfs.Handle) (vfs.Attr, error) {
			_, a, err := r.fs.Access(ctx, h, vfs.AccessRead)
			return a, err
		},
		"Open": func(r *rig, root, _ vfs.Handle) (vfs.Attr, error) {
			f, opened, err := r.fs.Open(ctx, vfs.At{Dir: root, Name: "f"}, &vfs.OpenHow{Access: vfs.ShareRead})
			if err == nil {
				err = f.Close(ctx)
			}
			return opened.Attr, err
		},
		"ReadDir": func(r *rig, root, _ vfs.Handle) (a vfs.Attr, err error) {
			for e, err := range r.fs.ReadDir(ctx, root, vfs.Pos{}, vfs.MaskSize|vfs.MaskHandle, 0) {
				if err != nil {
					return a, err
				}
				a = e.Attr
			}
			return a, nil
		},
	} {
		for how, store := range map[string]func(*rig, vfs.File) error{
			"Commit": (*rig).commit,
			"a stable write": func(_ *rig, f vfs.File) error {
				_, err := f.WriteAt(ctx, []byte("abc"), 0, vfs.FileSync, new(vfs.Written))
				return err
			},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				r := newRig(t, memfs.Options{}, Options{})
				root, _, err := r.fs.Root(ctx)
				r.ok(err)
				f, h := r.open("f", vfs.OpenHow{})
				r.over(&slowReplies{r.below, func() { r.ok(store(r, f)) }})
				r.write(f, 0, []byte("abc"))
				if a, err := size(r, root, h); err != nil || a.Has(vfs.MaskSize) && a.Size != 3 {
					t.Errorf("size %d, %v, want 3, or none", a.Size, err)
				}
				if a, err := size(r, root, h); err != nil || !a.Has(vfs.MaskSize) || a.Size != 3 {
					t.Errorf("with nothing dirty: size %d (%v), %v, want 3", a.Size, a.Has(vfs.MaskSize), err)
				}
				r.ok(f.Close(ctx))
			})
		}
	}
}

// TestSizeAfterRestart: a server restarts and loses bytes, then answers what the size is, and the
// bytes become stable before its answer comes. They are not missing in the size, and what is
// appended does not replace them.
func TestSizeAfterRestart(t *testing.T) {
	ctx := t.Context()
	for _, appends := range []bool{false, true} {
		r := newRig(t, memfs.Options{}, Options{})
		f, h := r.open("f", vfs.OpenHow{})
		r.write(f, 0, []byte("abc"))
		r.over(&slowReplies{r.below, func() { r.ok(r.commit(f)) }})
		f.(*holeFile).view = r.fs
		if !appends {
			if a, err := r.fs.GetAttr(ctx, h, vfs.MaskSize); err != nil || !a.Has(vfs.MaskSize) || a.Size != 3 {
				t.Errorf("size %d, %v, %v, want 3", a.Size, a.Has(vfs.MaskSize), err)
			}
			r.ok(f.Close(ctx))
			continue
		}
		var w vfs.Written
		if off, _, err := f.(vfs.Appender).Append(ctx, []byte("def"), vfs.FileSync, &w); off != 3 || err != nil {
			t.Errorf("appended at %d, %v, want 3", off, err)
		}
		r.ok(f.Close(ctx))
		r.wantBelow(h, []byte("abcdef"))
	}
}

// TestSizesOfReplies: the attributes that come with a read or a stable write have a size with all
// that was accepted before, wherever in the file that is.
func TestSizesOfReplies(t *testing.T) {
	ctx := t.Context()
	read := func(off uint64, n int) func(vfs.File) (vfs.Attr, error) {
		return func(f vfs.File) (a vfs.Attr, err error) {
			_, _, err = f.ReadAt(ctx, make([]byte, n), off, &a)
			return a, err
		}
	}
	for name, reply := range map[string]func(vfs.File) (vfs.Attr, error){
		"a read of dirty bytes":         read(150, 10),
		"a read before them":            read(0, 10),
		"a read behind them":            read(300, 10),
		"a short read before them":      read(0, 150),
		"a read of nothing behind them": read(300, 0),
		"a stable write before them": func(f vfs.File) (vfs.Attr, error) {
			var w vfs.Written
			_, err := f.WriteAt(ctx, []byte("abc"), 0, vfs.FileSync, &w)
			return w.WCC.After, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, memfs.Options{ReadMax: 20}, Options{})
			f, _ := r.open("f", vfs.OpenHow{})
			r.write(f, 0, pattern(50))
			r.ok(r.commit(f))
			r.write(f, 100, pattern(100)) // not sent yet
			a, err := reply(f)
			if err != nil || a.Has(vfs.MaskSize) && a.Size != 200 {
				t.Errorf("size %d, %v, want 200", a.Size, err)
			}
			r.ok(f.Close(ctx))
		})
	}
}

// TestSizesInListing: an entry that was fetched before a write does not tell the size without it,
// whether what was written is dirty still, or has become stable and its file is closed.
func TestSizesInListing(t *testing.T) {
	var root vfs.Handle
	for name, later := range map[string]func(r *rig, f vfs.File){
		"dirty":  func(*rig, vfs.File) {},
		"stable": func(r *rig, f vfs.File) { r.ok(r.commit(f)) },
		"closed": func(r *rig, f vfs.File) { r.ok(f.Close(r.t.Context())) },
		"closed long ago": func(r *rig, f vfs.File) {
			r.ok(f.Close(r.t.Context()))
			for range maxClosed {
				g, _ := r.open("g", vfs.OpenHow{})
				r.write(g, 0, []byte("x"))
				r.ok(g.Close(r.t.Context()))
				_, err := r.below.Remove(r.t.Context(), root, "g", false)
				r.ok(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, memfs.Options{}, Options{})
			var err error
			root, _, err = r.fs.Root(t.Context())
			r.ok(err)
			f, _ := r.open("f", vfs.OpenHow{})
			began := false
			r.over(&slowReplies{r.below, func() {
				if !began {
					began = true
					r.write(f, 0, []byte("abc"))
					later(r, f)
				}
			}})
			for e, err := range r.fs.ReadDir(t.Context(), root, vfs.Pos{}, vfs.MaskSize|vfs.MaskHandle, 0) {
				r.ok(err)
				if string(e.Name) == "f" && e.Attr.Has(vfs.MaskSize) && e.Attr.Size != 3 {
					t.Errorf("size %d, want 3, or none", e.Attr.Size)
				}
			}
			if name == "dirty" || name == "stable" {
				r.ok(f.Close(t.Context()))
			}
			for e, err := range r.fs.ReadDir(t.Context(), root, vfs.Pos{}, vfs.MaskSize|vfs.MaskHandle, 0) {
				r.ok(err)
				if string(e.Name) == "f" && (!e.Attr.Has(vfs.MaskSize) || e.Attr.Size != 3) {
					t.Errorf("in a listing of its own: size %d (%v), want 3", e.Attr.Size, e.Attr.Has(vfs.MaskSize))
				}
			}
		})
	}
}
