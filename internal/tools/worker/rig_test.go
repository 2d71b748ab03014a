package worker

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/hands"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
	"github.com/nfsbox/nfsbox/internal/tools/queue/memqueue"
	"github.com/nfsbox/nfsbox/vfs"
)

// rig is a server with two exports, nfs://mem/src and nfs://mem/dst, beside others, and a broker.
type rig struct {
	t      *testing.T
	fs     *memfs.FS
	root   vfs.Handle
	broker *memqueue.Server
	dir    *os.Root // of the record
	runs   atomic.Int64
	conn   queue.Broker // of the coordinator
	heard  sync.Map     // what a liar was told
	pace   func() (load int, rate uint64)

	slow atomic.Pointer[func(op string)]
	wrap func(queue.Broker) queue.Broker // of workers; nil: it is as it is
	far  func(vfs.FS) vfs.FS             // likewise
}

// handsEach is how many files a worker of the rig copies at once.
const handsEach = 8

const (
	srcURL = "nfs://mem/src?uid=0&gid=0"
	dstURL = "nfs://mem/dst?uid=0&gid=0"
)

func newRig(t *testing.T) *rig {
	x := &rig{t: t, broker: memqueue.New()}
	x.fs = memfs.New(memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if f := x.slow.Load(); f != nil {
			(*f)(op)
		}
		return nil
	}})
	var err error
	if x.root, _, err = x.fs.Root(t.Context()); err != nil {
		t.Fatal(err)
	}
	if x.dir, err = os.OpenRoot(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.dir.Close() })
	for _, name := range []string{"src", "dst", "other"} {
		x.mkdir(name)
	}
	return x
}

func (x *rig) mkdir(at string) vfs.Handle {
	x.t.Helper()
	if at == "." {
		return x.root
	}
	up := x.mkdir(path.Dir(at))
	h, _, _, err := x.fs.Create(context.Background(), up, path.Base(at), &vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}})
	if errors.Is(err, vfs.ErrExist) {
		h, _, _, err = x.fs.Lookup(context.Background(), up, path.Base(at))
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return h
}

func (x *rig) write(at, contents string) {
	x.t.Helper()
	ctx := context.Background()
	f, _, err := x.fs.Open(ctx, vfs.At{Dir: x.mkdir(path.Dir(at)), Name: path.Base(at)}, &vfs.OpenHow{Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}}})
	if err != nil {
		x.t.Fatal(err)
	}
	var w vfs.Written
	if _, err := vfs.WriteFull(ctx, f, []byte(contents), 0, vfs.FileSync, &w); err != nil {
		x.t.Fatal(err)
	}
	if err := f.Close(ctx); err != nil {
		x.t.Fatal(err)
	}
}

// plain makes a source of dirs directories with so many files each, of one name.
func (x *rig) plain(dirs, files int) {
	for d := range dirs {
		for f := range files {
			x.write(fmt.Sprintf("src/d%d/f%d", d, f), strings.Repeat(fmt.Sprintf("%d/%d ", d, f), 1+f%7))
		}
	}
}

// fill is plain, and one file has a second name in another directory.
func (x *rig) fill(dirs, files int) {
	x.plain(dirs, files)
	h, _, _, err := x.fs.Lookup(context.Background(), x.mkdir("src/d0"), "f0")
	if err == nil {
		_, _, err = x.fs.Link(context.Background(), h, x.mkdir("src/d1"), "linked")
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

// names are all names below a directory.
func (x *rig) names(at string) []string {
	x.t.Helper()
	found := make(map[string]bool)
	var list func(dir vfs.Handle, at string)
	list = func(dir vfs.Handle, at string) {
		for e, err := range x.fs.ReadDir(context.Background(), dir, vfs.Pos{}, vfs.MaskType|vfs.MaskHandle, 1<<20) {
			if err != nil {
				x.t.Fatal(err)
			}
			name := string(e.Name)
			found[at+name] = true
			if e.Attr.Type == vfs.TypeDir {
				list(e.Handle, at+name+"/")
			}
		}
	}
	list(x.mkdir(at), "")
	return slices.Sorted(maps.Keys(found))
}

// opener opens what a URL of the rig names, for a worker that is dead some time.
func (x *rig) opener(dead *atomic.Bool) Open {
	return func(_ context.Context, arg string) (*place.Place, error) {
		at, err := PlaceOf(arg)
		var f vfs.FS = mortal{x.fs, dead}
		if x.far != nil {
			f = x.far(f)
		}
		return &place.Place{FS: f, Path: strings.TrimPrefix(at.Path, "/"), Text: arg}, err
	}
}

// mortal is the file system of a worker. When that is dead it removes and renames nothing any more.
type mortal struct {
	vfs.FS
	dead *atomic.Bool
}

var errDead = errors.New("the worker is dead")

func (m mortal) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	if m.dead.Load() {
		return vfs.WCC{}, errDead
	}
	return m.FS.Remove(ctx, dir, name, isDir)
}

func (m mortal) Rename(ctx context.Context, fromDir vfs.Handle, from string, toDir vfs.Handle, to string) (a, b vfs.WCC, err error) {
	if m.dead.Load() {
		return a, b, errDead
	}
	return m.FS.Rename(ctx, fromDir, from, toDir, to)
}

// worker starts a worker that may touch places. stop has it end, kill ends it at once, without a word.
func (x *rig) worker(allow ...string) (stop, kill func()) {
	x.t.Helper()
	log := new(bytes.Buffer)
	var mu sync.Mutex
	var dead atomic.Bool
	o := Options{
		Broker: x.broker.Connect(), Open: x.opener(&dead), Name: "w", Pool: new(bufpool.Pool), Random: rand.Reader, Parallel: handsEach,
		Log: slog.New(slog.NewTextHandler(&locked{&mu, log}, nil)),
	}
	if x.wrap != nil {
		o.Broker = x.wrap(o.Broker)
	}
	for _, arg := range allow {
		a, err := Allow(arg)
		if err != nil {
			x.t.Fatal(err)
		}
		o.Allow = append(o.Allow, a)
	}
	w := New(o)
	hard, end := context.WithCancel(context.Background())
	soft, stop := context.WithCancel(hard)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.Run(hard, soft); err != nil && !dead.Load() { // a dead one may find its connection closed
			x.t.Errorf("worker: %v", err)
		}
	}()
	kill = func() {
		dead.Store(true)
		_ = o.Broker.Close()
		end()
		<-done
	}
	stop = func() {
		stop()
		<-done
		_ = o.Broker.Close()
		end()
	}
	x.t.Cleanup(func() {
		kill()
		if x.t.Failed() {
			mu.Lock()
			defer mu.Unlock()
			x.t.Logf("worker:\n%s", log)
		}
	})
	return stop, kill
}

