//go:build linux

package localio

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/session"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
)

const rigSlots = 64

// rig is a server of a directory: what it says over the network (Prober, and
// below, which stands for NFS), and by its socket.
type rig struct {
	t     testing.TB
	tree  *localfs.FS
	below *network
	dir   string // of sockets

	patient bool // clients use small files once over the network

	refuse atomic.Pointer[refuser]                                                 // asked before each open
	hook   atomic.Pointer[func(*peer, uint32) (*localio.SessionMessage, *os.File)] // answers the next OPEN instead
	mute   atomic.Bool                                                             // ServerUUID fails
	asked  atomic.Int64                                                            // OPENs
	closes atomic.Int64                                                            // CLOSEs

	mu       sync.Mutex
	knobs    knobs
	uuid     [16]byte
	l        *session.Listener
	pending  map[[32]byte]*peer
	sessions map[*peer]struct{}
	wg       sync.WaitGroup
}

// knobs are what else a server can be like.
type knobs struct {
	slots   int
	noBind  bool // OfferNonce does not reach the socket, which is closed, unless it hangs
	hang    bool
	another bool          // the socket says that it is another server's
	delay   chan struct{} // if not nil, OPENs wait until it is closed
	takes   int           // so many descriptors are taken back before they are sent
}

func (r *rig) set(change func(*knobs)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.knobs)
}

func (r *rig) get() knobs {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.knobs
}

type refuser func(*localio.SessionOpenFile) (localio.SessionWhy, vfs.Status)

// refuses has every open refused from now on.
func (r *rig) refuses(why localio.SessionWhy, status vfs.Status) {
	refuse := refuser(func(*localio.SessionOpenFile) (localio.SessionWhy, vfs.Status) { return why, status })
	r.refuse.Store(&refuse)
}

// peer is one session of a rig.
type peer struct {
	r     *rig
	conn  *session.Conn
	page  *session.Page
	mu    sync.Mutex
	gen   uint32
	words []struct {
		used bool
		gen  uint32
		h    vfs.Handle
	}
}

// newRig makes a server over a directory of the test, which may be on a file
// system that reads without waiting, or not (tmpfs).
func newRig(t testing.TB, tree string) *rig {
	t.Helper()
	if err := pipe(t).Close(); err != nil { // has the runtime open what it keeps
		t.Fatal(err)
	}
	before := openFDs(t)
	goroutines := runtime.NumGoroutine()
	f, err := localfs.New(tree, localfs.Options{StateDir: t.TempDir(), LocalWriters: true})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, tree: f, dir: t.TempDir(), knobs: knobs{slots: rigSlots}, pending: make(map[[32]byte]*peer), sessions: make(map[*peer]struct{})}
	if err := os.Chmod(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.below = newNetwork(f, r)
	r.start()
	t.Cleanup(func() {
		r.stop()
		r.wg.Wait()
		if err := f.Close(); err != nil {
			t.Errorf("localfs: %v", err)
		}
		wantSame(t, "descriptors", before, func() int { return openFDs(t) })
		wantSame(t, "goroutines", goroutines, runtime.NumGoroutine)
	})
	return r
}

// wantSame waits until count is no more than before.
func wantSame(t testing.TB, what string, before int, count func() int) {
	t.Helper()
	for range 2000 {
		if count() <= before {
			return
		}
		runtime.GC() // ends mappings
		time.Sleep(time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%d %s before, %d after\n%s", before, what, count(), buf[:runtime.Stack(buf, true)])
}

func openFDs(t testing.TB) int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// start begins to listen, with a new UUID.
func (r *rig) start() {
	var uuid [16]byte
	_, _ = rand.Read(uuid[:])
	l, err := session.Listen(r.dir, uuid)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	r.uuid, r.l = uuid, l
	r.mu.Unlock()
	r.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					r.t.Errorf("accept: %v", err)
				}
				return
			}
			r.wg.Go(func() { r.serve(c) })
		}
	})
}

// stop ends the socket and all sessions.
func (r *rig) stop() {
	r.mu.Lock()
	l := r.l
	r.l = nil
	r.mu.Unlock()
	if l != nil {
		if err := l.Close(); err != nil {
			r.t.Errorf("listener: %v", err)
		}
	}
	r.kill()
}

// kill ends all sessions.
func (r *rig) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.sessions {
		p.page.Store(0, 0)
		_ = p.conn.Close()
	}
}

var errNoLocalIO = errors.New("PROG_UNAVAIL")

