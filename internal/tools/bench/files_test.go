package bench_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/bench"
	"github.com/nfsbox/nfsbox/vfs"
)

// api serves the file system of s as a file API, and returns the URL of its root.
func (s *server) api() (string, *fileapi.Server) {
	s.t.Helper()
	table, err := export.NewTable(export.Key{4}, export.Export{Path: "/", FS: s.fs})
	if err != nil {
		s.t.Fatal(err)
	}
	srv, err := fileapi.New(s.t.Context(), fileapi.Options{Table: table, Loopback: &vfs.Caller{}})
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	s.t.Cleanup(func() {
		if err := errors.Join(srv.Close(), <-done); !errors.Is(err, http.ErrServerClosed) {
			s.t.Error(err)
		}
	})
	return "http://" + l.Addr().String() + "/", srv
}

// way is a way to the files of a server.
type way struct {
	name string
	set  func(o *bench.Options) // the target
}

// ways are all the ways to the files of s.
func (s *server) ways() []way {
	url, _ := s.api()
	return ways(url)
}

// ways are the ways to a server whose file API is at url.
func ways(url string) []way {
	return []way{
		{"nfs", func(*bench.Options) {}},
		{"nfs in place", func(o *bench.Options) { o.InPlace = o.Verb == "upload" }},
		{"protobuf", func(o *bench.Options) { o.URL = url }},
		{"json", func(o *bench.Options) { o.URL, o.API.JSON = url, true }},
		{"plain", func(o *bench.Options) { o.URL, o.API.Plain = url, true }},
		{"plain by URL, HTTP/2", func(o *bench.Options) { o.URL = url + "?encoding=plain&http2=true" }},
		{"json by URL, HTTP/2", func(o *bench.Options) { o.URL = url + "?encoding=json&http2=true" }},
	}
}

