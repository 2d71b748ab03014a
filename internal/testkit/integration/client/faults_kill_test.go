package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/built"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	killTreeDirs  = 24
	killTreeFiles = 10  // in each directory
	killsPerCopy  = 4   // out, and in
	killSeeds     = 5   // of two copies each
	killSeedsRace = 2   // under the race detector, which is not in the servers
	soakKills     = 100 // with NFSBOX_SOAK=1
	// killPatience is enough for the server to come back many times.
	killPatience = "timeo=50&retrans=20"
)

// TestKilledServer copies a tree out of a server and into it, which is killed at
// moments that the seed chooses, and begun anew at the same port and with the
// same state. The copies end well and leave nothing behind. A SIGKILL keeps the
// host's page cache: what is lost when the power goes is sim.Disk's business.
func TestKilledServer(t *testing.T) {
	need.Time(t, "copies out of and into servers that are killed")
	n := killSeeds
	if need.Race {
		n = killSeedsRace
	}
	if os.Getenv("NFSBOX_SOAK") != "" {
		n = soakKills / (2 * killsPerCopy) * 11 / 10 // some moments come after the end
	}
	bin, err := built.Into(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree := t.TempDir()
	makeKillTree(t, tree)
	var kills atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for _, seed := range seeds(t, n) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel() // it waits for the disk, and for servers
				kills.Add(int64(killedCopies(t, bin, tree, seed)))
			})
		}
	})
	t.Logf("%d kills", kills.Load())
	if kills.Load() < int64(n)*killsPerCopy {
		t.Errorf("only %d kills with %d seeds", kills.Load(), n)
	}
}

// makeKillTree makes the tree that is copied.
func makeKillTree(t *testing.T, dir string) {
	t.Helper()
	r := mathrand.New(mathrand.NewPCG(1, 2))
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for d := range killTreeDirs {
		sub := filepath.Join(dir, fmt.Sprintf("d%d", d%6), fmt.Sprintf("e%d", d))
		check(os.MkdirAll(sub, 0o750))
		for i := range killTreeFiles {
			size := r.IntN(40 << 10)
			if i == 0 {
				size = r.IntN(3 << 20)
			}
			check(os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%d", i)), pattern(uint64(d), uint64(i), 0, size), 0o640))
		}
		check(os.Link(filepath.Join(sub, "f1"), filepath.Join(sub, "linked")))
		check(os.Symlink("f2", filepath.Join(sub, "symlink")))
		check(os.WriteFile(filepath.Join(sub, "empty"), nil, 0o400))
	}
}

// killedCopies copies out, and what came out in again; it returns the number of
// kills.
func killedCopies(t *testing.T, bin, tree string, seed uint64) int {
	base := t.TempDir()
	out, in := filepath.Join(base, "out"), filepath.Join(base, "in")
	for _, dir := range []string{out, in} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	handles := []string{"auto", "map"}[seed%2]
	kills := 0
	s := &child{t: t, bin: bin, dir: tree, state: filepath.Join(base, "state-out"), handles: handles, listen: "127.0.0.1:0"}
	kills += s.copy(seed, false, out)
	same(t, seed, tree, out)
	s = &child{t: t, bin: bin, dir: in, state: filepath.Join(base, "state-in"), handles: handles, listen: "127.0.0.1:0"}
	kills += s.copy(seed+1000, true, out)
	same(t, seed, tree, in)
	return kills
}

// child is a server in a process of its own.
type child struct {
	t                                *testing.T
	bin, dir, state, handles, listen string

	url    string
	cmd    *exec.Cmd
	out    io.ReadCloser
	stderr bytes.Buffer
}

// begin starts the process and waits until it listens.
func (s *child) begin() error {
	s.stderr.Reset()
	s.cmd = exec.Command(s.bin, "serve", s.dir, "--listen", s.listen, "--state-dir", s.state, "--handles", s.handles, "--localio", "off")
	s.cmd.Stderr = &s.stderr
	var err error
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(s.out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the server did not begin: %w", errors.Join(err, s.cmd.Wait(), errors.New(s.stderr.String())))
	}
	s.url = strings.TrimSpace(line)
	u, err := url.Parse(s.url)
	if err != nil {
		return err
	}
	s.listen = u.Host
	return nil
}

// kill ends the process, at once.
func (s *child) kill() error {
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = s.cmd.Wait() // which says that it was killed
	return nil
}

// copy copies the server's tree to local, or local to the server's tree, while
// the server is killed again and again. It returns how often.
func (s *child) copy(seed uint64, in bool, local string) (kills int) {
	t := s.t
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
	r := mathrand.New(mathrand.NewPCG(seed, 0))
	due := make(map[int64]bool)
	for range killsPerCopy {
		due[1+r.Int64N(killTreeDirs*killTreeFiles*9/10)] = true
	}
	now := make(chan struct{}, killsPerCopy)
	ended := make(chan error, 1)
	go func() {
		var err error
		for range now {
			if err == nil {
				err = s.kill()
			}
			if err == nil {
				err = s.begin()
			}
			kills++
		}
		ended <- err
	}()
	err := s.runCopy(in, local, func(opened int64) {
		if due[opened] {
			now <- struct{}{}
		}
	})
	close(now)
	if err := errors.Join(err, <-ended, s.kill()); err != nil {
		t.Errorf("seed %d, in %v, %d kills: %v", seed, in, kills, err)
	}
	return kills
}

// runCopy is the copy itself. opened is told of every file that is opened on the
// local side, and how many they are by then.
func (s *child) runCopy(in bool, local string, opened func(n int64)) (err error) {
	c := dial(s.t, s.url+"?"+killPatience)
	disk, err := localfs.New(local, localfs.Options{Handles: localfs.HandlesMap, Volatile: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, vfs.CloseFS(disk)) }()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
	defer cancel()
	place := func(fs vfs.FS) job.Place {
		h, _, e := fs.Root(ctx)
		err = errors.Join(err, e)
		return job.Place{FS: fs, Handle: h}
	}
	far, near := place(c.FS()), place(&opens{FS: disk, told: opened})
	if err != nil {
		return err
	}
	events := new(eventList)
	o := job.CopyOptions{Source: far, Dest: near, Pool: new(bufpool.Pool), Random: rand.Reader, Now: time.Now,
		Progress: progress.New(events, time.Now), Owner: true}
	if in {
		o.Source, o.Dest = near, far
	}
	sum, err := job.Copy(ctx, o)
	if status := sum.ExitCode(err); status != job.ExitDone {
		err = errors.Join(err, fmt.Errorf("exit %d: %+v", status, sum), errors.New(events.String()))
	}
	return errors.Join(err, o.Progress.Finish(nil))
}

// opens counts the files that are opened.
type opens struct {
	vfs.FS
	n    atomic.Int64
	told func(n int64)
}

func (o *opens) Unwrap() any { return o.FS }

func (o *opens) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	o.told(o.n.Add(1))
	return o.FS.Open(ctx, at, how)
}

