package fileapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// watched is a file system that counts what is done with it, and may make it slow, or endless.
type watched struct {
	vfs.FS
	*watch
}

type watch struct {
	listings, reads, open atomic.Int64 // in progress
	listed, read          atomic.Int64 // listings begun, bytes read

	names int                                               // so many empty files are in each directory, if not 0
	slow  func(ctx context.Context)                         // each read
	bytes func(p []byte, off uint64) (n int, answered bool) // in place of the file's
}

func (w *watched) As(c *vfs.Caller) vfs.FS { return &watched{w.FS.As(c), w.watch} }

func (w *watched) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	list := w.FS.ReadDir(ctx, dir, from, want, maxBytes)
	if w.names > 0 {
		list = w.many(dir, from)
	}
	return func(yield func(*vfs.Entry, error) bool) {
		w.listings.Add(1)
		w.listed.Add(1)
		defer w.listings.Add(-1)
		list(yield)
	}
}

// many lists a large directory of directories and special files.
func (w *watched) many(dir vfs.Handle, from vfs.Pos) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		e := vfs.Entry{Handle: dir, Attr: vfs.Attr{Valid: vfs.MaskV3, Type: vfs.TypeFIFO}}
		for i := from.Cookie; i < uint64(w.names); i++ {
			e.Name, e.Next.Cookie, e.Handle = fmt.Appendf(nil, "name %d", i), i+1, dir
			if !yield(&e, nil) {
				return
			}
		}
	}
}

func (w *watched) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, o, err := w.FS.Open(ctx, at, how)
	if err == nil {
		w.open.Add(1)
		f = &watchedFile{f, w.watch}
	}
	return f, o, err
}

type watchedFile struct {
	vfs.File
	w *watch
}

func (f *watchedFile) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	f.w.reads.Add(1)
	defer f.w.reads.Add(-1)
	if f.w.slow != nil {
		f.w.slow(ctx)
	}
	n, eof, err := 0, false, ctx.Err()
	answered := false
	if f.w.bytes != nil && err == nil {
		n, answered = f.w.bytes(p, off)
	}
	if !answered && err == nil {
		n, eof, err = f.File.ReadAt(ctx, p, off, post)
	}
	f.w.read.Add(int64(n))
	return n, eof, err
}

func (f *watchedFile) Close(ctx context.Context) error {
	f.w.open.Add(-1)
	return f.File.Close(ctx)
}

// newWatched serves a file system that is watched.
func newWatched(t testing.TB, network *sim.Network, w *watch, change func(*Options)) *rig {
	return newRigOn(t, network, &watched{newMemory(t), w}, change)
}

// sparse makes a file whose bytes are the watch's.
func sparse(r *rig, path string, size uint64) {
	h := r.make(path, aFile, "")
	if _, err := r.fs.SetAttr(r.Context(), h, &vfs.SetAttr{Valid: vfs.MaskSize, Size: size}, nil); err != nil {
		r.Fatal(err)
	}
}

// full fills p with lines of 64 bytes.
func full(p []byte, off uint64) (int, bool) {
	const line = "a line of a file that is longer than all that is read of it ...\n"
	for i := range p {
		p[i] = line[(off+uint64(i))%uint64(len(line))]
	}
	return len(p), true
}

// TestSearchBounds ends searches at the bounds of bytes, entries and depth.
func TestSearchBounds(t *testing.T) {
	w := &watch{bytes: full}
	r := newWatched(t, nil, w, func(o *Options) { o.Limits.SearchBytes, o.Limits.SearchEntries = 1<<20, searchDepth+10 })
	sparse(r, "/endless", 1<<40)
	path := ""
	for range searchDepth + 3 {
		path += "/d"
		r.make(path, aDir, "")
	}
	bounded := func(path string, q *pb.SearchRequest, end pb.SearchEnd) ([]string, *pb.SearchCounts) {
		t.Helper()
		q.File = &pb.SearchRequest_Path{Path: path}
		told, trailer, err := search(t.Context(), r.client["protobuf"], q)
		if err != nil || trailer.GetEnd() != end {
			t.Errorf("%s: %v, %v", path, trailer, err)
		}
		return told, trailer.GetCounts()
	}
	if _, c := bounded("/endless", among("", "none"), pb.SearchEnd_SEARCH_END_BYTES); c.GetBytes() != 1<<20 || w.read.Load() != 1<<20 {
		t.Errorf("%v was searched, and %d bytes were read", c, w.read.Load())
	}
	if _, c := bounded("/endless", with(among("", "none"), func(q *pb.SearchRequest) { q.MaxBytes = 1 << 40 }), pb.SearchEnd_SEARCH_END_BYTES); c.GetBytes() != 1<<20 {
		t.Errorf("a request has moved the bound: %v", c)
	}
	told, _ := bounded("/d", among("", "none"), pb.SearchEnd_SEARCH_END_COMPLETE)
	if len(told) != 1 || told[0] != strings.Repeat("/d", searchDepth+1)+": out_of_range " {
		t.Errorf("what lies too deep: %q", told)
	}
	r.s.o.Limits.SearchEntries = searchDepth - 1
	if _, c := bounded("/d", among("", "none"), pb.SearchEnd_SEARCH_END_ENTRIES); c.GetFiles() != 0 {
		t.Errorf("%v", c)
	}
	if n := w.open.Load() + w.listings.Load(); n != 0 {
		t.Errorf("%d files and listings are open", n)
	}
	if s := r.s.Snapshot(); s.Searches != 0 || s.SearchedBytes != 2<<20 || s.Calls["Search"].Codes["ok"] != 4 {
		t.Errorf("%+v", s)
	}
}

