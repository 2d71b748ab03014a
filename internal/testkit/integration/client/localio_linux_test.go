package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/session"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
	"github.com/nfsbox/nfsbox/xdr"
)

// here is the user of the process, to the server.
func here() vfs.Caller { return vfs.Caller{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())} }

// neighbour is a directory, what serves it, and where it meets clients of this
// host.
type neighbour struct {
	*server
	t    testing.TB
	tree string // what is served
	run  string // the directory of the socket
	rule export.Rule
	fs   *localfs.FS
}

// newNeighbour serves a directory, to everybody by rule. It is begun.
func newNeighbour(t testing.TB, mode localfs.Mode, rule export.Rule) *neighbour {
	t.Helper()
	n := &neighbour{t: t, tree: t.TempDir(), run: filepath.Join(t.TempDir(), "run"), rule: rule}
	if n.rule.Match = "*"; n.rule.Squash == 0 {
		n.rule.Squash = export.SquashNone
	}
	var err error
	if n.fs, err = localfs.New(n.tree, localfs.Options{Handles: mode, StateDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := vfs.CloseFS(n.fs); err != nil {
			t.Error(err)
		}
	})
	n.server = &server{t: t, addr: "127.0.0.1:0"}
	n.export(n.exports())
	n.begin()
	t.Cleanup(n.end)
	return n
}

func (n *neighbour) exports() export.Export {
	return export.Export{Path: "/", FS: n.fs, Clients: []export.Rule{n.rule}}
}

// begin begins the server, with a UUID of its own.
func (n *neighbour) begin() {
	n.t.Helper()
	n.opt.LocalIO = &nfsserver.LocalIO{Dir: n.run}
	_, _ = rand.Read(n.opt.LocalIO.UUID[:]) // never fails
	n.server.begin()
}

// restart ends the server and begins the next one.
func (n *neighbour) restart() {
	n.t.Helper()
	n.end()
	n.begin()
}

// dial is a client that looks for its server in n.run, whichever that is.
func (n *neighbour) dial(opts ...nfsbox.Option) *nfsbox.Client {
	n.t.Helper()
	return dial(n.t, "nfs://"+n.addr+"/", append([]nfsbox.Option{
		nfsbox.WithCaller(here()), nfsbox.WithLocalIO(nfsbox.LocalIOAuto), nfsbox.WithEagerLocalIO(), nfsbox.WithLocalIODir(n.run)}, opts...)...)
}

// local is a client that has met its server.
func (n *neighbour) local(t *testing.T, opts ...nfsbox.Option) *nfsbox.Client {
	t.Helper()
	c := n.dial(opts...)
	wantLocal(t, c)
	return c
}

func wantLocal(t *testing.T, c *nfsbox.Client) {
	t.Helper()
	eventually(t, func() bool { return c.Stats().LocalIO.State == "local" },
		func() string { return fmt.Sprintf("not local: %+v", c.Stats().LocalIO) })
}

// again does something until it was done past the network, if the client can do that. A busy machine may take longer
// to open a file than the first read or write waits for it, and many times in a row. What comes of it is the caller's to judge.
func again(c *nfsbox.Client, do func(), done func(nfsbox.LocalIOStats) bool) {
	for late := time.Now().Add(30 * time.Second); ; {
		do()
		if s := c.Stats().LocalIO; s.State != "local" || done(s) || time.Now().After(late) {
			return
		}
	}
}

// getLocally is get, again if that was not past the network.
func getLocally(t *testing.T, c *nfsbox.Client, name string) (data []byte) {
	t.Helper()
	again(c, func() { data = get(t, c.FS(), name) }, func(s nfsbox.LocalIOStats) bool { return s.BytesRead >= uint64(len(data)) })
	return data
}

// wantRemote waits until a client knows why it is remote.
func wantRemote(t *testing.T, c *nfsbox.Client, why string) {
	t.Helper()
	eventually(t, func() bool { return c.Stats().LocalIO.Why != "" }, func() string { return "no word of local I/O" })
	if s := c.Stats().LocalIO; s.State == "local" || !strings.Contains(s.Why, why) {
		t.Errorf("%+v; want it remote, because of %q", s, why)
	}
}

// onDisk writes a file into the directory, past all.
func (n *neighbour) onDisk(name string, data []byte) {
	n.t.Helper()
	if err := os.WriteFile(filepath.Join(n.tree, name), data, 0o644); err != nil {
		n.t.Fatal(err)
	}
}

