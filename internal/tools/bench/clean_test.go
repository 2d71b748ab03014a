package bench_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/bench"
	"github.com/nfsbox/nfsbox/vfs"
)

// plant makes an object in dir, and returns its handle.
func (s *server) plant(dir vfs.Handle, name string, how vfs.CreateHow) vfs.Handle {
	s.t.Helper()
	h, _, _, err := s.fs.Create(s.t.Context(), dir, name, &how)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

func (s *server) root() vfs.Handle {
	s.t.Helper()
	root, _, err := s.fs.Root(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return root
}

// TestCleanAlike leaves what looks like a dataset and is somebody's own, without a
// word: hashes in fanned-out directories, links, empty directories, other names.
func TestCleanAlike(t *testing.T) {
	dir, file := vfs.CreateHow{Type: vfs.TypeDir}, vfs.CreateHow{Type: vfs.TypeReg}
	link := vfs.CreateHow{Type: vfs.TypeSymlink, Target: bench.Prefix + "hashes"}
	for _, clean := range []string{"nfs", "protobuf"} {
		s := serve(t, memfs.Options{})
		root := s.root()
		hashes := s.plant(root, bench.Prefix+"hashes", dir)
		sub := s.plant(hashes, "aa", dir)
		s.plant(sub, "0123456789abcdef", file)
		s.plant(sub, bench.Prefix+"0123456789abcdef", link)
		s.plant(sub, bench.Prefix+"0123456789abcdee", dir)
		s.plant(root, bench.Prefix+"results", dir)
		s.plant(root, bench.Prefix+"link", link)
		other := s.plant(s.plant(root, bench.Prefix+"a b", dir), "00", dir)
		s.plant(other, bench.Prefix+"0123456789abcdef", file)
		s.plant(s.plant(root, strings.ToUpper(bench.Prefix)+"X", dir), "00", dir)
		before, names := s.tree(), s.names()
		ways := s.ways()
		o := s.options("clean", "")
		ways[slices.IndexFunc(ways, func(w way) bool { return w.name == clean })].set(&o)
		res, err := bench.Run(t.Context(), o)
		if res == nil || res.Ops != 0 || err == nil || !strings.Contains(err.Error(), bench.Prefix+"hashes is left behind") {
			t.Errorf("%s: %+v, %v", clean, res, err)
		}
		if after := s.tree(); !slices.Equal(after, before) || !slices.Equal(s.names(), names) {
			t.Errorf("%s: left are %q of %q, and %q of %q", clean, after, before, s.names(), names)
		}
	}
}

// TestCleanCancelled stops where it is.
func TestCleanCancelled(t *testing.T) {
	for _, clean := range []string{"nfs", "protobuf"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var armed atomic.Bool
		var removals atomic.Uint64
		s := serve(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
			if op == "remove" && armed.Load() && removals.Add(1) == 5 {
				cancel()
			}
			return nil
		}})
		ways := s.ways()
		o := s.options("upload", "")
		o.Count = 100
		run(t, o)
		armed.Store(true)
		o = s.options("clean", "")
		ways[slices.IndexFunc(ways, func(w way) bool { return w.name == clean })].set(&o)
		res, err := bench.Run(ctx, o)
		if res == nil || res.Complete || !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "left behind") {
			t.Errorf("%s: %+v, %v", clean, res, err)
		}
		if n := len(s.tree()); n < 90 {
			t.Errorf("%s: %d of 100 files are left behind an interruption at the fifth", clean, n)
		}
	}
}

// TestUploadCancelledEarly leaves no empty directory when it is interrupted while it
// makes them.
func TestUploadCancelledEarly(t *testing.T) {
	for at := range uint64(8) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var made atomic.Uint64
		s := serve(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
			if op == "create" && made.Add(1) == at/2+1 {
				cancel()
			}
			return nil
		}})
		o := s.options("upload", "")
		o.Count = 10
		if at%2 != 0 {
			o.URL, _ = s.api()
		}
		if res, err := bench.Run(ctx, o); res != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", res, err)
		}
		if got := s.names(); len(got) != 0 {
			t.Errorf("interrupted at the directory number %d: left behind: %q", at, got)
		}
	}
}

// TestWarmUpStays says in one line that what the warm-up has made is left, where it
// cannot be removed.
func TestWarmUpStays(t *testing.T) {
	s := serve(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "remove" {
			return vfs.ErrAccess
		}
		return nil
	}})
	o := s.options("upload", "")
	o.Count, o.WarmUp = 2000, 0
	res, err := bench.Run(t.Context(), o)
	if res == nil || res.Ops != 2000 || err == nil || strings.Count(err.Error(), "\n") > 2 || !strings.Contains(err.Error(), "200 files of the warm-up are left behind") {
		t.Errorf("%v", err)
	}
}

// TestCancelledFirst is an interruption, and not a server that cannot be reached.
func TestCancelledFirst(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := serve(t, memfs.Options{})
	for _, w := range s.ways() {
		for _, metrics := range []string{"", "http://" + s.addr} {
			o := s.options("upload", "")
			o.ServerMetrics = metrics
			w.set(&o)
			if res, err := bench.Run(ctx, o); res != nil || !errors.Is(err, context.Canceled) || errors.Is(err, bench.ErrUnreachable) {
				t.Errorf("%s: %v", w.name, err)
			}
		}
	}
}
