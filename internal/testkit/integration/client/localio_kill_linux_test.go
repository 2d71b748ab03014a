package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/built"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

// Local I/O while its server is killed, and for long. NFSBOX_SOAK=1 has both do
// what the promise says.
const (
	hostKillPause = 200 * time.Millisecond
	hostLife      = 3 * time.Second
	hostFileSize  = 16 << 20 // of the larger files that are copied

	hostTreeSize, hostKills         = 64 << 20, 3
	soakHostTreeSize, soakHostKills = 2 << 30, 50
	hostRounds                      = 100 // of copies, at most

	openFiles                  = 48 // in a round of the other test
	openRounds, soakOpenRounds = 20, 2000
	// spareDescriptors are those that come and go for other reasons: connections,
	// handles that the server keeps open.
	spareDescriptors = 16
)

// hostServer is a server in a process of its own, and the directory where it meets
// clients on its host.
type hostServer struct {
	t             *testing.T
	bin, base     string
	listen        string
	cmd           *exec.Cmd
	out           io.ReadCloser
	stderr        bytes.Buffer
	exported, url string
	kills         atomic.Int64
}

func newHostServer(t *testing.T) *hostServer {
	t.Helper()
	base := t.TempDir()
	bin, err := built.Into(base)
	if err != nil {
		t.Fatal(err)
	}
	s := &hostServer{t: t, bin: bin, base: base, listen: "127.0.0.1:0", exported: filepath.Join(base, "export")}
	for _, dir := range []string{s.exported, filepath.Join(base, "run")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.kill(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// begin starts the process, at the same port as before, and waits until it
// listens.
func (s *hostServer) begin() error {
	s.stderr.Reset()
	s.cmd = exec.Command(s.bin, "serve", s.exported, "--listen", s.listen,
		"--state-dir", filepath.Join(s.base, "state"), "--localio-dir", filepath.Join(s.base, "run"))
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
	if err == nil {
		s.listen = u.Host
	}
	return err
}

func (s *hostServer) kill() error {
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = s.cmd.Wait() // which says that it was killed
	return nil
}

// dial connects as the user of this process, and has found the socket then.
func (s *hostServer) dial() *nfsbox.Client {
	s.t.Helper()
	me := vfs.Caller{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	c := dial(s.t, s.url+"?hard", nfsbox.WithCaller(me), nfsbox.WithLocalIO(nfsbox.LocalIOAuto), nfsbox.WithEagerLocalIO(), nfsbox.WithLocalIODir(filepath.Join(s.base, "run")))
	eventually(s.t, func() bool { return c.Stats().LocalIO.State == "local" }, func() string { return fmt.Sprintf("not local: %+v", c.Stats().LocalIO) })
	return c
}

// killing runs during while the server is killed and begun anew, again and again. It
// lives for pause, each time a quarter longer, up to hostLife: a client tries again after
// a second or more, and has to meet it alive, on a busy machine too.
func (s *hostServer) killing(pause time.Duration, during func()) {
	end, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-end:
				ended <- nil
				return
			case <-time.After(pause):
			}
			pause = min(pause+pause/4, hostLife)
			if err := errors.Join(s.kill(), s.begin()); err != nil {
				ended <- err
				return
			}
			s.kills.Add(1)
		}
	}()
	defer func() {
		close(end)
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	}()
	during()
}

// eventually waits until ok, for half a minute at most.
func eventually(t *testing.T, ok func() bool, what func() string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 3000 {
		if ok() {
			return
		}
		<-tick.C
	}
	t.Fatal(what())
}

// descriptors are what a process has open, and how often.
func descriptors(t *testing.T, pid string) (n int, kinds map[string]int) {
	t.Helper()
	dir := filepath.Join("/proc", pid, "fd")
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	kinds = make(map[string]int)
	for _, e := range list {
		link, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // that of the list itself
		}
		if name, _, ok := strings.Cut(link, ":["); ok {
			link = name
		}
		n++
		kinds[link]++
	}
	return n, kinds
}

// ownDescriptors is how many this process has, those of the runtime's poller
// included, which stay once it has been needed.
func ownDescriptors(t *testing.T) int {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	n, _ := descriptors(t, "self")
	return n
}

