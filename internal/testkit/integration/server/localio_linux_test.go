package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/base/session"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

// socketDir is a directory for the server's socket, which it makes itself.
func socketDir(t *testing.T) string { return filepath.Join(t.TempDir(), "run") }

var localUUID = [localio.UUID_SIZE]byte{7, 6, 5}

// nearby is a client of the server's that is local.
type nearby struct {
	t    *testing.T
	c    *session.Conn
	page *session.View
}

// nearby makes the handshake.
func (r *rig) nearby(dir string) *nearby {
	t := r.t.(*testing.T)
	t.Helper()
	var id localio.GETUUIDres
	r.call(localio.LOCALIOPROC_GETUUID, xdr.Void{}, &id)
	c, err := session.Connect(t.Context(), dir, id.Uuid)
	if err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(20*time.Second, func() { _ = c.Close() })
	t.Cleanup(func() {
		watchdog.Stop()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	n := &nearby{t: t, c: c}
	nonce := [localio.UUID_SIZE]byte{1, 2, 3}
	n.send(&localio.SessionMessage{Type: localio.SESSION_HELLO, Hello: localio.SessionHello{
		Speaks: localio.SESSION_VERSION, Commitment: sha256.Sum256(nonce[:]), UserNs: session.UserNS(),
	}})
	m, fds := n.receive(localio.SESSION_WELCOME)
	if n.page, err = session.MapPage(fds[0], int(m.Welcome.Slots)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Close(fds[0]); err != nil {
		t.Error(err)
	}
	r.call(localio.LOCALIOPROC_UUID_IS_LOCAL, &localio.UUID_IS_LOCALargs{Uuid: nonce}, xdr.Void{})
	if m, _ := n.receive(localio.SESSION_BOUND); m.Bound.Nonce != nonce {
		t.Fatalf("BOUND of %x", m.Bound.Nonce)
	}
	return n
}

func (n *nearby) send(m *localio.SessionMessage) {
	n.t.Helper()
	if err := n.c.Send(m); err != nil {
		n.t.Fatal(err)
	}
}

func (n *nearby) receive(want localio.SessionType) (*localio.SessionMessage, []int) {
	n.t.Helper()
	var m localio.SessionMessage
	fds, err := n.c.Receive(&m)
	if err != nil || m.Type != want {
		n.t.Fatalf("%v, %v, want %v", m.Type, err, want)
	}
	return &m, fds
}

// open opens a file as the test's own user.
func (n *nearby) open(handle []byte) (localio.SessionOpenedFile, *os.File) {
	n.t.Helper()
	n.send(&localio.SessionMessage{Type: localio.SESSION_OPEN, Open: localio.SessionOpen{Files: []localio.SessionOpenFile{{
		Handle: handle, Access: localio.SESSION_READ, Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid()),
	}}}})
	m, fds := n.receive(localio.SESSION_OPENED)
	got := m.Opened.Files[0]
	if got.Why != localio.SESSION_OK {
		n.t.Fatalf("%+v", got)
	}
	f := os.NewFile(uintptr(fds[0]), "passed")
	n.t.Cleanup(func() {
		if err := f.Close(); err != nil {
			n.t.Error(err)
		}
	})
	return got, f
}

func (n *nearby) valid(f localio.SessionOpenedFile) bool {
	return n.page.Load(0) == localio.PAGE_LIVE && n.page.Load(int(f.Slot)) == f.Generation
}

// TestLocalIO reads a file of a disk past the server, until it is removed over the
// network.
func TestLocalIO(t *testing.T) {
	dir := socketDir(t)
	r := serve(t, localDir(t, t.TempDir(), localfs.HandlesAuto), nfsserver.Options{LocalIO: &nfsserver.LocalIO{Dir: dir, UUID: localUUID}})
	r.as(oncrpc.AuthSys{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())})
	h := r.file(r.root, "f", 0o644, "here")
	n := r.nearby(dir)
	f, file := n.open(h)
	b := make([]byte, 10)
	if k, err := file.ReadAt(b, 0); string(b[:k]) != "here" {
		t.Errorf("%q, %v", b[:k], err)
	}
	a := r.attr(h)
	if f.Fileid != a.Fileid || f.Fsid != [2]uint64{a.Fsid} {
		t.Errorf("%+v is not %+v", f, a)
	}
	st := r.srv.Stats().LocalIO
	if st == nil || st.Sessions != 1 || st.Files != 1 || st.Bound != 1 || st.UUID != session.FormatUUID(localUUID) ||
		st.Socket != filepath.Join(dir, st.UUID+".sock") {
		t.Errorf("%+v", st)
	}
	if !n.valid(f) {
		t.Error("it is not valid")
	}
	r.status(r.remove(r.root, "f").Status, nfs3.NFS3_OK)
	if n.valid(f) {
		t.Error("it is removed, and valid")
	}
	if m, _ := n.receive(localio.SESSION_REVOKED); m.Revoked.Files[0] != (localio.SessionFile{Slot: f.Slot, Generation: f.Generation}) {
		t.Errorf("%+v", m.Revoked)
	}
}

// TestLocalIOEnds takes back what it gave first.
func TestLocalIOEnds(t *testing.T) {
	for name, end := range map[string]func(*nfsserver.Server) error{
		"Close":    (*nfsserver.Server).Close,
		"Shutdown": func(s *nfsserver.Server) error { return s.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := socketDir(t)
			r := serve(t, localDir(t, t.TempDir(), localfs.HandlesAuto), nfsserver.Options{LocalIO: &nfsserver.LocalIO{Dir: dir, UUID: localUUID}})
			r.as(oncrpc.AuthSys{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())})
			n := r.nearby(dir)
			f, _ := n.open(r.file(r.root, "f", 0o644, "here"))
			if err := end(r.srv); err != nil {
				t.Fatal(err)
			}
			if n.valid(f) {
				t.Error("the server is gone, and a file valid")
			}
			var m localio.SessionMessage
			if _, err := n.c.Receive(&m); err == nil {
				t.Errorf("%v after the end", m.Type)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Errorf("left are %v, %v", left, err)
			}
			if _, err := session.Connect(t.Context(), dir, localUUID); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("then: %v", err)
			}
		})
	}
}

