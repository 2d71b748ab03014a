package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// verify compares two trees, and returns what was reported, as "kind path".
func verify(t *testing.T, src, dst *tree, set func(o *VerifyOptions)) (VerifySummary, []string) {
	t.Helper()
	c, v := options(t, src, dst, "")
	o := VerifyOptions{Source: c.Source, Dest: c.Dest, Pool: c.Pool, Now: c.Now, Progress: c.Progress, Owner: true}
	if set != nil {
		set(&o)
	}
	s, err := Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range v.list {
		kind := e.Kind
		if e.Type == "error" {
			kind = "error"
		}
		got = append(got, kind+" "+e.Path)
	}
	slices.Sort(got)
	return s, got
}

// TestVerifyCopy: a copy is the same, whatever the resolution of its times.
func TestVerifyCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, delta := range []time.Duration{1, time.Microsecond, time.Second} {
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{TimeDelta: delta})
			everything(src)
			o, v := options(t, src, dst, "")
			if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitDone {
				t.Fatalf("%v, %+v\n%s", err, s, v)
			}
			s, got := verify(t, src, dst, nil)
			if s.ExitCode(nil) != ExitDone || len(got) > 0 {
				t.Errorf("%+v, %q", s, got)
			}
			if s.Files != 311 || s.Dirs != 75 || s.Hardlinks != 2 || s.Symlinks != 2 || s.Nodes != 3 {
				t.Errorf("%+v", s)
			}
			// The other way around.
			if s, got := verify(t, dst, src, nil); s.ExitCode(nil) != ExitDone {
				t.Errorf("%+v, %q", s, got)
			}
		}
	})
}

// TestVerifyDifferences makes one difference at a time.
func TestVerifyDifferences(t *testing.T) {
	remove := func(tr *tree, dir, name string) {
		if _, err := tr.fs.Remove(context.Background(), tr.at(dir), name, false); err != nil {
			tr.t.Fatal(err)
		}
	}
	// keep restores a directory's time after a change in it.
	keep := func(tr *tree, dir string, change func()) {
		a, err := tr.fs.GetAttr(context.Background(), tr.at(dir), vfs.MaskMtime)
		if err != nil {
			tr.t.Fatal(err)
		}
		change()
		tr.set(tr.at(dir), vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: a.Mtime})
	}
	mtime := func(h vfs.Handle, tr *tree) {
		a, err := tr.fs.GetAttr(context.Background(), h, vfs.MaskMtime)
		if err != nil {
			tr.t.Fatal(err)
		}
		tr.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: a.Mtime.Add(1)})
	}
	tests := []struct {
		change func(dst *tree)
		want   []string
	}{
		{func(d *tree) { keep(d, "e", func() { remove(d, "e", "f1") }) }, []string{"missing e/f1"}},
		{func(d *tree) { keep(d, "e", func() { d.file("e/new", 0o644, nil) }) }, []string{"extra e/new"}},
		{func(d *tree) { keep(d, "", func() { d.file("new/file", 0o644, nil) }) }, []string{"extra new"}},
		{func(d *tree) {
			keep(d, "", func() {
				if _, _, err := d.fs.Rename(context.Background(), d.root, "e", d.root, "x"); err != nil {
					d.t.Fatal(err)
				}
			})
		}, []string{"extra x", "missing e"}},
		{func(d *tree) {
			keep(d, "d", func() {
				remove(d, "d", "c")
				d.make("d/c", vfs.CreateHow{Type: vfs.TypeFIFO})
			})
		}, []string{"type d/c"}},
		{func(d *tree) { d.write(d.at("d/c"), 10, []byte("longer")) }, []string{"mtime d/c", "size d/c"}},
		{func(d *tree) {
			h := d.at("d/c")
			a, err := d.fs.GetAttr(context.Background(), h, vfs.MaskMtime)
			if err != nil {
				d.t.Fatal(err)
			}
			d.write(h, 3, []byte("\x00"))
			d.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: a.Mtime})
		}, []string{"content d/c"}},
		{func(d *tree) { d.set(d.at("e/p"), mode(0o601)) }, []string{"mode e/p"}},
		{func(d *tree) { d.set(d.at("e"), mode(0o1755)) }, []string{"mode e"}},
		{func(d *tree) { mtime(d.at("e/f0"), d) }, []string{"mtime e/f0"}},
		{func(d *tree) { mtime(d.root, d) }, []string{"mtime ."}},
		{func(d *tree) { d.set(d.at("d/l"), vfs.SetAttr{Valid: vfs.MaskGID, GID: 3}) }, []string{"owner d/l"}},
		{func(d *tree) {
			keep(d, "d", func() {
				remove(d, "d", "l")
				d.make("d/l", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "../b"})
			})
		}, []string{"mtime d/l", "target d/l"}},
		{func(d *tree) {
			keep(d, "", func() {
				remove(d, "", "a")
				h := d.file("a", 0o644, pattern(300_000, 1))
				b, err := d.fs.GetAttr(context.Background(), d.at("d/b"), vfs.MaskMtime)
				if err != nil {
					d.t.Fatal(err)
				}
				d.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: b.Mtime})
			})
		}, []string{"links *"}},
		{func(d *tree) {
			keep(d, "e", func() {
				remove(d, "e", "f0")
				d.link(d.at("e/f2"), "e/f0")
			})
		}, []string{"links *", "mtime e/f0", "size e/f0"}},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprint(i, " ", tt.want[0]), func(t *testing.T) {
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
			few(src)
			o, v := options(t, src, dst, "")
			if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitDone {
				t.Fatalf("%v, %+v\n%s", err, s, v)
			}
			tt.change(dst)
			s, got := verify(t, src, dst, nil)
			for i, g := range got {
				if kind, _, _ := strings.Cut(g, " "); kind == DiffLinks {
					got[i] = "links *" // which of the names depends on the order
				}
			}
			if !slices.Equal(got, tt.want) && !(len(got) == len(tt.want) && got[0] == "links *") {
				t.Errorf("found %q, want %q", got, tt.want)
			}
			if s.ExitCode(nil) != ExitDifferent || s.Differences != uint64(len(got)) {
				t.Errorf("%+v", s)
			}
			without(t, src, dst, got)
		})
	}
}