// wantDescriptors waits until a process has no more of them than most.
func wantDescriptors(t *testing.T, who, pid string, most int) {
	t.Helper()
	eventually(t, func() bool { n, _ := descriptors(t, pid); return n <= most }, func() string {
		n, kinds := descriptors(t, pid)
		var all []string
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			all = append(all, fmt.Sprintf("%d %s", kinds[kind], kind))
		}
		return fmt.Sprintf("%s has %d descriptors open, at most %d expected:\n%s", who, n, most, strings.Join(all, "\n"))
	})
}

// TestLocalIOKilled copies out of a server on this host, and writes there, while
// the server is killed all the time. All of it ends well and holds what it must,
// some of it without the network; and no descriptor stays.
func TestLocalIOKilled(t *testing.T) {
	need.Time(t, "local I/O while its server is killed")
	size, most := hostTreeSize, hostKills
	if os.Getenv("NFSBOX_SOAK") != "" {
		size, most = soakHostTreeSize, soakHostKills
	}
	before := ownDescriptors(t)
	t.Run("copies", func(t *testing.T) {
		s := newHostServer(t)
		tree := filepath.Join(s.exported, "tree")
		makeHostTree(t, tree, size)
		c := s.dial()
		enough := func() bool { // a short copy may fall between two sessions
			st := c.Stats().LocalIO
			return s.kills.Load() >= int64(most) && st.BytesRead > 0 && st.BytesWritten > 0 && st.Handshakes > 1
		}
		s.killing(hostKillPause, func() {
			for i := 0; i < 1 || i < hostRounds && !enough() && !t.Failed(); i++ {
				s.copy(c, tree, i)
				s.write(c, size, i)
			}
		})
		t.Logf("%d kills; %+v", s.kills.Load(), c.Stats().LocalIO)
		if !enough() {
			t.Errorf("not enough was local, or there were fewer than %d kills", most)
		}
	})
	wantDescriptors(t, "the client", "self", before)
}

// makeHostTree makes files of so many bytes together, most of them large.
func makeHostTree(t *testing.T, dir string, size int) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := 0; size > 0; i++ {
		n := min(size, hostFileSize)
		if i%2 == 1 {
			n = min(size, hostFileSize>>(i/2%16))
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), pattern(uint64(i), 0, 0, n), 0o640); err != nil {
			t.Fatal(err)
		}
		size -= n
	}
}

// copy copies the tree out of the server, has every file read back, and compares.
func (s *hostServer) copy(c *nfsbox.Client, tree string, i int) {
	t, name := s.t, fmt.Sprint("copy", i)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	disk, err := localfs.New(s.base, localfs.Options{Handles: localfs.HandlesMap, Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := vfs.CloseFS(disk); err != nil {
			t.Error(err)
		}
	}()
	events := new(eventList)
	o := job.CopyOptions{Source: place(ctx, t, c.FS(), "tree"), Dest: place(ctx, t, disk, ""), Name: name,
		Verify: true, Pool: new(bufpool.Pool), Random: rand.Reader, Now: time.Now, Progress: progress.New(events, time.Now)}
	sum, err := job.Copy(ctx, o)
	if status := sum.ExitCode(err); status != job.ExitDone {
		t.Errorf("copy %d: exit %d: %+v, %v\n%s", i, status, sum, err, events)
	}
	if err := o.Progress.Finish(nil); err != nil {
		t.Error(err)
	}
	to := filepath.Join(s.base, name)
	t.Run(name, func(t *testing.T) { same(t, 0, tree, to) })
	if err := os.RemoveAll(to); err != nil {
		t.Error(err)
	}
}

// write writes a file of so many bytes, with a commit now and then, and reads it
// back on the server's disk. It is one file, since a call that makes or renames
// something may be executed by a server that is killed before it can say so.
func (s *hostServer) write(c *nfsbox.Client, size, i int) {
	t := s.t
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	root, _, err := c.FS().Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	how := &vfs.OpenHow{Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked}}
	f, _, err := c.FS().Open(ctx, vfs.At{Dir: root, Name: "written"}, how)
	if err != nil {
		t.Fatal(err)
	}
	const step = 1 << 20
	for off := 0; off < size && err == nil; off += step {
		_, err = vfs.WriteFull(ctx, f, pattern(uint64(i), 1, off, step), uint64(off), vfs.Unstable, new(vfs.Written))
		if err == nil && off%hostFileSize == 0 {
			err = f.Commit(ctx, 0, 0, new(vfs.Written))
		}
	}
	if err := errors.Join(err, f.Close(ctx)); err != nil {
		t.Errorf("writing: %v", err)
		return
	}
	disk, err := os.Open(filepath.Join(s.exported, "written"))
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, step)
	for off := 0; off < size && err == nil; off += step {
		if _, err = io.ReadFull(disk, p); err == nil && !bytes.Equal(p, pattern(uint64(i), 1, off, step)) {
			err = fmt.Errorf("other bytes in the %d at %d", step, off)
		}
	}
	if err := errors.Join(err, disk.Close()); err != nil {
		t.Errorf("what was written: %v", err)
	}
}