// TestSearchWork: the larger the patterns, the shorter the lines in which they are looked for, since nothing ends the
// matching of one.
func TestSearchWork(t *testing.T) {
	r := newRig(t, nil, nil)
	r.make("/f", aFile, strings.Repeat("ab", 100<<10)+"\nabd\n")
	for pattern, want := range map[string][]string{
		`[ab][ab]{990}[cd]|[ac][ac]{990}[bd]|abd`: {`/f:2@204801:"abd"`, "/f has 1", "/f: out_of_range "},
		"[ab]d": {`/f:2@204801:"abd"`, "/f has 1"},
	} {
		if told, _, err := search(t.Context(), r.client["json"], among("/f", pattern)); err != nil || !slices.Equal(told, want) {
			t.Errorf("%s: %q, %v", pattern, told, err)
		}
	}
}

// TestSearchGrowingFile reads a file to the size that it had, though it never ends.
func TestSearchGrowingFile(t *testing.T) {
	w := &watch{bytes: full}
	r := newWatched(t, nil, w, nil)
	sparse(r, "/log", 640)
	told, trailer, err := search(t.Context(), r.client["grpc"], among("/", "$"))
	if err != nil || len(told) != 11 || trailer.GetCounts().GetBytes() != 640 {
		t.Errorf("%q, %v, %v", told, trailer, err)
	}
}

// TestSearchShrinkingFile tells of a file that has become shorter, and what was found in the rest.
func TestSearchShrinkingFile(t *testing.T) {
	w := &watch{}
	r := newWatched(t, nil, w, nil)
	h := r.make("/log", aFile, "a line\n"+strings.Repeat("x", 100))
	w.slow = func(ctx context.Context) {
		if _, err := r.fs.SetAttr(ctx, h, &vfs.SetAttr{Valid: vfs.MaskSize, Size: 7}, nil); err != nil {
			t.Error(err)
		}
	}
	told, trailer, err := search(t.Context(), r.client["grpc"], among("/log", "line"))
	if err != nil || !slices.Equal(told, []string{`/log:1@0:"a line"`, "/log has 1", "/log: aborted "}) || trailer.GetCounts().GetFailures() != 1 {
		t.Errorf("%q, %v, %v", told, trailer, err)
	}
}

// TestSearchLargeDirectory passes a million names, with a page of them in memory.
func TestSearchLargeDirectory(t *testing.T) {
	need.Speed(t, "a million names, one after the other")
	w := &watch{names: 1_000_000}
	if testing.Short() {
		w.names = 100_000
	}
	r := newWatched(t, nil, w, func(o *Options) { o.Limits.MemoryPerClient = 5 << 20 })
	_, trailer, err := search(t.Context(), r.client["protobuf"], among("/", "x"))
	if err != nil || trailer.GetEnd() != pb.SearchEnd_SEARCH_END_COMPLETE {
		t.Errorf("%v, %v", trailer, err)
	}
	if n := int(w.listed.Load()); n > w.names/searchPage+2 {
		t.Errorf("%d names were listed in %d parts", w.names, n)
	}
}

// TestSearchMemory refuses a search whose listings need more than its caller may have.
func TestSearchMemory(t *testing.T) {
	r := newRig(t, nil, func(o *Options) { o.Limits.MemoryPerClient = searchMemory + 100<<10 })
	path := ""
	for range 2 {
		path += "/d"
		r.make(path, aDir, "")
		for i := range searchPage {
			r.make(fmt.Sprintf("%s/%d", path, i), aFile, "")
		}
	}
	if _, _, err := search(t.Context(), r.client["protobuf"], among("/d/d", "x")); connect.CodeOf(err) != connect.CodeResourceExhausted || r.s.Snapshot().Denied["too_many"] == 0 {
		t.Errorf("%v; %+v", err, r.s.Snapshot().Denied)
	}
}

