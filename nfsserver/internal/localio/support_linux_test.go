package localio

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/session"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

var testUUID = [localio.UUID_SIZE]byte{0xaa, 15: 0xbb}

// patience is how long a test waits for what must come. It fails then.
const patience = 20 * time.Second

// hostFS is a file system in memory that pretends to be one of this host: each
// file has a twin in a directory, which is what OpenHost opens.
type hostFS struct {
	vfs.FS
	host *host
}

// host is what all views of a hostFS share.
type host struct {
	dir     string
	busy    atomic.Int32 // calls of opening now
	most    atomic.Int32 // and at most
	watches atomic.Int32 // that were not stopped

	mu    sync.Mutex
	asked []vfs.HostOpen                                // guarded by mu
	hook  func(ctx context.Context, h vfs.Handle) error // guarded by mu; called by OpenHost, if set
}

// opening has OpenHost call hook, which may be nil, from now on.
func (o *host) opening(hook func(context.Context, vfs.Handle) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hook = hook
}

func (f *hostFS) As(c *vfs.Caller) vfs.FS { return &hostFS{f.FS.As(c), f.host} }

func (f *hostFS) Watch(vfs.Handle, func(vfs.Change)) (func(), error) {
	f.host.watches.Add(1)
	return sync.OnceFunc(func() { f.host.watches.Add(-1) }), nil
}

func (f *hostFS) OpenHost(ctx context.Context, h vfs.Handle, how *vfs.HostOpen) (*os.File, vfs.Attr, error) {
	f.host.mu.Lock()
	f.host.asked = append(f.host.asked, *how)
	hook := f.host.hook
	f.host.mu.Unlock()
	want, flags := vfs.AccessRead, os.O_RDONLY
	if how.Access&vfs.ShareWrite != 0 {
		want, flags = vfs.AccessModify, os.O_RDWR
	}
	may, a, err := f.Access(ctx, h, want)
	switch {
	case err != nil:
		return nil, a, err
	case a.Type != vfs.TypeReg:
		return nil, a, vfs.ErrInval
	case may != want:
		return nil, a, vfs.ErrAccess
	}
	if hook != nil {
		n := f.host.busy.Add(1)
		for old := f.host.most.Load(); n > old && !f.host.most.CompareAndSwap(old, n); old = f.host.most.Load() {
		}
		err := hook(ctx, h)
		f.host.busy.Add(-1)
		if err != nil {
			return nil, a, err
		}
	}
	file, err := os.OpenFile(filepath.Join(f.host.dir, fmt.Sprint(a.FileID)), flags|os.O_CREATE, 0o600)
	return file, a, err
}

// rig is a service on a socket, an RPC server in front of it, and a raw client of
// that.
type rig struct {
	t     *testing.T
	s     *Service
	dir   string // of the socket
	host  *host
	table *export.Table
	own   vfs.FS // the program's own view of the exports
	root  vfs.Handle
	rpc   *oncrpc.Client
}

func newRig(t *testing.T, o Options, rules ...export.Rule) *rig {
	t.Helper()
	noneLeft(t)
	r := &rig{t: t, dir: sharedDir(t), host: &host{dir: t.TempDir()}}
	fs := &hostFS{memfs.New(memfs.Options{Mode: 0o777}), r.host}
	var err error
	if r.table, err = export.NewTable(export.Key{1}, export.Export{Path: "/", FS: fs, Clients: rules}); err != nil {
		t.Fatal(err)
	}
	r.own = r.table.As(nil)
	if r.root, _, err = r.own.Root(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.Dir, o.UUID = r.dir, testUUID
	if r.s, err = New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.s.Close(); err != nil {
			t.Error(err)
		}
		if st := r.s.Stats(); st.Sessions != 0 || st.Strangers != 0 || st.Files != 0 || r.host.watches.Load() != 0 {
			t.Errorf("%d files are watched, and left are %+v", r.host.watches.Load(), st)
		}
		if aloft, held := r.s.aloft.count(), r.s.held.count(); aloft != 0 || held != 0 {
			t.Errorf("%d descriptors and %d files are still counted", aloft, held)
		}
	})
	r.rpc = dial(t, r.serve())
	return r
}

// serve is the address of an RPC server in front of the service.
func (r *rig) serve() string {
	t := r.t
	srv, err := oncrpc.NewServer([]oncrpc.Service{r.s.RPC()}, oncrpc.ServerOptions{
		NewConn: func(remote, _ net.Addr) (any, error) { return peer.NewConn(r.table, remote), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(l) }) // it ends by Close
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	return l.Addr().String()
}

func dialer(addr string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	}
}