// TestLocalIO meets a server, or does not, and says why. What is read is right
// either way.
func TestLocalIO(t *testing.T) {
	n := newNeighbour(t, localfs.HandlesMap, export.Rule{})
	data := pattern(1, 1, 0, 100000)
	n.onDisk("file", data)
	elsewhere := t.TempDir()
	without := start(t, export.Export{Path: "/", FS: n.fs})
	for name, tc := range map[string]struct {
		addr, state, why string
		opts             []nfsbox.Option
	}{
		"met":              {n.addr, "local", "", nil},
		"trusted":          {n.addr, "local", "", []nfsbox.Option{nfsbox.WithLocalIO(nfsbox.LocalIOTrusted)}},
		"its own dialer":   {n.addr, "local", "", []nfsbox.Option{nfsbox.WithDialer(new(net.Dialer).DialContext)}},
		"switched off":     {n.addr, "off", "switched off", []nfsbox.Option{nfsbox.WithLocalIO(nfsbox.LocalIOOff)}},
		"elsewhere":        {n.addr, "remote", "no socket in " + elsewhere, []nfsbox.Option{nfsbox.WithLocalIODir(elsewhere)}},
		"without the door": {n.addr, "remote", "no socket in /nonexistent", []nfsbox.Option{nfsbox.WithLocalIODir("/nonexistent")}},
		"another server":   {without.addr, "remote", "PROG_UNAVAIL", nil},
	} {
		t.Run(name, func(t *testing.T) {
			opts := []nfsbox.Option{nfsbox.WithCaller(here()), nfsbox.WithLocalIO(nfsbox.LocalIOAuto), nfsbox.WithEagerLocalIO(), nfsbox.WithLocalIODir(n.run)}
			c := dial(t, "nfs://"+tc.addr+"/", append(opts, tc.opts...)...)
			if tc.state == "local" {
				wantLocal(t, c)
			} else {
				wantRemote(t, c, tc.why)
			}
			if got := getLocally(t, c, "file"); !bytes.Equal(got, data) {
				t.Error("it reads something else")
			}
			again(c, func() { put(t, c.FS(), "new", data[:5000]) }, func(s nfsbox.LocalIOStats) bool { return s.Writes > 0 })
			if got, err := os.ReadFile(filepath.Join(n.tree, "new")); err != nil || !bytes.Equal(got, data[:5000]) {
				t.Errorf("it wrote %d bytes, %v", len(got), err)
			}
			s := c.Stats().LocalIO
			if is := s.Reads > 0 && s.Writes > 0 && s.BytesRead >= 100000 && s.BytesWritten == 5000; s.State != tc.state || is != (tc.state == "local") {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestLocalIORequire is an error of Dial where it cannot be had, with what to do.
func TestLocalIORequire(t *testing.T) {
	n := newNeighbour(t, localfs.HandlesMap, export.Rule{})
	without := start(t, export.Export{Path: "/", FS: memfs.New(memfs.Options{})})
	for _, tc := range []struct{ addr, dir, want string }{
		{n.addr, t.TempDir(), "nfsbox serve --localio-dir=DIR"},
		{without.addr, n.run, "switched off (nfsbox serve --localio)"},
	} {
		c, err := nfsbox.Dial(t.Context(), "nfs://"+tc.addr+"/?localio=require&localio-dir="+tc.dir)
		if err == nil {
			err = c.Close()
			t.Error("dialled")
		}
		if err == nil || !strings.Contains(err.Error(), "local I/O is required") || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v; want %s", err, tc.want)
		}
	}
	c := n.dial(nfsbox.WithLocalIO(nfsbox.LocalIORequire))
	if s := c.Stats().LocalIO; s.State != "local" {
		t.Errorf("%+v", s)
	}
}

// TestLocalIOReadOnlyClient changes nothing where the client has said so.
func TestLocalIOReadOnlyClient(t *testing.T) {
	n := newNeighbour(t, localfs.HandlesMap, export.Rule{})
	n.onDisk("file", []byte("kept"))
	c := n.local(t, nfsbox.WithReadOnly())
	root := rootOf(t, c.FS())
	if _, _, err := c.FS().Open(t.Context(), vfs.At{Dir: root, Name: "file"}, &vfs.OpenHow{Access: vfs.ShareWrite}); !errors.Is(err, vfs.ErrROFS) {
		t.Errorf("open to be written: %v", err)
	}
	if got := get(t, c.FS(), "file"); string(got) != "kept" {
		t.Errorf("%q", got)
	}
}

// TestSuiteLocalIO runs the suite past the network, in both kinds of handles.
func TestSuiteLocalIO(t *testing.T) {
	need.Time(t, "the suite by descriptors of the host")
	for _, mode := range []localfs.Mode{localfs.HandlesKernel, localfs.HandlesMap} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel() // it waits for the disk
			if mode == localfs.HandlesKernel && os.Geteuid() != 0 {
				need.Missing(t, "root", "the kernel's handles are root's")
			}
			neighbours := make(map[vfs.FS]*neighbour)
			var mu sync.Mutex
			var reads, writes, commits uint64
			vfstest.Run(t, vfstest.Config{
				Callers: os.Geteuid() == 0,
				New: func(t *testing.T) vfs.FS {
					n := newNeighbour(t, mode, export.Rule{})
					c := n.local(t)
					neighbours[c.FS()] = n
					t.Cleanup(func() {
						mu.Lock()
						defer mu.Unlock()
						s := c.Stats().LocalIO
						reads, writes, commits = reads+s.Reads, writes+s.Writes, commits+s.Commits
					})
					return c.FS()
				},
				Restart: func(_ *testing.T, fs vfs.FS) vfs.FS {
					neighbours[fs].restart()
					return fs // which finds the server again by itself
				},
			})
			if reads == 0 || writes == 0 || commits == 0 {
				t.Errorf("%d reads, %d writes, %d commits were local", reads, writes, commits)
			}
		})
	}
}

// relay forwards connections to a server: a port of this host that leads
// anywhere.
func relay(t *testing.T, to string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() {
		stop()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		work.Wait()
	})
	work.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			work.Go(func() { forward(ctx, in, to) })
		}
	})
	return l.Addr().String()
}