// TestSearchesAtOnce refuses one more than the server, or its caller, may have.
func TestSearchesAtOnce(t *testing.T) {
	hold := make(chan struct{})
	w := &watch{slow: func(ctx context.Context) {
		select {
		case <-hold:
		case <-ctx.Done():
		}
	}}
	r := newWatched(t, nil, w, func(o *Options) {
		o.Limits.Searches, o.Limits.SearchesPerClient = 4, 2
		o.Callers = callersOf(t, "a 1:1 token:"+strings.Repeat("a", 32)+"\nb 2:2 token:"+strings.Repeat("b", 32)+"\nc 3:3 token:"+strings.Repeat("c", 32)+"\n")
	})
	r.make("/f", vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}}, "x\n")
	as := func(name string) pb.FileServiceClient {
		return pb.NewFileServiceClient(r.http, "http://"+r.addr, connect.WithInterceptors(bearerOf(name)))
	}
	ended := make(chan error, 4)
	begin := func(name string, n int) {
		go func() { _, _, err := search(t.Context(), as(name), among("/f", "x")); ended <- err }()
		for range 20_000 {
			if r.s.Snapshot().Searches == n {
				return
			}
			time.Sleep(time.Millisecond) // for the call to reach the server
		}
		t.Fatalf("%d searches are in progress, want %d", r.s.Snapshot().Searches, n)
	}
	refused := func(name string) {
		t.Helper()
		if _, _, err := search(t.Context(), as(name), among("/f", "x")); connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Errorf("%s: %v", name, err)
		}
	}
	begin("a", 1)
	begin("a", 2)
	refused("a")
	begin("b", 3)
	refused("b") // one is left for others
	begin("c", 4)
	refused("c")
	for i := 0; w.reads.Load() != 4 && i < 20_000; i++ {
		time.Sleep(time.Millisecond) // for the searches to come to their files
	}
	if reads, open := w.reads.Load(), w.open.Load(); reads != 4 || open != 4 {
		t.Errorf("4 searches have %d reads in progress, and %d files open", reads, open)
	}
	if r.s.Snapshot().Denied["too_many"] != 3 {
		t.Errorf("%v", r.s.Snapshot().Denied)
	}
	close(hold)
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// bearerOf shows a caller's token, which is one letter.
type bearerOf string

func (b bearerOf) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }
func (b bearerOf) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, s connect.Spec) connect.StreamingClientConn {
		c := next(ctx, s)
		c.RequestHeader().Set("Authorization", "Bearer "+strings.Repeat(string(b), 32))
		return c
	}
}
func (b bearerOf) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// TestSearchCancelled ends a search at once when its client leaves: while it reads, while it matches, and while it
// lists.
func TestSearchCancelled(t *testing.T) {
	for what, q := range map[string]*pb.SearchRequest{
		"with lines":    among("/endless", "line"),
		"without lines": among("/endless", "none"),
		"matching":      among("/endless", "([a-z ]?[a-z .]?){400}[^a-z .]"),
		"listing":       with(among("/", "x"), func(q *pb.SearchRequest) { q.Rules = []*pb.SearchRule{{Pattern: "*"}} }),
	} {
		w := &watch{bytes: full}
		if what == "listing" {
			w.names = 1 << 40
		}
		began := time.Now()
		// A clock that stands still lets no search find out by telling of its progress.
		r := newWatched(t, nil, w, func(o *Options) { o.Now = func() time.Time { return began } })
		sparse(r, "/endless", 1<<50)
		for name, client := range r.client {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { _, _, err := search(ctx, client, q); ended <- err }()
			for w.read.Load()+w.listed.Load() == 0 {
				time.Sleep(time.Millisecond) // for the call to reach the server
			}
			cancel()
			if err := <-ended; connect.CodeOf(err) != connect.CodeCanceled {
				t.Errorf("%s, %s: %v", what, name, err)
			}
			r.inProgress(0)
			w.read.Store(0)
			w.listed.Store(0)
		}
		if n := w.open.Load() + w.listings.Load(); n != 0 {
			t.Errorf("%s: %d files and listings are open", what, n)
		}
	}
}