// tree is every file of s below the datasets, by its path.
func (s *server) tree() []string {
	s.t.Helper()
	root, _, err := s.fs.Root(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var all []string
	s.walk(root, "", &all)
	slices.Sort(all)
	return all
}

func (s *server) walk(dir vfs.Handle, path string, all *[]string) {
	s.t.Helper()
	type sub struct {
		name string
		h    vfs.Handle
	}
	var subs []sub
	for e, err := range s.fs.ReadDir(s.t.Context(), dir, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		if e.Attr.Type == vfs.TypeDir {
			subs = append(subs, sub{string(e.Name), e.Handle})
		} else {
			*all = append(*all, fmt.Sprintf("%s/%s %d", path, e.Name, e.Attr.Size))
		}
	}
	for _, d := range subs {
		s.walk(d.h, path+"/"+d.name, all)
	}
}

// TestFiles stores, reads, asks for and removes a dataset by all ways, with the same
// results, which are those that the server has counted.
func TestFiles(t *testing.T) {
	for size, files := range map[int]uint64{1: 100, 5000: 70, 200 << 10: 10} {
		s := serve(t, memfs.Options{})
		s.put("mine", 10)
		var first []string
		for _, w := range s.ways() {
			t.Run(fmt.Sprintf("%s, %d bytes", w.name, size), func(t *testing.T) {
				perform := func(verb string, key ...string) {
					t.Helper()
					o := s.options(verb, "")
					o.Count, o.Size, o.Concurrency, o.Seed, o.WarmUp = files, size, 7, 3, bench.DefaultWarmUp
					if verb == "exist" || verb == "delete" {
						o.Size = 0
					}
					w.set(&o)
					res := run(t, o)
					bytes := uint64(0)
					if o.Size != 0 {
						bytes = files * uint64(size)
					}
					if !res.Complete || res.Ops != files || res.Bytes != bytes || res.WarmUpOps != files/10 {
						t.Errorf("%s: %+v", verb, res)
					}
					sum := uint64(0)
					for _, k := range key {
						sum += res.ClientCalls[k]
					}
					if sum != files {
						t.Errorf("%s: calls are %v", verb, res.ClientCalls)
					}
					checkFigures(t, res)
				}
				perform("upload", "CREATE", "Put", "Upload", "HTTP PUT")
				tree := s.tree()
				if first == nil {
					first = tree
				}
				if uint64(len(tree)) != files+1 || !slices.Equal(tree, first) {
					t.Errorf("upload has made %d files, and not the same as another way", len(tree)-1)
				}
				perform("download", "LOOKUP", "Get", "Download", "HTTP GET")
				perform("exist", "LOOKUP", "Exist", "HTTP HEAD")
				perform("delete", "REMOVE", "Delete", "HTTP DELETE")
				if got := s.names(); !slices.Equal(got, []string{"mine"}) {
					t.Errorf("left behind: %q", got)
				}
			})
		}
		if n := s.fs.OpenFiles(); n != 0 {
			t.Errorf("%d files are open", n)
		}
	}
}

// TestAcross reads by each way what another has stored.
func TestAcross(t *testing.T) {
	s := serve(t, memfs.Options{})
	ways := s.ways()
	for _, from := range ways {
		o := s.options("upload", "")
		o.Count = 20
		from.set(&o)
		run(t, o)
		for _, to := range ways {
			o := s.options("download", "")
			o.Count = 20
			to.set(&o)
			run(t, o)
		}
	}
}

// TestClean removes what upload has left, with whatever flags, and nothing else.
func TestClean(t *testing.T) {
	for _, clean := range []string{"nfs", "protobuf", "json"} {
		t.Run(clean, func(t *testing.T) {
			s := serve(t, memfs.Options{})
			s.put("mine", 10)
			s.put(bench.Prefix+"0123", 10)
			ways := s.ways()
			for i, tag := range []string{"a", "b", "c.d-e"} {
				o := s.options("upload", "")
				o.Count, o.Size, o.Seed, o.Tag = uint64(30+i), 10+i, uint64(i), tag
				ways[i].set(&o)
				run(t, o)
			}
			perform := func(tag string) *bench.Result {
				o := s.options("clean", "")
				o.Concurrency, o.Tag = 4, tag
				ways[slices.IndexFunc(ways, func(w way) bool { return w.name == clean })].set(&o)
				return run(t, o)
			}
			if res := perform("b"); res.Ops != 31 || !res.Complete {
				t.Errorf("%+v", res)
			}
			if res := perform(""); res.Ops != 30+32 {
				t.Errorf("%+v", res)
			}
			if res := perform(""); res.Ops != 0 || !res.Complete {
				t.Errorf("nothing is left to do, and %d operations were made", res.Ops)
			}
			if got := s.names(); !slices.Equal(got, []string{"mine", bench.Prefix + "0123"}) {
				t.Errorf("left are %q", got)
			}
		})
	}
}

// TestCleanSpares leaves what upload does not make, and says so.
func TestCleanSpares(t *testing.T) {
	s := serve(t, memfs.Options{})
	o := s.options("upload", "")
	o.Count = 10
	run(t, o)
	dir := s.lookup(bench.Prefix + bench.DefaultTag)
	if _, _, _, err := s.fs.Create(t.Context(), dir, "precious", &vfs.CreateHow{Type: vfs.TypeReg}); err != nil {
		t.Fatal(err)
	}
	sub, _, _, err := s.fs.Lookup(t.Context(), dir, "00")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{bench.Prefix + "0123456789abcdef.x", bench.Prefix + "0123456789abcdeg", "notes"} {
		if _, _, _, err := s.fs.Create(t.Context(), sub, name, &vfs.CreateHow{Type: vfs.TypeReg}); err != nil {
			t.Fatal(err)
		}
	}
	// What a crash leaves is upload's.
	if _, _, _, err := s.fs.Create(t.Context(), sub, bench.Prefix+"0123456789abcdef.89abcdef.1f", &vfs.CreateHow{Type: vfs.TypeReg}); err != nil {
		t.Fatal(err)
	}
	res, err := bench.Run(t.Context(), s.options("clean", ""))
	if err == nil || !strings.Contains(err.Error(), "what upload does not make") || res == nil || res.Ops != 11 {
		t.Errorf("%+v, %v", res, err)
	}
	if got := s.tree(); len(got) != 4 {
		t.Errorf("%q", got)
	}
}

func (s *server) lookup(name string) vfs.Handle {
	s.t.Helper()
	root, _, err := s.fs.Root(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	h, _, _, err := s.fs.Lookup(s.t.Context(), root, name)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// TestNoDataset says what to do first.
func TestNoDataset(t *testing.T) {
	s := serve(t, memfs.Options{})
	for _, w := range s.ways() {
		for _, verb := range []string{"download", "exist", "delete"} {
			o := s.options(verb, "")
			w.set(&o)
			res, err := bench.Run(t.Context(), o)
			if res != nil || !errors.Is(err, bench.ErrUnreachable) || !strings.Contains(err.Error(), "make them with upload and the same flags") {
				t.Errorf("%s, %s: %v", w.name, verb, err)
			}
		}
	}
	if got := s.names(); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

// TestOtherContents finds files that are not what upload has made, by their kind.
func TestOtherContents(t *testing.T) {
	s := serve(t, memfs.Options{})
	for _, w := range s.ways() {
		o := s.options("upload", "")
		o.Count, o.Size = 20, 1000
		w.set(&o)
		run(t, o)
		o = s.options("download", "")
		o.Count, o.Size = 20, 999
		w.set(&o)
		res, err := bench.Run(t.Context(), o)
		if res == nil || res.Ops != 0 || res.Errors == 0 || len(res.Faults) != 1 || res.Faults[0].Kind != "wrong data" {
			t.Errorf("%s: %+v, %v", w.name, res, err)
		}
		// One file is gone, and one has other bytes.
		s.spoil()
		for verb, kinds := range map[string][]string{"download": {"NOENT", "wrong data"}, "exist": {"not there"}} {
			o = s.options(verb, "")
			o.Count = 20
			if verb == "download" {
				o.Size = 1000
			}
			w.set(&o)
			res, err = bench.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range res.Faults {
				got = append(got, f.Kind)
			}
			if !slices.Equal(got, kinds) || res.Ops != 20-uint64(len(kinds)) {
				t.Errorf("%s, %s: %q, %d operations", w.name, verb, got, res.Ops)
			}
		}
		run(t, s.options("clean", ""))
	}
}

// spoil removes a file of the dataset, not the first one, and changes another.
func (s *server) spoil() {
	s.t.Helper()
	ctx := s.t.Context()
	set := s.lookup(bench.Prefix + bench.DefaultTag)
	for i, name := range []string{"05", "06"} {
		dir, _, _, err := s.fs.Lookup(ctx, set, name)
		if err != nil {
			s.t.Fatal(err)
		}
		var file string
		for e, err := range s.fs.ReadDir(ctx, dir, vfs.Pos{}, 0, 0) {
			if err != nil {
				s.t.Fatal(err)
			}
			file = string(e.Name)
		}
		if i == 0 {
			_, err = s.fs.Remove(ctx, dir, file, false)
		} else {
			var f vfs.File
			f, _, err = s.fs.Open(ctx, vfs.At{Dir: dir, Name: file}, &vfs.OpenHow{Access: vfs.ShareWrite})
			if err == nil {
				var w vfs.Written
				_, err = f.WriteAt(ctx, []byte("spoiled"), 500, vfs.FileSync, &w)
				err = errors.Join(err, f.Close(ctx))
			}
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestUploadFails counts what a server refuses by its kind, the same by all ways, and
// leaves no temporary.
func TestUploadFails(t *testing.T) {
	var fail atomic.Bool
	var n atomic.Uint64
	s := serve(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "write" && fail.Load() && n.Add(1)%4 == 0 {
			return vfs.ErrNoSpace
		}
		return nil
	}})
	for _, w := range s.ways() {
		n.Store(0)
		fail.Store(true)
		o := s.options("upload", "")
		o.Count, o.Size = 40, 100
		w.set(&o)
		res, err := bench.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if res.Ops != 30 || res.Errors != 10 || len(res.Faults) != 1 || res.Faults[0].Kind != vfs.ErrNoSpace.Name() || res.Faults[0].Count != 10 {
			t.Errorf("%s: %d operations, %+v", w.name, res.Ops, res.Faults)
		}
		fail.Store(false)
		if got := len(s.tree()); got != 30 && w.name != "nfs in place" {
			t.Errorf("%s: %d files", w.name, got)
		}
		run(t, s.options("clean", ""))
	}
}

// TestUploadCancelled leaves whole files and no temporary when it is interrupted.
func TestUploadCancelled(t *testing.T) {
	for i := range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Uint64
		s := serve(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
			if op == "write" && calls.Add(1) == 50 {
				cancel()
			}
			return nil
		}})
		url, api := s.api()
		w := ways(url)[[]int{0, 2, 3, 4}[i]]
		o := s.options("upload", "")
		o.Count, o.Concurrency, o.Size = 1<<40, 4, 4096
		w.set(&o)
		res, err := bench.Run(ctx, o)
		if !errors.Is(err, context.Canceled) || res == nil || res.Complete || res.Ops == 0 || res.Errors != 0 {
			t.Errorf("%s: %+v, %v", w.name, res, err)
		}
		// The file API learns of the interruption from the connection, and removes its
		// temporaries after the client has gone.
		if err := errors.Join(api.Shutdown(t.Context()), api.Wait(t.Context())); err != nil {
			t.Error(err)
		}
		for _, f := range s.tree() {
			if !strings.HasSuffix(f, " 4096") || strings.Contains(f, ".") {
				t.Errorf("%s: %s", w.name, f)
			}
		}
		cancel()
	}
}

// TestFilesForATime runs over a dataset again and again. How far that goes in a time is up to
// the machine, so a time that did not suffice is doubled.
func TestFilesForATime(t *testing.T) {
	s := serve(t, memfs.Options{})
	for _, verb := range []string{"upload", "download", "exist", "delete"} {
		o := s.options(verb, "")
		o.Files, o.Duration, o.Concurrency = 10, 100*time.Millisecond, 3
		if verb == "delete" {
			o.Duration = time.Minute // it ends when all are removed
		}
		res := run(t, o)
		for ; verb != "delete" && res.Ops <= 10 && o.Duration < time.Minute; res = run(t, o) {
			o.Duration *= 2
		}
		if verb == "delete" && res.Ops != 10 || verb != "delete" && res.Ops <= 10 || res.Dataset == nil || res.Dataset.Files != 10 {
			t.Errorf("%s: %+v", verb, res)
		}
	}
	if got := s.names(); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

// TestSync asks for what the flags say.
func TestSync(t *testing.T) {
	s := serve(t, memfs.Options{})
	for _, tc := range []struct {
		size            int
		noSync          bool
		writes, commits uint64
	}{{1000, false, 1, 0}, {1000, true, 1, 0}, {3 << 20, false, 3, 1}, {3 << 20, true, 3, 0}} {
		before := s.calls("COMMIT")
		o := s.options("upload", "")
		o.Count, o.Size, o.NoSync = 5, tc.size, tc.noSync
		res := run(t, o)
		if res.ClientCalls["WRITE"] != 5*tc.writes || res.Commits != 5*tc.commits || s.calls("COMMIT")-before != 5*tc.commits {
			t.Errorf("%+v: %v", tc, res.ClientCalls)
		}
		if res.Dataset.Sync == tc.noSync || !res.Dataset.Atomic {
			t.Errorf("%+v", res.Dataset)
		}
	}
}

// TestFilesRefused says what makes no sense before anything is sent.
func TestFilesRefused(t *testing.T) {
	s := serve(t, memfs.Options{})
	url, _ := s.api()
	for name, set := range map[string]func(o *bench.Options){
		"null by HTTP":      func(o *bench.Options) { o.Verb, o.URL = "null", url },
		"user":              func(o *bench.Options) { o.URL = "http://me:secret@127.0.0.1/" },
		"fragment":          func(o *bench.Options) { o.URL = url + "#x" },
		"no host":           func(o *bench.Options) { o.URL = "http:///x" },
		"argument":          func(o *bench.Options) { o.URL = url + "?encoding=xml" },
		"other argument":    func(o *bench.Options) { o.URL = url + "?uid=0" },
		"checksum":          func(o *bench.Options) { o.URL, o.API.Checksum = url, "md5" },
		"in place by HTTP":  func(o *bench.Options) { o.URL, o.InPlace = url, true },
		"token for NFS":     func(o *bench.Options) { o.API.Token = "x" },
		"tag":               func(o *bench.Options) { o.Tag = "../x" },
		"long tag":          func(o *bench.Options) { o.Tag = strings.Repeat("x", bench.MaxTag+1) },
		"files":             func(o *bench.Options) { o.Files = bench.MaxFiles + 1 },
		"batch":             func(o *bench.Options) { o.Batch = 2 },
		"large batch":       func(o *bench.Options) { o.Verb, o.Batch = "null", bench.MaxBatch+1 },
		"negative batch":    func(o *bench.Options) { o.Verb, o.Batch = "null", -1 },
		"sync of download":  func(o *bench.Options) { o.Verb, o.NoSync = "download", true },
		"tag of null":       func(o *bench.Options) { o.Verb, o.Tag = "null", "x" },
		"files of null":     func(o *bench.Options) { o.Verb, o.Files = "null", 3 },
		"count of clean":    func(o *bench.Options) { o.Verb, o.Count = "clean", 3 },
		"echo of NFS":       func(o *bench.Options) { o.Verb, o.Size = "echo", 3 },
		"large echo":        func(o *bench.Options) { o.Verb, o.URL, o.Size = "echo", url, math.MaxInt32 },
		"metrics of no URL": func(o *bench.Options) { o.ServerMetrics = "127.0.0.1:80" },
	} {
		o := s.options("upload", "")
		set(&o)
		res, err := bench.Run(t.Context(), o)
		if !errors.Is(err, bench.ErrUsage) || res != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v tells the password", name, err)
		}
	}
	if got := s.names(); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}