// forward copies both ways until one side has ended. It reports an error by hanging up.
func forward(ctx context.Context, in net.Conn, to string) {
	defer func() { _ = in.Close() }()
	var d net.Dialer
	out, err := d.DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = in.Close() })()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
	_ = in.Close()
	<-done
}

// TestLocalIOForwarded goes through a port of this host that leads to another
// server, which has its socket where this host does not see it: that is another
// host. If it leads to one of this host, and both see the directory, it is local.
func TestLocalIOForwarded(t *testing.T) {
	near, far := newNeighbour(t, localfs.HandlesMap, export.Rule{}), newNeighbour(t, localfs.HandlesMap, export.Rule{})
	near.onDisk("file", []byte("near"))
	far.onDisk("file", []byte("far"))
	addr := relay(t, far.addr)
	for dir, want := range map[string]string{near.run: "remote", far.run: "local"} {
		c := dial(t, "nfs://"+addr+"/", nfsbox.WithCaller(here()), nfsbox.WithLocalIO(nfsbox.LocalIOAuto), nfsbox.WithLocalIODir(dir))
		if want == "local" {
			wantLocal(t, c)
		} else {
			wantRemote(t, c, "no socket")
		}
		if got := get(t, c.FS(), "file"); string(got) != "far" {
			t.Errorf("%s: %q", want, got)
		}
	}
}

