package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/memfs"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestOpen opens what is, and what is not, a store.
func TestOpen(t *testing.T) {
	file := &vfs.CreateHow{Type: vfs.TypeReg}
	for _, c := range []struct {
		name  string
		plant string // a name in the root
		how   *vfs.CreateHow
		data  string
		o     Options
		want  string // in the error; "": none
	}{
		{"new", "", nil, "", Options{}, ""},
		{"new, narrow", "", nil, "", Options{Fanout: 1}, ""},
		{"existing", "", nil, "", Options{Existing: true}, "no store of objects"},
		{"read-only", "", nil, "", Options{ReadOnly: true}, "no store of objects"},
		{"after a try that was killed", layout.TempMark + "x", file, "", Options{}, ""},
		{"on a new disk", "lost+found", &vfs.CreateHow{Type: vfs.TypeDir}, "", Options{}, ""},
		{"not empty", "precious", file, "", Options{}, `not empty, and no object store: there is "precious"`},
		{"of version 2", layout.MarkerName, file, "nfsbox object store\nversion 2\nfanout 2\n", Options{}, "does not know"},
		{"of something else", layout.MarkerName, file, "something else", Options{}, "not that of an object store"},
		{"a link as marker", layout.MarkerName, &vfs.CreateHow{Type: vfs.TypeSymlink, Target: "x"}, "", Options{}, "is a symlink"},
		{"fan-out", "", nil, "", Options{Fanout: layout.MaxFanout + 1}, "fan-out"},
		{"size", "", nil, "", Options{MaxSize: -1}, "less than no bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := memory(t)
			if c.plant != "" {
				plant(t, f, c.plant, c.how)
			}
			if c.data != "" {
				overwrite(t, f, c.plant, 0, c.data)
			}
			s, err := Open(t.Context(), f, rootOf(t, f), c.o)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if err == nil && (!s.Fresh() || s.Close() != nil || open(t, f, Options{Existing: true}).Fresh()) {
				t.Error("it is new once")
			}
		})
	}
}

