package exporttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/vfs"
)

// hostModes are those of files that are handed out to other processes.
var hostModes = []uint32{0, 0o600, 0o640, 0o644, 0o444, 0o666, 0o711, 0o4755, 0o2755, 0o6777}

// hostAccesses are what files are handed out for, each with the operation of a view
// that needs the same rights.
var hostAccesses = []struct {
	name      string
	access    vfs.Share
	operation string
}{
	{"read", vfs.ShareRead, "open and read"},
	{"write", vfs.ShareWrite, "open and write"},
	{"read and write", vfs.ShareRead | vfs.ShareWrite, "open, read and write"},
	{"truncate", vfs.ShareWrite, "truncate"},
}

// content is what a file holds before it is handed out.
const content = "content"

// Descriptors is the matrix for files that are handed out to other processes
// ([vfs.HostOpener]). A caller that may do something through the view may do it by the
// descriptor. A caller that may not gets the same error from both. A file may be
// refused where a descriptor would give too much. A descriptor for reading is good for
// nothing else, whatever process has it.
//
// The other process is this test, run once more for each of the callers, which needs
// root. So the test that calls Descriptors must begin with
//
//	if exporttest.IsPeer() {
//		exporttest.Peer(t)
//		return
//	}
//
// and Place.Below must be able to seal its files.
func Descriptors(t *testing.T, c Config) {
	nobody := vfs.Caller{UID: export.Nobody, GID: export.Nobody}
	var peers []*peer
	for _, who := range append(slices.Clone(callers), nobody) {
		peers = append(peers, startPeer(t, who))
	}
	for _, squash := range []export.Squash{export.SquashNone, export.SquashRoot, export.SquashAll} {
		for _, ro := range []bool{false, true} {
			t.Run(fmt.Sprintf("squash %v, read-only %t", squash, ro), func(t *testing.T) {
				place := c.New(t, export.Rule{Match: "*", Squash: squash, ReadOnly: ro})
				m := &hostMatrix{matrix: matrix{T: t, c: c, place: place, squash: squash, readOnly: ro}, peers: peers}
				m.run()
			})
		}
	}
}

// hostMatrix is the part of the test that one rule decides.
type hostMatrix struct {
	matrix
	peers  []*peer
	passed int // descriptors handed out
	tested int // of these, attacked
}

func (m *hostMatrix) run() {
	m.begin()
	// Every user may make links here.
	if err := os.Mkdir(filepath.Join(m.place.Dir, attic), 0o777); err != nil {
		m.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(m.place.Dir, attic), 0o777); err != nil {
		m.Fatal(err)
	}
	for _, owner := range owners {
		for _, mode := range hostModes {
			for i := range callers {
				for _, p := range m.peers {
					m.tryPeer(&callers[i], p, object{uid: owner[0], gid: owner[1], mode: mode})
				}
			}
		}
	}
	if m.passed == 0 || m.tested == 0 {
		m.Errorf("%d files were handed out, %d of them attacked: nothing was tested", m.passed, m.tested)
	}
}

// tryPeer opens files for a process that speaks for a caller: one for each access, each
// an object of its own.
func (m *hostMatrix) tryPeer(who *vfs.Caller, p *peer, o object) {
	view := m.place.As(who)
	for _, a := range hostAccesses {
		if !m.turn() {
			continue
		}
		what := fmt.Sprintf("a process of uid %d, groups %d %v, speaks for uid %d, groups %d %v: a file of %d:%d with mode %04o: %s",
			p.who.UID, p.who.GID, p.who.Groups, who.UID, who.GID, who.Groups, o.uid, o.gid, o.mode, a.name)
		op := operationOf(a.operation)
		byView := op.do(m.Context(), view, m.find(view, m.prepareFull(o)))
		name := m.prepareFull(o)
		f, err := m.open(view, name, a.access, p)
		m.judge(what, who, p, o, op, a.access, byView, err)
		if err != nil {
			continue
		}
		m.passed++
		m.use(what, f, a.access)
		if a.access == vfs.ShareRead {
			m.attack(what, name, f, p)
		}
		if err := f.Close(); err != nil {
			m.Error(err)
		}
	}
}