// impostor owns a socket that has the name of another server's, and plays its part
// as far as a process can that has not heard the nonce.
func impostor(t *testing.T, dir string, uuid [16]byte) (met func() int) {
	t.Helper()
	l, err := session.Listen(dir, uuid)
	if err != nil {
		t.Fatal(err)
	}
	page, err := session.NewPage(1)
	if err != nil {
		t.Fatal(err)
	}
	page.Store(0, localio.PAGE_LIVE)
	page.Store(1, 1)
	var mu sync.Mutex
	var work sync.WaitGroup
	count := 0
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			work.Go(func() {
				defer func() { _ = c.Close() }()
				var m localio.SessionMessage
				if _, err := c.Receive(&m); err != nil || m.Type != localio.SESSION_HELLO {
					return
				}
				mu.Lock()
				count++
				mu.Unlock()
				welcome := localio.SessionMessage{Type: localio.SESSION_WELCOME, Welcome: localio.SessionWelcome{
					Speaks: localio.SESSION_VERSION, Uuid: uuid, Slots: 1}}
				bound := localio.SessionMessage{Type: localio.SESSION_BOUND}
				copy(bound.Bound.Nonce[:], m.Hello.Commitment[:])
				if c.Send(&welcome, page.FD()) == nil && c.Send(&bound) == nil {
					_, _ = c.Receive(&m) // until it is believed, or is not
				}
			})
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		work.Wait()
		page.Close()
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

// TestLocalIOImpostor is not taken in by an owner of the socket that is not the server.
func TestLocalIOImpostor(t *testing.T) {
	n := newNeighbour(t, localfs.HandlesMap, export.Rule{})
	n.onDisk("file", []byte("the server's"))
	dir := filepath.Join(t.TempDir(), "run")
	met := impostor(t, dir, n.opt.LocalIO.UUID)
	c := n.dial(nfsbox.WithLocalIODir(dir))
	wantRemote(t, c, "is not the server")
	if got := get(t, c.FS(), "file"); string(got) != "the server's" {
		t.Errorf("%q", got)
	}
	if s := n.srv.Stats().LocalIO; met() == 0 || s.Sessions != 0 {
		t.Errorf("%d have met the impostor; %+v", met(), s)
	}
}

// TestLocalIOForeignProbe is a client of another kind, with a nonce that this server does not
// know: it is told nothing, and nothing is kept.
func TestLocalIOForeignProbe(t *testing.T) {
	n := newNeighbour(t, localfs.HandlesMap, export.Rule{})
	n.onDisk("file", []byte("content"))
	c, stranger := n.local(t), n.dial(nfsbox.WithLocalIO(nfsbox.LocalIOOff))
	raw := stranger.Raw()
	for i, args := range []xdr.Appender{
		&localio.UUID_IS_LOCALargs{Uuid: [16]byte{1, 2, 3}}, &localio.UUID_IS_LOCALargs{Uuid: n.opt.LocalIO.UUID}, &localio.SessionFile{},
	} {
		reply, err := raw.RPC.Call(t.Context(), localio.LOCALIOPROC_UUID_IS_LOCAL, raw.Auth, args, xdr.Void{})
		reply.Release()
		garbage, ok := errors.AsType[*oncrpc.AcceptError](err)
		if i < 2 && err != nil || i == 2 && (!ok || garbage.Stat != oncrpc.GarbageArgs) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if got := getLocally(t, c, "file"); string(got) != "content" {
		t.Errorf("%q", got)
	}
	if s := n.srv.Stats().LocalIO; s.Unknown != 2 || s.Sessions != 1 {
		t.Errorf("%+v", s)
	}
	if s := c.Stats().LocalIO; s.State != "local" || s.Reads == 0 || s.Handshakes != 1 {
		t.Errorf("%+v", s)
	}
}

// TestLocalIORestart restarts the server while a file is read, and others are written: no
// caller gets an error, and the client is local again by itself.
func TestLocalIORestart(t *testing.T) {
	const restarts, size = 4, 1 << 20
	n := newNeighbour(t, localfs.HandlesMap, export.Rule{})
	data := pattern(7, 1, 0, size)
	n.onDisk("file", data)
	c := n.local(t)
	root := rootOf(t, c.FS())
	file, _, err := c.FS().Open(t.Context(), vfs.At{Dir: root, Name: "file"}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	var work sync.WaitGroup
	streams := func(do func(i int)) {
		work.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-end:
					return
				default:
					do(i)
				}
			}
		})
	}
	streams(func(i int) {
		p, off := make([]byte, 64<<10), i*4096%(size-64<<10)
		if k, _, err := vfs.ReadFull(t.Context(), file, p, uint64(off)); err != nil || k != len(p) || !bytes.Equal(p, data[off:off+len(p)]) {
			t.Errorf("read %d: %d bytes, %v", i, k, err)
		}
	})
	streams(func(i int) {
		name, p := fmt.Sprint("new", i%8), pattern(uint64(i), 2, 0, 200000)
		if err := rewrite(t.Context(), c.FS(), root, name, p); err != nil {
			t.Errorf("write %d: %v", i, err)
		} else if got, err := os.ReadFile(filepath.Join(n.tree, name)); err != nil || !bytes.Equal(got, p) {
			t.Errorf("write %d: %d bytes on the disk, %v", i, len(got), err)
		}
	})
	for i := range restarts {
		before := c.Stats().LocalIO
		eventually(t, func() bool { s := c.Stats().LocalIO; return s.Reads > before.Reads && s.Writes > before.Writes },
			func() string { return fmt.Sprintf("%d: nothing is local: %+v", i, c.Stats().LocalIO) })
		n.restart()
		eventually(t, func() bool { return c.Stats().LocalIO.Handshakes > before.Handshakes },
			func() string { return fmt.Sprintf("%d: not local again: %+v", i, c.Stats().LocalIO) })
	}
	close(end)
	work.Wait()
	if err := file.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// rewrite makes a file anew, whole and stable.