func (r *rig) ServerUUID(ctx context.Context) ([16]byte, error) {
	if r.mute.Load() {
		return [16]byte{}, errNoLocalIO
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.uuid, ctx.Err()
}

func (r *rig) OfferNonce(_ context.Context, nonce [16]byte) error {
	r.mu.Lock()
	key := sha256.Sum256(nonce[:])
	p := r.pending[key]
	delete(r.pending, key)
	r.mu.Unlock()
	k := r.get()
	if p != nil && k.noBind && !k.hang {
		_ = p.conn.Close()
	}
	if p != nil && !k.noBind {
		_ = p.conn.Send(&localio.SessionMessage{Type: localio.SESSION_BOUND, Bound: localio.SessionBound{Nonce: nonce}})
	}
	return nil
}

func (r *rig) serve(c *session.Conn) {
	slots := r.get().slots
	page, err := session.NewPage(slots)
	if err != nil {
		r.t.Error(err)
		return
	}
	p := &peer{r: r, conn: c, page: page}
	p.words = make([]struct {
		used bool
		gen  uint32
		h    vfs.Handle
	}, slots+1)
	page.Store(0, localio.PAGE_LIVE)
	r.mu.Lock()
	if r.l == nil {
		_ = c.Close()
	}
	r.sessions[p] = struct{}{}
	r.mu.Unlock()
	for p.step() == nil {
	}
	page.Store(0, 0)
	_ = c.Close()
	page.Close()
	r.mu.Lock()
	delete(r.sessions, p)
	r.mu.Unlock()
}

// step takes one message.
func (p *peer) step() error {
	var m localio.SessionMessage
	if _, err := p.conn.Receive(&m); err != nil {
		return err
	}
	switch m.Type {
	case localio.SESSION_HELLO:
		p.r.mu.Lock()
		p.r.pending[m.Hello.Commitment] = p
		uuid := p.r.uuid
		p.r.mu.Unlock()
		k := p.r.get()
		if k.another {
			uuid[0]++
		}
		return p.conn.Send(&localio.SessionMessage{Type: localio.SESSION_WELCOME, Welcome: localio.SessionWelcome{
			Speaks: localio.SESSION_VERSION, Uuid: uuid, Slots: uint32(k.slots),
		}}, p.page.FD())
	case localio.SESSION_OPEN:
		p.r.asked.Add(1)
		if d := p.r.get().delay; d != nil {
			<-d
		}
		if hook := p.r.hook.Swap(nil); hook != nil {
			return p.hooked((*hook)(p, m.Open.Files[0].Id))
		}
		return p.openAll(m.Open.Files)
	case localio.SESSION_CLOSE:
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, f := range m.Close.Files {
			p.r.closes.Add(1)
			if w := &p.words[f.Slot]; w.used && w.gen == f.Generation {
				w.used = false
				p.page.Store(int(f.Slot), 0)
			}
		}
	}
	return nil
}

// hooked sends m, and f beside it.
func (p *peer) hooked(m *localio.SessionMessage, f *os.File) error {
	if f == nil {
		return p.conn.Send(m)
	}
	err := p.conn.Send(m, int(f.Fd()))
	_ = f.Close()
	return err
}

func (p *peer) openAll(files []localio.SessionOpenFile) error {
	m := localio.SessionMessage{Type: localio.SESSION_OPENED}
	var fds []int
	var keep []*os.File
	for i := range files {
		o, f := p.open(&files[i])
		m.Opened.Files = append(m.Opened.Files, o)
		if f != nil {
			keep = append(keep, f)
			fds = append(fds, int(f.Fd()))
		}
	}
	err := p.conn.Send(&m, fds...)
	for _, f := range keep {
		_ = f.Close()
	}
	return err
}

func (p *peer) open(f *localio.SessionOpenFile) (o localio.SessionOpenedFile, file *os.File) {
	o.Id = f.Id
	if refuse := p.r.refuse.Load(); refuse != nil {
		var st vfs.Status
		if o.Why, st = (*refuse)(f); o.Why != localio.SESSION_OK {
			o.Status = uint32(st)
			return o, nil
		}
	}
	h, err := vfs.MakeHandle(f.Handle)
	if err != nil {
		p.r.t.Error(err)
	}
	p.mu.Lock()
	slot := 0
	for i := range p.words[1:] {
		if !p.words[i+1].used {
			slot = i + 1
			break
		}
	}
	if slot == 0 {
		p.mu.Unlock()
		o.Why = localio.SESSION_CROWDED
		return o, nil
	}
	p.gen++
	w := &p.words[slot]
	w.used, w.gen, w.h = true, p.gen, h
	p.page.Store(slot, w.gen)
	o.Slot, o.Generation = uint32(slot), w.gen
	p.mu.Unlock()
	p.r.set(func(k *knobs) {
		if k.takes > 0 {
			k.takes--
			p.page.Store(slot, 0)
		}
	})
	caller := &vfs.Caller{UID: f.Uid, GID: f.Gid, Groups: append([]uint32(nil), f.Groups...)}
	opener := p.r.tree.As(caller).(vfs.HostOpener)
	file, a, err := opener.OpenHost(context.Background(), h, &vfs.HostOpen{Access: vfs.Share(f.Access), Peer: vfs.Caller{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}})
	if err != nil {
		p.mu.Lock()
		w.used = false
		p.page.Store(slot, 0)
		p.mu.Unlock()
		s, _ := vfs.StatusOf(err)
		o.Why, o.Status = localio.SESSION_REFUSED, uint32(s)
		if s == vfs.ErrNotSupp {
			o.Why = localio.SESSION_NOT_TO_PASS
		}
		return o, nil
	}
	o.Fsid, o.Fileid = a.FSID, a.FileID
	return o, file
}

// revoke takes back what which is true for, in all sessions.
func (r *rig) revoke(which func(vfs.Handle) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.sessions {
		p.mu.Lock()
		m := localio.SessionMessage{Type: localio.SESSION_REVOKED}
		for i := range p.words {
			if w := &p.words[i]; w.used && which(w.h) {
				p.page.Store(i, 0)
				m.Revoked.Files = append(m.Revoked.Files, localio.SessionFile{Slot: uint32(i), Generation: w.gen})
			}
		}
		p.mu.Unlock()
		for len(m.Revoked.Files) > 0 {
			part := m
			n := min(len(m.Revoked.Files), localio.SESSION_MAX_OPENS)
			part.Revoked.Files, m.Revoked.Files = m.Revoked.Files[:n], m.Revoked.Files[n:]
			_ = p.conn.Send(&part)
		}
	}
}

func all(vfs.Handle) bool { return true }

// fs makes an FS over the rig, and closes it with the test. It waits for descriptors
// for longer than it would: a busy machine may take its time to open a file, and what
// then went over the network is what most tests count.
func (r *rig) fs(o Options) *FS {
	r.t.Helper()
	if o.Mode == Off {
		o.Mode = Auto
	}
	if o.Dirs == nil {
		o.Dirs = []string{r.dir}
	}
	o.Eager = !r.patient
	f := New(r.below, r, o)
	f.s.wait = requireWait
	r.t.Cleanup(func() {
		if f.s.over {
			return
		}
		if err := f.Close(); err != nil {
			r.t.Errorf("close: %v", err)
		}
		if n := f.Stats().Files; n != 0 {
			r.t.Errorf("%d descriptors are open behind Close", n)
		}
		f.s.mu.Lock()
		defer f.s.mu.Unlock()
		if f.s.held != 0 || f.s.closing != 0 || f.s.idles != 0 || f.s.oldest != nil || f.s.newest != nil {
			r.t.Errorf("%d descriptors held, %d idle behind Close", f.s.held, f.s.idles)
		}
	})
	return f
}

// ready makes an FS that is local.
func (r *rig) ready(o Options) *FS {
	r.t.Helper()
	f := r.fs(o)
	if err := f.Ready(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return f
}

// eventually waits until what is true.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for range 10_000 {
		if is() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%s does not come true", what)
}

// open opens name in the root, making it if need be.
func open(t testing.TB, f vfs.FS, name string, access vfs.Share) (vfs.File, vfs.Handle) {
	t.Helper()
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	how := &vfs.OpenHow{Access: access, Create: &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}}}
	file, opened, err := f.Open(t.Context(), vfs.At{Dir: root, Name: name}, how)
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	c := &closing{File: file, once: &once}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return file, opened.H
}