// without compares without contents: no file is read, and all other differences are found.
func without(t *testing.T, src, dst *tree, all []string) {
	t.Helper()
	noRead := func(f vfs.FS) vfs.FS { return unread{f, t} }
	s, got := verify(t, src, dst, func(o *VerifyOptions) {
		o.Meta, o.Source.FS, o.Dest.FS = true, noRead(src.fs), noRead(dst.fs)
	})
	want := slices.DeleteFunc(slices.Clone(all), func(g string) bool { return strings.HasPrefix(g, DiffContent) })
	if len(got) != len(want) || s.Bytes != 0 || s.Errors != 0 {
		t.Errorf("without contents: found %q, want %q; %+v", got, want, s)
	}
}

// unread opens no file.
type unread struct {
	vfs.FS
	t *testing.T
}

func (f unread) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f.t.Error("a file is opened")
	return f.FS.Open(ctx, at, how)
}

// TestVerifyOwner: owners are compared only on demand.
func TestVerifyOwner(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{UID: 5})
	src.settle()
	dst.settle()
	for _, owner := range []bool{true, false} {
		if s, got := verify(t, src, dst, func(o *VerifyOptions) { o.Owner = owner }); (s.Differences == 1) != owner {
			t.Errorf("owner %v: %q", owner, got)
		}
	}
}

// TestVerifyLarge compares directories of several pages.
func TestVerifyLarge(t *testing.T) {
	const n = 1100
	for _, tt := range []struct {
		what           string
		missing, extra []int
	}{
		{"nothing", nil, nil},
		{"one missing", []int{5}, nil},
		{"some extra", nil, []int{7, 1000}},
		{"as many missing as extra", []int{3, 4}, []int{8, 9}},
		{"more missing than extra", []int{3, 4, 5}, []int{8}},
	} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		for i := range n {
			if !slices.Contains(tt.extra, i) {
				src.file(fmt.Sprint("d/", i), 0o644, nil)
			}
			if !slices.Contains(tt.missing, i) {
				dst.file(fmt.Sprint("d/", i), 0o644, nil)
			}
		}
		same := func(tr *tree) {
			tr.each("", tr.root, func(_ string, h vfs.Handle, _ vfs.Attr) {
				tr.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: epoch})
			})
		}
		same(src)
		same(dst)
		s, got := verify(t, src, dst, nil)
		if s.Missing != uint64(len(tt.missing)) || s.Extra != uint64(len(tt.extra)) || int(s.Differences) != len(tt.missing)+len(tt.extra) || s.Errors > 0 {
			t.Errorf("%s: %+v, %q", tt.what, s, got)
		}
		for _, i := range tt.missing {
			if !slices.Contains(got, fmt.Sprint("missing d/", i)) {
				t.Errorf("%s: %d is not reported: %q", tt.what, i, got)
			}
		}
	}
}