// TestLocalIOIsHidden from a client that asks the port mapper.
func TestLocalIOIsHidden(t *testing.T) {
	r := serve(t, memfs.New(memfs.Options{}), nfsserver.Options{LocalIO: &nfsserver.LocalIO{Dir: socketDir(t), UUID: localUUID}})
	var port rpcbind.PMAPPROC_GETPORTres
	r.call(rpcbind.PMAPPROC_GETPORT, &rpcbind.Mapping{Prog: localio.LOCALIO_PROGRAM, Vers: 1, Prot: rpcbind.IPPROTO_TCP}, &port)
	if port.Value != 0 {
		t.Errorf("GETPORT: %d", port.Value)
	}
	var list rpcbind.Pmaplist
	r.call(rpcbind.PMAPPROC_DUMP, xdr.Void{}, &list)
	for _, m := range list {
		if m.Map.Prog == localio.LOCALIO_PROGRAM {
			t.Errorf("DUMP: %+v", m.Map)
		}
	}
}

func TestLocalIOErrors(t *testing.T) {
	r := newRig(t, memfs.Options{}) // without it
	err := r.fail(localio.LOCALIOPROC_GETUUID, xdr.Void{})
	if e, ok := errors.AsType[*oncrpc.AcceptError](err); !ok || e.Stat != oncrpc.ProgUnavail {
		t.Errorf("without LOCALIO: %v", err)
	}
	if st := r.srv.Stats(); st.LocalIO != nil {
		t.Errorf("%+v", st.LocalIO)
	}
	table := exportsOf(t)
	for want, o := range map[string]nfsserver.LocalIO{
		"no UUID":         {Dir: socketDir(t)},
		"no such file":    {Dir: filepath.Join(socketDir(t), "below"), UUID: localUUID},
		"may have 1 to":   {Dir: socketDir(t), UUID: localUUID, MaxFiles: 1 << 20},
		"not a directory": {Dir: "/dev/null", UUID: localUUID},
	} {
		if _, err := nfsserver.New(nfsserver.Options{Exports: table, LocalIO: &o}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}