type locked struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

const jobID = "a job of the rig"

// spec is that of the copy.
func (x *rig) spec() hands.Spec {
	src, err := PlaceOf(srcURL)
	dst, derr := PlaceOf(dstURL, "copy")
	if err = errors.Join(err, derr); err != nil {
		x.t.Fatal(err)
	}
	return hands.Spec{Command: "cp", Source: &src, Dest: dst, Tag: job.TempTag(jobID), Owner: true}
}

// coordinate opens a run of the copy.
func (x *rig) coordinate(tell func(string)) *hands.Coordinator {
	x.t.Helper()
	if tell == nil {
		tell = func(string) {}
	}
	return x.lead(x.spec(), tell)
}

// coordinateAs opens a run of another job.
func (x *rig) coordinateAs(change func(*hands.Spec)) *hands.Coordinator {
	x.t.Helper()
	s := x.spec()
	change(&s)
	return x.lead(s, func(string) {})
}

func (x *rig) lead(s hands.Spec, tell func(string)) *hands.Coordinator {
	x.t.Helper()
	b, err := s.Encode()
	if err != nil {
		x.t.Fatal(err)
	}
	x.conn = x.broker.Connect()
	c, err := hands.Open(x.t.Context(), hands.Options{
		Broker: x.conn, Job: queue.Job{Name: "job", Run: fmt.Sprintf("%032x", x.runs.Add(1)), Spec: b}, Tell: tell, Pace: x.pace,
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return c
}

// abandon ends a coordinator as a kill does: without a word to the broker.
func (x *rig) abandon(c *hands.Coordinator) {
	_ = x.conn.Close()
	if err := c.Close(); !errors.Is(err, queue.ErrBroker) {
		x.t.Errorf("close: %v", err)
	}
}

// copy copies src to dst/copy with the hands.
func (x *rig) copy(ctx context.Context, h hands.Hands, more func(*job.CopyOptions)) (job.Summary, error) {
	o := job.CopyOptions{
		Source: job.Place{FS: x.fs, Handle: x.mkdir("src")}, Dest: job.Place{FS: x.fs, Handle: x.mkdir("dst")}, Name: "copy",
		Pool: new(bufpool.Pool), Random: rand.Reader, Now: time.Now, Owner: true, Record: x.dir, ID: jobID, Hands: h,
		Progress: progress.New(nil, time.Now),
	}
	if more != nil {
		more(&o)
	}
	return job.Copy(ctx, o)
}

// same verifies that dst/copy is what src is.
func (x *rig) same() {
	x.t.Helper()
	s, err := job.Verify(context.Background(), job.VerifyOptions{
		Source: job.Place{FS: x.fs, Handle: x.mkdir("src")}, Dest: job.Place{FS: x.fs, Handle: x.mkdir("dst/copy")},
		Pool: new(bufpool.Pool), Now: time.Now, Progress: progress.New(nil, time.Now), Owner: true,
	})
	if s.ExitCode(err) != job.ExitDone {
		x.t.Errorf("verify: %v, %+v", err, s)
	}
	if a, b := x.names("src"), x.names("dst/copy"); !slices.Equal(a, b) {
		x.t.Errorf("%d names in the source, and %d in the copy", len(a), len(b))
	}
}