// TestVerifySingle compares two files.
func TestVerifySingle(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("f", 0o644, pattern(100_000, 1))
	dst.file("g", 0o644, pattern(100_000, 1))
	src.settle()
	dst.settle()
	set := func(o *VerifyOptions) { o.Source.Handle, o.Dest.Handle = src.at("f"), dst.at("g") }
	if s, got := verify(t, src, dst, set); s.ExitCode(nil) != ExitDone || s.Files != 1 {
		t.Errorf("%+v, %q", s, got)
	}
	c, _ := options(t, src, dst, "")
	o := VerifyOptions{Source: c.Source, Dest: c.Dest, Pool: c.Pool, Now: c.Now}
	o.Source.Handle = src.at("f")
	if s, err := Verify(t.Context(), o); s.ExitCode(err) != ExitDifferent {
		t.Errorf("a file and a directory: %+v, %v", s, err)
	}
	o.Source, o.Dest = o.Dest, o.Source
	if s, err := Verify(t.Context(), o); s.ExitCode(err) != ExitDifferent {
		t.Errorf("a directory and a file: %+v, %v", s, err)
	}
}

// TestVerifyEveryFault fails each operation, of either side, in turn and for good: objects
// that could not be compared are not called the same.
func TestVerifyEveryFault(t *testing.T) {
	for _, side := range []string{"source", "destination"} {
		for n := 1; ; n++ {
			var in, out hooks
			src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{Fault: out.fault})
			few(src)
			c, v := options(t, src, dst, "")
			if s, err := Copy(t.Context(), c); s.ExitCode(err) != ExitDone {
				t.Fatalf("%v\n%s", err, v)
			}
			k := &in
			if side == "destination" {
				k = &out
			}
			k.set(failsFrom(n))
			c, v = options(t, src, dst, "")
			s, err := Verify(t.Context(), VerifyOptions{Source: c.Source, Dest: c.Dest, Pool: c.Pool, Now: c.Now, Progress: c.Progress})
			done := k.count() < n
			k.set(nil)
			if done != (s.ExitCode(err) == ExitDone) || s.Differences > 0 {
				t.Errorf("%s, operation %d: %v, %+v\n%s", side, n, err, s, v)
			}
			if done {
				break
			}
		}
	}
}

func TestVerifyCancel(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	few(src)
	c, v := options(t, src, dst, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := Verify(ctx, VerifyOptions{Source: c.Source, Dest: c.Dest, Pool: c.Pool, Now: c.Now, Progress: c.Progress})
	if !errors.Is(err, context.Canceled) || len(v.list) > 0 {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
}

func TestExitCode(t *testing.T) {
	for _, tt := range []struct {
		err               error
		failed, different uint64
		want              int
	}{
		{nil, 0, 0, ExitDone},
		{nil, 0, 5, ExitDifferent},
		{nil, 1, 5, ExitIncomplete},
		{context.Canceled, 0, 0, ExitIncomplete},
		{fmt.Errorf("the source %w: %w", ErrUnreachable, vfs.ErrNoEnt), 0, 0, ExitUnreachable},
		{ErrIntoItself, 0, 0, ExitRefused},
		{fmt.Errorf("%w: x", ErrRecord), 0, 0, ExitRefused},
	} {
		if got := exitCode(tt.err, tt.failed, tt.different); got != tt.want {
			t.Errorf("%v, %d, %d: %d, want %d", tt.err, tt.failed, tt.different, got, tt.want)
		}
	}
}