func rewrite(ctx context.Context, fs vfs.FS, dir vfs.Handle, name string, data []byte) error {
	f, _, err := fs.Open(ctx, vfs.At{Dir: dir, Name: name}, &vfs.OpenHow{
		Access: vfs.ShareWrite, Trunc: true, Create: &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked}})
	if err != nil {
		return err
	}
	_, err = vfs.WriteFull(ctx, f, data, 0, vfs.Unstable, new(vfs.Written))
	if err == nil {
		err = f.Commit(ctx, 0, 0, new(vfs.Written))
	}
	return errors.Join(err, f.Close(ctx))
}

// TestLocalIODirectoryGone takes the directory of the socket away and puts it back:
// a client that has met the server goes on, and one that comes meanwhile is local later.
func TestLocalIODirectoryGone(t *testing.T) {
	n := newNeighbour(t, localfs.HandlesMap, export.Rule{})
	n.onDisk("file", []byte("content"))
	old := n.local(t)
	if err := os.Rename(n.run, n.run+".away"); err != nil {
		t.Fatal(err)
	}
	late := n.dial()
	wantRemote(t, late, "no socket")
	for i, c := range []*nfsbox.Client{old, late} {
		if got := getLocally(t, c, "file"); string(got) != "content" {
			t.Errorf("%d: %q", i, got)
		}
	}
	if s := old.Stats().LocalIO; s.State != "local" || s.Reads == 0 {
		t.Errorf("%+v", s)
	}
	if err := os.Rename(n.run+".away", n.run); err != nil {
		t.Fatal(err)
	}
	wantLocal(t, late)
	if got := getLocally(t, late, "file"); string(got) != "content" || late.Stats().LocalIO.Reads == 0 {
		t.Errorf("%q, %+v", got, late.Stats().LocalIO)
	}
}

// TestDiagnoseLocalIO says in a step whether it is local, and reads by it.
func TestDiagnoseLocalIO(t *testing.T) {
	n := newNeighbour(t, localfs.HandlesMap, export.Rule{})
	n.onDisk("file", []byte("content"))
	keeps := newNeighbour(t, localfs.HandlesMap, export.Rule{NoHostFiles: true})
	keeps.onDisk("file", []byte("content"))
	for name, tc := range map[string]struct {
		of             *neighbour
		dir            string
		detail, advice string
		skipped        bool
		opts           []nfsbox.Option
	}{
		"local":             {n, n.run, "local, through " + n.run, "", false, nil},
		"elsewhere":         {n, t.TempDir(), "over the network: ", "have both use one directory", false, nil},
		"kept by an export": {keeps, keeps.run, "files are read over the network: the export keeps", "localio = false", false, nil},
		"off":               {n, n.run, "switched off", "", true, []nfsbox.Option{nfsbox.WithLocalIO(nfsbox.LocalIOOff)}},
	} {
		t.Run(name, func(t *testing.T) {
			var steps []nfsbox.Step
			err := nfsbox.Diagnose(t.Context(), "nfs://"+tc.of.addr+"/file", nfsbox.DiagnoseOptions{Read: true}, func(s nfsbox.Step) {
				if s.Name == "local I/O" {
					steps = append(steps, s)
				}
			}, append([]nfsbox.Option{nfsbox.WithCaller(here()), nfsbox.WithLocalIODir(tc.dir)}, tc.opts...)...)
			if err != nil || len(steps) != 1 {
				t.Fatalf("%+v, %v", steps, err)
			}
			s := steps[0]
			if s.Skipped != tc.skipped || !strings.Contains(s.Detail, tc.detail) || !strings.Contains(s.Advice, tc.advice) || (s.Advice == "") != (tc.advice == "") {
				t.Errorf("%+v", s)
			}
		})
	}
}