// TestSearchWithoutReader: a client that takes nothing holds no listing and no read, and its search ends.
func TestSearchWithoutReader(t *testing.T) {
	w := &watch{bytes: full}
	synctest.Test(t, func(t *testing.T) {
		r := newWatched(t, sim.NewNetwork(1), w, nil)
		for i := range 10 {
			sparse(r, fmt.Sprint("/", i), 1<<30)
		}
		c := r.conn()
		defer func() { _ = c.Close() }()
		q := prefixed(`{"path":"/","recursive":true,"patterns":[""]}`)
		if _, err := fmt.Fprintf(c, "POST /%s/Search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/connect+json\r\nContent-Length: %d\r\n\r\n%s", pb.FileServiceName, len(q), q); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := r.s.Snapshot(); w.listings.Load() != 0 || w.reads.Load() != 0 || w.open.Load() != 1 || s.Searches != 1 || s.Memory > searchMemory+1<<20 {
			t.Errorf("while its client reads nothing there are %d listings, %d reads, %d open files; %+v", w.listings.Load(), w.reads.Load(), w.open.Load(), s)
		}
		time.Sleep(r.s.o.Limits.Idle * 2)
		synctest.Wait()
		if s := r.s.Snapshot(); w.open.Load() != 0 || s.Searches != 0 || s.InProgress != 0 || s.Memory != 0 || s.Slow != 1 || s.Calls["Search"].Codes["deadline_exceeded"] != 1 {
			t.Errorf("afterwards: %d open files, %+v", w.open.Load(), s)
		}
	})
}

// TestSearchTellsInTime: what was found comes soon, though the file goes on; and where nothing is found, progress does.
func TestSearchTellsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watch{bytes: func(p []byte, off uint64) (int, bool) {
			clear(p)
			if n := copy(p, "first\n"); off > 0 {
				copy(p, "other\n"[:n])
			}
			return len(p), true
		}, slow: func(ctx context.Context) {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}}
		r := newWatched(t, sim.NewNetwork(1), w, nil)
		sparse(r, "/f", 1<<40)
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream, err := r.client["json"].Search(ctx, with(among("/f", "first"), func(q *pb.SearchRequest) { q.Binary = pb.SearchBinary_SEARCH_BINARY_TEXT }))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []time.Duration{time.Second, time.Second + searchSilence, time.Second + 2*searchSilence} {
			if !stream.Receive() {
				t.Fatal(stream.Err())
			}
			took := time.Since(began)
			if isLines := stream.Msg().GetLines() != nil; took < want || took > want+time.Second || isLines != (want == time.Second) || !isLines && stream.Msg().GetProgress().GetBytes() == 0 {
				t.Errorf("after %v, want %v: %v", took, want, stream.Msg())
			}
		}
		cancel()
		for stream.Receive() {
		}
		_ = stream.Close()
		synctest.Wait()
		if n := w.open.Load(); n != 0 {
			t.Errorf("%d files are open", n)
		}
	})
}

// TestSearchFailures: what cannot be read is told, and the rest is searched; what is not for clients is told to the operator.
func TestSearchFailures(t *testing.T) {
	var reported atomic.Int64
	failing := &failingFS{FS: newMemory(t), name: "b.log"}
	r := newRig(t, failing, func(o *Options) { o.Report = func(error) { reported.Add(1) } })
	grove(r)
	for err, want := range map[error]string{
		vfs.ErrAccess:                    "permission_denied ACCES",
		vfs.ErrIO:                        "internal IO",
		vfs.ErrStale:                     "not_found STALE",
		errors.New("secret of the disk"): "internal SERVERFAULT",
		io.ErrUnexpectedEOF:              "internal SERVERFAULT",
	} {
		failing.err = err
		told, trailer, serr := search(t.Context(), r.client["json"], with(among("/t", "milk"), func(q *pb.SearchRequest) { q.Rules = []*pb.SearchRule{{Pattern: "sub"}, {Pattern: "bin"}} }))
		if serr != nil || trailer.GetCounts().GetFailures() != 1 || !strings.Contains(strings.Join(told, "\n"), "/t/b.log: "+want) || !strings.Contains(strings.Join(told, "\n"), "/t/a.txt has 2") {
			t.Errorf("%v: %q, %v, %v", err, told, trailer, serr)
		}
	}
	if reported.Load() != 3 {
		t.Errorf("the operator was told of %d failures", reported.Load())
	}
}

// failingFS is one in which a file cannot be opened.
type failingFS struct {
	vfs.FS
	name string
	err  error
	h    vfs.Handle
}

func (f *failingFS) As(*vfs.Caller) vfs.FS { return f }

func (f *failingFS) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		for e, err := range f.FS.ReadDir(ctx, dir, from, want, maxBytes) {
			if err == nil && string(e.Name) == f.name {
				f.h = e.Handle
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (f *failingFS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if at.H == f.h {
		return nil, vfs.Opened{}, f.err
	}
	return f.FS.Open(ctx, at, how)
}