func operationOf(name string) *operation {
	return &operations[slices.IndexFunc(operations, func(op operation) bool { return op.name == name })]
}

func (m *hostMatrix) prepareFull(o object) string {
	name := m.prepare(o)
	path := filepath.Join(m.place.Dir, name)
	// Writing clears set-uid bits, so the mode is set after it.
	if err := errors.Join(os.WriteFile(path, []byte(content), 0), unix.Chmod(path, o.mode)); err != nil {
		m.Fatal(err)
	}
	return name
}

func (m *hostMatrix) open(view vfs.FS, name string, access vfs.Share, p *peer) (*os.File, error) {
	power, ok := vfs.As[vfs.HostOpener](view)
	if !ok {
		m.Fatal("the view is no HostOpener")
	}
	f, _, err := power.OpenHost(m.Context(), m.find(view, name).object, &vfs.HostOpen{Access: access, Peer: p.who})
	return f, err
}

// judge compares what OpenHost returned with what the view and the model say of the
// same operation.
func (m *hostMatrix) judge(what string, who *vfs.Caller, p *peer, o object, op *operation, access vfs.Share, byView, got error) {
	writes := access&vfs.ShareWrite != 0
	set := o.mode&0o6000 != 0
	is, peer := squashed(*who, m.squash), squashed(p.who, m.squash)
	believed := peer.Equal(&p.who) && (p.who.UID == 0 || p.who.UID == is.UID)
	want := m.verdict(is, op, o)
	if (byView == nil) != (want == nil) || !errors.Is(byView, want) {
		m.Errorf("%s: the view says %v, want %v", what, byView, want)
	}
	switch {
	case want == nil && writes && (set || !believed):
		want = vfs.ErrNotSupp
	case want != nil && writes && !believed && errors.Is(got, vfs.ErrNotSupp):
		return
	}
	if !errors.Is(got, want) || want == nil && got != nil {
		m.Errorf("%s: opened with %v, want %v", what, got, want)
	}
}

// use does by the descriptor what it is for, and checks that nothing else works.
func (m *hostMatrix) use(what string, f *os.File, access vfs.Share) {
	fd, buf := int(f.Fd()), make([]byte, len(content)+1)
	n, err := unix.Pread(fd, buf, 0)
	if access&vfs.ShareRead == 0 {
		if !errors.Is(err, unix.EBADF) {
			m.Errorf("%s: read %d bytes, %v", what, n, err)
		}
	} else if err != nil || string(buf[:n]) != content {
		m.Errorf("%s: read %q, %v", what, buf[:max(n, 0)], err)
	}
	_, write := unix.Pwrite(fd, []byte("x"), 0)
	truncate := unix.Ftruncate(fd, 1)
	if access&vfs.ShareWrite == 0 {
		if write == nil || truncate == nil {
			m.Errorf("%s: write %v, truncate %v", what, write, truncate)
		}
	} else if write != nil || truncate != nil {
		m.Errorf("%s: write %v, truncate %v", what, write, truncate)
	}
}

// attack gives the file to the process, which tries to do more than read it.
func (m *hostMatrix) attack(what, name string, f *os.File, p *peer) {
	m.tested++
	var before, after unix.Stat_t
	path := filepath.Join(m.place.Dir, name)
	if err := unix.Stat(path, &before); err != nil {
		m.Fatal(err)
	}
	for i, errno := range p.attack(m.T, f, filepath.Join(m.place.Dir, attic)) {
		a := &attacks[i]
		if errno == 0 || p.who.UID == 0 && !slices.Contains(a.root, errno) {
			m.Errorf("%s: %s: %d (%v)", what, a.name, errno, errno)
		}
	}
	if err := unix.Stat(path, &after); err != nil {
		m.Fatal(err)
	}
	if after.Atim = before.Atim; before != after {
		m.Errorf("%s: the file was %+v and is %+v", what, before, after)
	}
}