// closing closes a file that the test has not closed.
type closing struct {
	vfs.File
	once *sync.Once
}

func (c *closing) Close(ctx context.Context) (err error) {
	c.once.Do(func() { err = c.File.Close(ctx) })
	return err
}

func write(t testing.TB, f vfs.File, p string, off uint64, how vfs.Stability) vfs.Written {
	t.Helper()
	var w vfs.Written
	if n, err := vfs.WriteFull(t.Context(), f, []byte(p), off, how, &w); err != nil || n != len(p) {
		t.Fatalf("write: %d, %v", n, err)
	}
	return w
}

func commit(t testing.TB, f vfs.File) vfs.Written {
	t.Helper()
	var w vfs.Written
	if err := f.Commit(t.Context(), 0, 0, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

func wantBytes(t testing.TB, f vfs.File, off uint64, want string) {
	t.Helper()
	p := make([]byte, len(want)+1)
	n, eof, err := vfs.ReadFull(t.Context(), f, p, off)
	if err != nil || string(p[:n]) != want || !eof {
		t.Fatalf("read %q, eof %t, %v; want %q", p[:min(n, 100)], eof, err, want[:min(len(want), 100)])
	}
}

func wantWhy(t testing.TB, f *FS, want string) {
	t.Helper()
	if st := f.Stats(); !strings.Contains(st.Why, want) {
		t.Errorf("state %s, because %q; want %q", st.State, st.Why, want)
	}
}