// place is what path names below the root.
func place(ctx context.Context, t *testing.T, fs vfs.FS, path string) job.Place {
	t.Helper()
	root, _, err := fs.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r, err := vfs.Resolve(ctx, fs, root, path, true)
	if err != nil {
		t.Fatal(err)
	}
	return job.Place{FS: fs, Handle: r.Handle}
}

// TestLocalIODescriptors uses many files for long, which are changed and taken
// away meanwhile. Neither side has more open in the end than after a while.
func TestLocalIODescriptors(t *testing.T) {
	need.Time(t, "many rounds that could leave descriptors behind")
	rounds := openRounds
	if os.Getenv("NFSBOX_SOAK") != "" {
		rounds = soakOpenRounds
	}
	before := ownDescriptors(t)
	t.Run("use", func(t *testing.T) {
		s := newHostServer(t)
		pid := fmt.Sprint(s.cmd.Process.Pid)
		idle, _ := descriptors(t, pid)
		t.Run("client", func(t *testing.T) {
			c := (&hostServer{t: t, base: s.base, url: s.url}).dial()
			root, _, err := c.FS().Root(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var mine, theirs int
			for i := range rounds {
				useFiles(t, c.FS(), root, i)
				if i == rounds/4 {
					mine, _ = descriptors(t, "self")
					theirs, _ = descriptors(t, pid)
				}
			}
			st := c.Stats().LocalIO
			t.Logf("descriptors: %d before, %d and %d of the server after a while; %+v", before, mine, theirs, st)
			if st.Reads == 0 || st.Writes == 0 || st.Revoked == 0 {
				t.Errorf("nothing was local: %+v", st)
			}
			wantDescriptors(t, "the client", "self", mine+spareDescriptors)
			wantDescriptors(t, "the server", pid, theirs+spareDescriptors)
		})
		wantDescriptors(t, "the server without a client", pid, idle+openFiles+spareDescriptors)
	})
	wantDescriptors(t, "the process", "self", before)
}

// useFiles opens files, writes and reads them, replaces and removes some of them
// and changes others while they are open, and closes them.
func useFiles(t *testing.T, fs vfs.FS, root vfs.Handle, round int) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	files, handles := make([]vfs.File, openFiles), make([]vfs.Handle, openFiles)
	for i := range files {
		how := &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite, Create: &vfs.CreateHow{
			Type: vfs.TypeReg, Mode: vfs.CreateUnchecked, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}}}
		f, opened, err := fs.Open(ctx, vfs.At{Dir: root, Name: fmt.Sprint(i)}, how)
		check(err)
		files[i], handles[i] = f, opened.H
	}
	for i, f := range files {
		data := pattern(uint64(i), uint64(round), 0, 5000)
		_, err := vfs.WriteFull(ctx, f, data, 0, vfs.Unstable, new(vfs.Written))
		check(err)
		check(f.Commit(ctx, 0, 0, new(vfs.Written)))
		switch i % 4 {
		case 0:
			_, err := fs.SetAttr(ctx, handles[i], &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o640}, nil)
			check(err)
		case 1:
			_, err := fs.Remove(ctx, root, fmt.Sprint(i), false)
			check(err)
		case 2:
			_, _, err := fs.Rename(ctx, root, fmt.Sprint(i), root, fmt.Sprint((i+1)%openFiles))
			check(err)
		}
		got := make([]byte, len(data))
		n, _, err := vfs.ReadFull(ctx, f, got, 0)
		if err != nil || n != len(data) || !bytes.Equal(got, data) {
			t.Fatalf("round %d, file %d: %d bytes, %v, equal %v", round, i, n, err, bytes.Equal(got, data))
		}
	}
	for _, f := range files {
		check(f.Close(ctx))
	}
}