// TestMadeAtOnce makes one store from many sides: one has made it, and all use it.
func TestMadeAtOnce(t *testing.T) {
	f := memory(t)
	var fresh atomic.Int64
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			s, err := Open(t.Context(), f, rootOf(t, f), Options{Fanout: 1 + i%2})
			if err != nil {
				t.Error(err)
				return
			}
			if s.Fresh() {
				fresh.Add(1)
			}
			if _, err := s.Put(t.Context(), "key", strings.NewReader("x"), object.PutOptions{Size: 1}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if fresh.Load() != 1 {
		t.Errorf("%d have made it", fresh.Load())
	}
	wantContent(t, open(t, f, Options{}), "key", "x")
	sound(t, f)
}

// TestHosts has hosts, each with a Store of its own, put one key: one succeeds, and what it has put is there.
func TestHosts(t *testing.T) {
	const hosts, keys = 8, 20
	f := memory(t)
	addr := serve(t, f)
	var stores []*Store
	for range hosts {
		stores = append(stores, open(t, dial(t, "nfs://"+addr+"/").FS(), Options{}))
	}
	var winners [keys][]string
	var mu sync.Mutex
	var wg sync.WaitGroup
	for h, s := range stores {
		wg.Go(func() {
			for k := range keys {
				text := fmt.Sprint("host ", h)
				_, err := s.Put(t.Context(), fmt.Sprint("roots/", k), strings.NewReader(text), object.PutOptions{Size: -1, IfAbsent: true})
				if err == nil {
					mu.Lock()
					winners[k] = append(winners[k], text)
					mu.Unlock()
				} else if !errors.Is(err, object.ErrExist) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for k, won := range winners {
		if len(won) != 1 {
			t.Errorf("of %d have succeeded: %q", k, won)
			continue
		}
		wantContent(t, stores[k%hosts], fmt.Sprint("roots/", k), won[0])
	}
}

// TestReadOnly reads beside the writer, and changes nothing.
func TestReadOnly(t *testing.T) {
	f := memory(t)
	w := open(t, f, Options{})
	put(t, w, "a/key", "x")
	changes := 0
	r := open(t, &faultyFS{FS: f, fault: func(op string) error { changes++; return fmt.Errorf("%s: %w", op, vfs.ErrROFS) }}, Options{ReadOnly: true})
	wantContent(t, r, "a/key", "x")
	put(t, w, "a/kez", "y")
	wantContent(t, r, "a/kez", "y")
	if page, err := r.List(t.Context(), "a/", "", 0); err != nil || len(page.Objects) != 2 {
		t.Errorf("%+v, %v", page, err)
	}
	_, err := r.Put(t.Context(), "a/key", strings.NewReader("y"), object.PutOptions{Size: 1})
	_, _, sweepErr := r.Sweep(t.Context(), farFuture)
	for _, err := range []error{err, r.Delete(t.Context(), "a/key"), sweepErr} {
		if !errors.Is(err, vfs.ErrROFS) {
			t.Errorf("%v", err)
		}
	}
	if changes > 0 {
		t.Errorf("%d changes were tried", changes)
	}
}

// TestForeign has something else in the place of directories and objects: a listing says so.
func TestForeign(t *testing.T) {
	link := &vfs.CreateHow{Type: vfs.TypeSymlink, Target: "elsewhere"}
	for _, how := range []*vfs.CreateHow{link, {Type: vfs.TypeFIFO}, {Type: vfs.TypeReg}} {
		t.Run(how.Type.String(), func(t *testing.T) {
			f := memory(t)
			s := open(t, f, Options{})
			put(t, s, "good/key", "x")
			plant(t, f, "readme+", &vfs.CreateHow{Type: vfs.TypeReg}) // no key's
			plant(t, f, "good/=ke/.nfs0001", &vfs.CreateHow{Type: vfs.TypeReg})
			if page, err := s.List(t.Context(), "", "", 0); err != nil || len(page.Objects) != 1 {
				t.Fatalf("%+v, %v", page, err)
			}
			if how.Type != vfs.TypeReg { // it has the place of one object, and hides no other
				for _, key := range []string{"good/a", "good/ke/y", "good/kezz", "good/kezz/y"} {
					put(t, s, key, "x")
				}
				plant(t, f, "good/=ke/kez", how)
				if got := around(t, s, "good/", 0); got != "good/a good/ke/y good/key (good/kez) good/kezz good/kezz/y" {
					t.Errorf("listed: %s", got)
				}
				if got := around(t, s, "good/", 1); got != "good/a good/ke/y good/key (good/kez) good/kezz good/kezz/y" {
					t.Errorf("listed one by one: %s", got)
				}
			}
			plant(t, f, "snapshots", how)
			plant(t, f, "good/=aa", how)
			prefixes := []string{"", "snapshots/", "good/", "good/aab"}
			if how.Type != vfs.TypeReg {
				prefixes = append(prefixes, "good/kez")
			}
			for _, prefix := range prefixes {
				var end error
				for _, err := range object.All(t.Context(), s, prefix) {
					end = err
				}
				if !errors.Is(end, object.ErrForeign) {
					t.Errorf("%q: %v", prefix, end)
				}
			}
			if _, err := s.Put(t.Context(), "snapshots/new", strings.NewReader("x"), object.PutOptions{Size: 1}); !errors.Is(err, object.ErrForeign) {
				t.Errorf("a Put: %v", err)
			}
			wantContent(t, s, "good/key", "x")
		})
	}
}

// around lists a prefix, a few at a time, and goes on behind what is foreign: that is in parentheses.
func around(t *testing.T, s *Store, prefix string, limit int) string {
	t.Helper()
	var all []string
	for after, more := "", true; more; {
		page, err := s.List(t.Context(), prefix, after, limit)
		if met, ok := errors.AsType[*object.ForeignError](err); ok && met.Key > after {
			after = met.Key
			all = append(all, "("+after+")")
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Objects {
			after = page.Objects[i].Key
			all = append(all, after)
		}
		more = page.More && len(page.Objects) > 0
	}
	return strings.Join(all, " ")
}

// TestDamage has objects that are not as they were put.
func TestDamage(t *testing.T) {
	f := memory(t)
	s := open(t, f, Options{})
	large := strings.Repeat("0123456789", 20_000)
	cut := func(n uint64) func(p string) {
		return func(p string) {
			if _, err := f.SetAttr(t.Context(), at(t, f, p), &vfs.SetAttr{Valid: vfs.MaskSize, Size: n}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, damage := range map[string]func(p string){
		"content": func(p string) { overwrite(t, f, p, 100_000, "x") },
		"trailer": func(p string) { overwrite(t, f, p, 200_030, "\xff\x00") },
		"cut":     cut(1000),
		"empty":   cut(0),
		"longer":  cut(300_000),
		"pipe":    func(p string) { plant(t, f, p, &vfs.CreateHow{Type: vfs.TypeFIFO}) },
		"link":    func(p string) { plant(t, f, p, &vfs.CreateHow{Type: vfs.TypeSymlink, Target: "x"}) },
		"moved":   func(p string) { overwrite(t, f, p, 0, "other"); move(t, f, "=ot/other", p) },
	} {
		put(t, s, "other", large)
		put(t, s, name, large)
		damage("=" + name[:2] + "/" + name)
		if _, err := content(t.Context(), s, name); !errors.Is(err, object.ErrCorrupted) {
			t.Errorf("%s: %v", name, err)
		}
		put(t, s, name, "new")
		wantContent(t, s, name, "new")
	}
}

func move(t *testing.T, f vfs.FS, from, to string) {
	t.Helper()
	a, b := at(t, f, from[:3]), at(t, f, to[:3])
	if _, _, err := f.Rename(t.Context(), a, from[4:], b, to[4:]); err != nil {
		t.Fatal(err)
	}
}

// TestRestart has the server forget what was written in the middle of a Put. Nothing is stored,
// and the next one succeeds.
func TestRestart(t *testing.T) {
	f := memfs.New(memfs.Options{Mode: 0o777})
	s := open(t, f, Options{})
	data := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	for at := range 3 {
		r := &restarting{Reader: bytes.NewReader(data), f: f, left: (at+1)*chunk + 5000}
		if _, err := s.Put(t.Context(), "key", r, object.PutOptions{Size: -1}); !errors.Is(err, object.ErrBusy) {
			t.Errorf("after %d chunks: %v", at+1, err)
		}
		if _, err := s.Stat(t.Context(), "key"); !errors.Is(err, object.ErrNotExist) {
			t.Errorf("after %d chunks: %v", at+1, err)
		}
	}
	put(t, s, "key", string(data))
	f.Restart()
	wantContent(t, s, "key", string(data))
}

// restarting is a reader that restarts the server when so much was read.
type restarting struct {
	*bytes.Reader
	f    *memfs.FS
	left int
}

func (r *restarting) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p[:min(len(p), 4096)])
	if r.left -= n; r.left <= 0 && r.left > -4096 {
		r.f.Restart()
	}
	return n, err
}

// faultyFS fails changes as it is told.
type faultyFS struct {
	vfs.FS
	fault func(op string) error // before
	after func(op string) error // the change is made, and its answer is another
}

func (f *faultyFS) do(op string, call func() error) error {
	if f.fault != nil {
		if err := f.fault(op); err != nil {
			return err
		}
	}
	err := call()
	if f.after != nil && err == nil {
		err = f.after(op)
	}
	return err
}

func (f *faultyFS) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (w vfs.WCC, err error) {
	err = f.do("setattr", func() error { w, err = f.FS.SetAttr(ctx, h, set, guard); return err })
	return w, err
}

func (f *faultyFS) Create(ctx context.Context, d vfs.Handle, n string, how *vfs.CreateHow) (h vfs.Handle, a vfs.Attr, w vfs.WCC, err error) {
	err = f.do("mkdir", func() error { h, a, w, err = f.FS.Create(ctx, d, n, how); return err })
	return h, a, w, err
}

func (f *faultyFS) Link(ctx context.Context, h, d vfs.Handle, n string) (a vfs.Attr, w vfs.WCC, err error) {
	err = f.do("link", func() error { a, w, err = f.FS.Link(ctx, h, d, n); return err })
	return a, w, err
}

func (f *faultyFS) Rename(ctx context.Context, fd vfs.Handle, fn string, td vfs.Handle, tn string) (from, to vfs.WCC, err error) {
	err = f.do("rename", func() error { from, to, err = f.FS.Rename(ctx, fd, fn, td, tn); return err })
	return from, to, err
}

func (f *faultyFS) Remove(ctx context.Context, d vfs.Handle, n string, isDir bool) (w vfs.WCC, err error) {
	err = f.do("remove", func() error { w, err = f.FS.Remove(ctx, d, n, isDir); return err })
	return w, err
}

func (f *faultyFS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (file vfs.File, o vfs.Opened, err error) {
	if how.Create == nil {
		return f.FS.Open(ctx, at, how)
	}
	err = f.do("create", func() error { file, o, err = f.FS.Open(ctx, at, how); return err })
	if err != nil && file != nil {
		err, file = errors.Join(err, file.Close(ctx)), nil
	}
	return file, o, err
}

// TestFaults fails each change of a Put and a Delete, before and after it is made, once, or for good. A lost
// answer is settled; otherwise the key has what it had, and the error is the contract's.
func TestFaults(t *testing.T) {
	for _, op := range []string{"create", "mkdir", "link", "rename", "remove"} {
		for status, want := range map[error]error{
			vfs.ErrNoSpace: object.ErrNoSpace, vfs.ErrQuota: object.ErrNoSpace, vfs.ErrFBig: object.ErrTooLarge,
			vfs.ErrBusy: object.ErrBusy, vfs.ErrIO: vfs.ErrIO, vfs.ErrROFS: vfs.ErrROFS,
		} {
			t.Run(fmt.Sprint(op, "/", status), func(t *testing.T) {
				f := &faultyFS{FS: memory(t)}
				s, err := Open(t.Context(), f, rootOf(t, f), Options{})
				if err != nil {
					t.Fatal(err)
				}
				put(t, s, "old", "as it was")
				f.fault = func(o string) error {
					if o == op {
						return status
					}
					return nil
				}
				for _, key := range []string{"old", "new", "deep/er/new"} {
					_, err := s.Put(t.Context(), key, strings.NewReader("x"), object.PutOptions{Size: 1, IfAbsent: key == "new"})
					if err != nil && (!errors.Is(err, want) || errors.Is(err, object.ErrUnknownOutcome)) {
						t.Errorf("%s: %v", key, err)
					}
					got, gotErr := content(t.Context(), s, key)
					switch {
					case err == nil && got != "x", err != nil && key == "old" && got != "as it was":
						t.Errorf("%s is %q, %v", key, got, gotErr)
					case err != nil && key != "old" && !errors.Is(gotErr, object.ErrNotExist):
						t.Errorf("%s: %v", key, gotErr)
					}
				}
				f.fault = nil
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestLostAnswers has changes made whose answers are lost: each once, and each call is settled.
func TestLostAnswers(t *testing.T) {
	for _, op := range []string{"create", "mkdir", "link", "rename", "remove"} {
		for _, made := range []bool{true, false} {
			t.Run(fmt.Sprint(op, "/made=", made), func(t *testing.T) {
				f := &faultyFS{FS: memory(t)}
				s := open(t, f, Options{})
				put(t, s, "old", "as it was")
				lost := false
				lose := func(o string) error {
					if o != op || lost {
						return nil
					}
					lost = true
					return fmt.Errorf("%s: %w", o, vfs.ErrUnknownOutcome)
				}
				if f.after = lose; !made {
					f.fault, f.after = lose, nil
				}
				for _, key := range []string{"old", "new", "deep/er/new"} {
					lost = false
					info, err := s.Put(t.Context(), key, strings.NewReader("x"), object.PutOptions{Size: 1, IfAbsent: key == "new"})
					if err != nil || info.Size != 1 {
						t.Fatalf("%s: %+v, %v", key, info, err)
					}
					wantContent(t, s, key, "x")
				}
				lost = false
				if err := s.Delete(t.Context(), "new"); err != nil {
					t.Error(err)
				}
				if _, err := s.Stat(t.Context(), "new"); !errors.Is(err, object.ErrNotExist) {
					t.Error(err)
				}
				f.fault, f.after = nil, nil
				s.left.Store(0) // an answer of a removal may have been lost
			})
		}
	}
}

// TestNoLinks: on a file system without them the store cannot be made, and says why.
func TestNoLinks(t *testing.T) {
	f := &faultyFS{FS: memory(t), fault: func(op string) error {
		if op == "link" {
			return vfs.ErrNotSupp
		}
		return nil
	}}
	if _, err := Open(t.Context(), f, rootOf(t, f), Options{}); err == nil || !strings.Contains(err.Error(), "no hard links") {
		t.Error(err)
	}
	sound(t, f.FS)
}

// TestSweep removes what is old, and not its own.
func TestSweep(t *testing.T) {
	f := memory(t)
	s := open(t, f, Options{})
	info := put(t, s, "a/b/key", "x")
	for _, p := range []string{"", "a/", "a/b/=ke/"} {
		plant(t, f, p+layout.TempMark+"old", &vfs.CreateHow{Type: vfs.TypeReg})
	}
	if n, more, err := s.Sweep(t.Context(), info.ModTime); n != 0 || more || err != nil {
		t.Errorf("of what is younger: %d, %v, %v", n, more, err)
	}
	r := &calls{Reader: strings.NewReader("y"), do: func() {
		if n, more, err := s.Sweep(t.Context(), farFuture); n != 3 || more || err != nil {
			t.Errorf("%d, %v, %v", n, more, err)
		}
	}}
	if _, err := s.Put(t.Context(), "a/b/kez", r, object.PutOptions{Size: 1}); err != nil {
		t.Error(err)
	}
	wantContent(t, s, "a/b/kez", "y")
	wantContent(t, s, "a/b/key", "x")
}

// calls is a reader that calls something before it reads.
type calls struct {
	*strings.Reader
	do func()
}

func (c *calls) Read(p []byte) (int, error) {
	if c.do != nil {
		c.do()
		c.do = nil
	}
	return c.Reader.Read(p)
}