func dial(t *testing.T, addr string) *oncrpc.Client {
	c := oncrpc.NewClient(oncrpc.ClientOptions{Dial: dialer(addr)})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// rawArgs are arguments of any length.
type rawArgs []byte

func (a rawArgs) AppendXDR(b []byte) ([]byte, error) { return append(b, a...), nil }

// rawRes are results of any length.
type rawRes []byte

func (r *rawRes) DecodeXDR(d *xdr.Decoder) error {
	*r = append((*r)[:0], d.Fixed(d.Len())...)
	return d.Err()
}

// call1 is procedure 1 with these bytes for arguments.
func call1(t *testing.T, c *oncrpc.Client, args []byte) ([]byte, error) {
	t.Helper()
	var res rawRes
	reply, err := c.Call(t.Context(), localio.LOCALIOPROC_UUID_IS_LOCAL, oncrpc.Auth{}, rawArgs(args), &res)
	if err == nil {
		reply.Release()
	}
	return res, err
}

// offer is UUID_IS_LOCAL.
func (r *rig) offer(nonce [localio.UUID_SIZE]byte) {
	r.t.Helper()
	if res, err := call1(r.t, r.rpc, nonce[:]); err != nil || len(res) != 0 {
		r.t.Fatalf("UUID_IS_LOCAL answers %x, %v", res, err)
	}
}

// file makes a file that everybody may read.
func (r *rig) file(name string, mode uint32) vfs.Handle {
	r.t.Helper()
	h, _, _, err := r.own.Create(r.t.Context(), r.root, name, &vfs.CreateHow{
		Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

// near is a client of the test's.
type near struct {
	t     *testing.T
	c     *session.Conn
	page  *session.View
	nonce [localio.UUID_SIZE]byte
	next  uint32
	// early are the files that were revoked while an answer was waited for.
	early []localio.SessionFile
}

// stranger connects, and says nothing.
func stranger(t *testing.T, dir string) *near {
	t.Helper()
	c, err := session.Connect(t.Context(), dir, testUUID)
	if err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(patience, func() { _ = c.Close() })
	t.Cleanup(func() {
		watchdog.Stop()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return &near{t: t, c: c}
}

var nonces atomic.Uint32

// greeted has said HELLO, and has the page.
func greeted(t *testing.T, dir string, slots int) *near {
	t.Helper()
	n := stranger(t, dir)
	k := nonces.Add(1)
	n.nonce = [localio.UUID_SIZE]byte{byte(k), byte(k >> 8), 2: 'n', 5: byte(os.Getpid()), 6: byte(os.Getpid() >> 8)}
	n.hello(sha256.Sum256(n.nonce[:]))
	m, fds := n.receive()
	if m.Type != localio.SESSION_WELCOME || m.Welcome.Uuid != testUUID || m.Welcome.Slots != uint32(slots) || len(fds) != 1 {
		t.Fatalf("WELCOME is %+v with %d descriptors", m.Welcome, len(fds))
	}
	var err error
	if n.page, err = session.MapPage(fds[0], slots); err != nil {
		t.Fatal(err)
	}
	if err := unix.Close(fds[0]); err != nil {
		t.Error(err)
	}
	if n.page.Load(0) != localio.PAGE_LIVE {
		t.Error("the page is not live")
	}
	return n
}

// local is a client that is bound.
func (r *rig) local() *near {
	r.t.Helper()
	n := greeted(r.t, r.dir, r.s.o.MaxFiles)
	r.offer(n.nonce)
	n.isBound()
	return n
}

func (n *near) isBound() {
	n.t.Helper()
	if m, _ := n.receive(); m.Type != localio.SESSION_BOUND || m.Bound.Nonce != n.nonce {
		n.t.Fatalf("%v %x is no BOUND of %x", m.Type, m.Bound.Nonce, n.nonce)
	}
}

func (n *near) hello(commitment [32]byte) {
	n.t.Helper()
	n.send(&localio.SessionMessage{Type: localio.SESSION_HELLO, Hello: localio.SessionHello{Speaks: 1, Commitment: commitment}})
}

func (n *near) send(m *localio.SessionMessage) {
	n.t.Helper()
	if err := n.c.Send(m); err != nil {
		n.t.Fatal(err)
	}
}

func (n *near) receive() (*localio.SessionMessage, []int) {
	n.t.Helper()
	m := &localio.SessionMessage{}
	fds, err := n.c.Receive(m)
	if err != nil {
		n.t.Fatal(err)
	}
	return m, fds
}

// ended waits for the end of the session, whatever comes before.
func (n *near) ended() {
	n.t.Helper()
	for range 100_000 {
		fds, err := n.c.Receive(&localio.SessionMessage{})
		for _, fd := range fds {
			if err := unix.Close(fd); err != nil {
				n.t.Error(err)
			}
		}
		if errors.Is(err, net.ErrClosed) {
			n.t.Error("the server does not end the session")
		}
		if err != nil {
			return
		}
	}
	n.t.Error("the session has no end")
}

// opened is a file that a client was answered about.
type opened struct {
	localio.SessionOpenedFile
	fd int // -1: none
}

// want asks for a file as the test's own user, to be read.
func want(h vfs.Handle) localio.SessionOpenFile {
	return localio.SessionOpenFile{
		Handle: h.Bytes(), Access: localio.SESSION_READ, Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid()),
	}
}

// ask sends OPEN.
func (n *near) ask(files ...localio.SessionOpenFile) {
	n.t.Helper()
	for i := range files {
		files[i].Id = n.next
		n.next++
	}
	n.send(&localio.SessionMessage{Type: localio.SESSION_OPEN, Open: localio.SessionOpen{Files: files}})
}

// open sends OPEN, and returns the answers in the order of the files.
func (n *near) open(files ...localio.SessionOpenFile) []opened {
	n.t.Helper()
	first := n.next
	n.ask(files...)
	return n.answers(first, len(files))
}

// answers waits for those of files from id first.
func (n *near) answers(first uint32, count int) []opened {
	n.t.Helper()
	all := make([]opened, count)
	for got := 0; got < count; {
		m, fds := n.receive()
		if m.Type == localio.SESSION_REVOKED {
			n.early = append(n.early, m.Revoked.Files...)
			continue
		}
		if m.Type != localio.SESSION_OPENED {
			n.t.Fatalf("%v is no answer", m.Type)
		}
		for _, f := range m.Opened.Files {
			o := opened{f, -1}
			if f.Why == localio.SESSION_OK {
				o.fd, fds = fds[0], fds[1:]
				n.t.Cleanup(func() {
					if err := unix.Close(o.fd); err != nil {
						n.t.Error(err)
					}
				})
			}
			if i := f.Id - first; i >= uint32(count) || all[i].Generation != 0 {
				n.t.Fatalf("an answer to %d, which was not asked, or was answered", f.Id)
			} else {
				all[i] = o
			}
			got++
		}
	}
	return all
}

// revocation waits for REVOKED.
func (n *near) revocation() localio.SessionFile {
	n.t.Helper()
	if len(n.early) == 0 {
		m, _ := n.receive()
		if m.Type != localio.SESSION_REVOKED {
			n.t.Fatalf("%v is no REVOKED", m.Type)
		}
		n.early = m.Revoked.Files
	}
	f := n.early[0]
	n.early = n.early[1:]
	return f
}

func (n *near) close(files ...opened) {
	n.t.Helper()
	m := &localio.SessionMessage{Type: localio.SESSION_CLOSE}
	for _, f := range files {
		m.Close.Files = append(m.Close.Files, localio.SessionFile{Slot: f.Slot, Generation: f.Generation})
	}
	n.send(m)
}

// valid reports what a client asks itself before it uses a file.
func (n *near) valid(f opened) bool {
	return n.page.Load(0) == localio.PAGE_LIVE && n.page.Load(int(f.Slot)) == f.Generation
}

// eventually waits for what must happen soon.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); runtime.Gosched() {
		if is() {
			return
		}
	}
	stacks := make([]byte, 1<<20)
	t.Fatalf("it never happens that %s:\n%s", what, stacks[:runtime.Stack(stacks, true)])
}

// sharedDir is a runtime directory that other users reach.
func sharedDir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("", "localio")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(d); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(d, 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

// noneLeft looks for goroutines and descriptors left behind when everything else is
// cleaned up.
func noneLeft(t *testing.T) {
	t.Helper()
	before := fds(t)
	t.Cleanup(func() {
		eventually(t, "all goroutines end", func() bool {
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			for g := range strings.SplitSeq(string(stacks), "\n\n") {
				if strings.Contains(g, "internal/client/localio.(*") && !strings.Contains(g, "testing.tRunner") {
					return false
				}
			}
			return true
		})
		if after := fds(t); !slices.Equal(before, after) {
			t.Errorf("descriptors before: %v\nafter: %v", before, after)
		}
	})
}

// fds are the open descriptors of this process, but those of the runtime.
func fds(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.HasPrefix(to, "anon_inode:[event") {
			open = append(open, e.Name()+" "+to)
		}
	}
	return open
}

func closeFDs(t *testing.T, fds []int) {
	t.Helper()
	for _, fd := range fds {
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	}
}