// eventList keeps the first events of a job.
type eventList struct {
	mu   sync.Mutex
	list []string
}

func (l *eventList) Interval() time.Duration               { return time.Hour }
func (l *eventList) Progress(*progress.Snapshot) error     { return nil }
func (l *eventList) Summary(*progress.Snapshot, any) error { return nil }
func (l *eventList) Event(_ time.Time, e *progress.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) < 5 {
		l.list = append(l.list, fmt.Sprintf("%s %s: %s", e.Type, e.Path, e.Message))
	}
	return nil
}

func (l *eventList) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.list, "\n")
}

// same compares two trees on the disk, names that should not be there included.
func same(t *testing.T, seed uint64, a, b string) {
	t.Helper()
	var err error
	open := func(dir string) job.Place {
		fs, e := localfs.New(dir, localfs.Options{Handles: localfs.HandlesMap, Volatile: true, ReadOnly: true})
		if e != nil {
			t.Fatal(e)
		}
		t.Cleanup(func() { _ = vfs.CloseFS(fs) }) // nothing was written
		h, _, e := fs.Root(t.Context())
		err = errors.Join(err, e)
		return job.Place{FS: fs, Handle: h}
	}
	events := new(eventList)
	o := job.VerifyOptions{Source: open(a), Dest: open(b), Pool: new(bufpool.Pool), Now: time.Now, Progress: progress.New(events, time.Now), Owner: true}
	if err != nil {
		t.Fatal(err)
	}
	sum, err := job.Verify(t.Context(), o)
	if status := sum.ExitCode(err); status != job.ExitDone {
		t.Errorf("seed %d: the trees differ: %+v, %v\n%s", seed, sum, err, events)
	}
	if err := o.Progress.Finish(nil); err != nil {
		t.Error(err)
	}
}
