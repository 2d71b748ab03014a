//go:build linux

package localio

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
)

// ledger knows which writes over the network a server has lost that restarts
// without having been told to commit them. A write is known by the number that it
// begins with.
type ledger struct {
	mu       sync.Mutex
	unstable map[uint64]bool
	lost     map[uint64]bool
	verf     uint64
}

// crash loses what is unstable.
func (l *ledger) crash() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.verf++
	for id := range l.unstable {
		l.lost[id] = true
	}
	clear(l.unstable)
}

// ledgered is a networkFile whose server keeps a ledger, one for its only file.
type ledgered struct {
	vfs.FS
	l *ledger
}

type ledgeredFile struct {
	vfs.File
	l *ledger
}

func (f *ledgered) Unwrap() any              { return f.FS }
func (f *ledgered) As(c *vfs.Caller) vfs.FS  { return &ledgered{f.FS.As(c), f.l} }
func (f *ledgered) Close() error             { return nil }
func (l *ledger) verifier() (v vfs.Verifier) { binary.BigEndian.PutUint64(v[:], l.verf); return v }
func (l *ledger) wasLost(id uint64) bool     { l.mu.Lock(); defer l.mu.Unlock(); return l.lost[id] }
func (f *ledgered) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, o, err := f.FS.Open(ctx, at, how)
	if err != nil {
		return nil, o, err
	}
	return &ledgeredFile{file, f.l}, o, nil
}

func (f *ledgeredFile) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	n, err := f.File.WriteAt(ctx, p, off, how, w)
	if err == nil && n == len(p) && how == vfs.Unstable {
		f.l.unstable[binary.BigEndian.Uint64(p)] = true
	}
	w.Verf = f.l.verifier()
	return n, err
}

func (f *ledgeredFile) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	err := f.File.Commit(ctx, off, n, w)
	if err == nil {
		clear(f.l.unstable)
	}
	w.Verf = f.l.verifier()
	return err
}

const (
	chaosBlock   = 512
	chaosBlocks  = 16 // of each worker
	chaosWorkers = 6
	chaosSteps   = 1500
)

// chaos is a run: workers who write, read and commit blocks of one file, each his
// own, while descriptors are taken back, sessions end, files are refused and the
// server forgets.
type chaos struct {
	t *testing.T
	r *rig
	f *FS
	l *ledger
}

// TestChaos checks every byte that is read, and that nothing that was lost ever
// looks committed.
func TestChaos(t *testing.T) {
	seeds := uint64(3)
	if soak() {
		seeds = 20
	}
	for seed := range seeds {
		dir, steps := inMemory(t), chaosSteps
		if seed == 0 {
			dir, steps = t.TempDir(), chaosSteps/30 // which waits for the disk
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runChaos(t, seed, dir, steps) })
	}
}

func runChaos(t *testing.T, seed uint64, dir string, steps int) {
	r := newRig(t, dir)
	c := &chaos{t: t, r: r, l: &ledger{unstable: make(map[uint64]bool), lost: make(map[uint64]bool)}}
	c.f = New(&ledgered{r.below, c.l}, r, Options{Mode: Auto, Dirs: []string{r.dir}, MaxFiles: 6, Eager: true})
	if err := c.f.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	workers := make([]*chaosWorker, chaosWorkers)
	for i := range workers {
		workers[i] = &chaosWorker{chaos: c, i: i, rand: rand.New(rand.NewPCG(seed, uint64(i))), pending: make(map[int]chaosWrite)}
		wg.Go(func() { workers[i].run(steps) })
	}
	wg.Wait()
	defer func() {
		if err := c.f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if st := c.f.Stats(); st.Files != 0 {
			t.Errorf("%d descriptors are left", st.Files)
		}
	}()
	if t.Failed() {
		return
	}
	got, err := os.ReadFile(dir + "/file")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range workers {
		for b, id := range w.ids {
			at := w.offset(b)
			if id != 0 && string(got[at:at+chaosBlock]) != string(chaosData(id)) {
				t.Errorf("block %d of worker %d is not what it wrote", b, w.i)
			}
		}
	}
	st := c.f.Stats()
	t.Logf("%+v", st)
	if steps == chaosSteps && (st.Reads == 0 || st.Writes == 0 || st.Commits == 0 || st.Fallbacks == 0 || st.Revoked == 0) {
		t.Errorf("something never happened: %+v", st)
	}
}

// chaosWrite is a write that is not committed.
type chaosWrite struct {
	id   uint64
	verf vfs.Verifier
}

type chaosWorker struct {
	*chaos
	i       int
	rand    *rand.Rand
	file    vfs.File
	last    uint64
	ids     [chaosBlocks]uint64 // what was written last
	pending map[int]chaosWrite
}

func (w *chaosWorker) offset(block int) int {
	return (block*chaosWorkers + w.i) * chaosBlock
}

// chaosData is the content of the write of that number.
func chaosData(id uint64) []byte {
	p := make([]byte, chaosBlock)
	for i := 0; i < len(p); i += 8 {
		binary.BigEndian.PutUint64(p[i:], id+uint64(i)<<40)
	}
	return p
}

func (w *chaosWorker) run(steps int) {
	w.reopen()
	for range steps {
		if w.t.Failed() {
			break
		}
		switch n := w.rand.IntN(100); {
		case n < 45:
			w.write(w.rand.IntN(chaosBlocks))
		case n < 85:
			w.read(w.rand.IntN(chaosBlocks))
		case n < 95:
			w.commit()
		case n < 97:
			w.reopen()
		default:
			w.trouble()
		}
	}
	for range 20 {
		if w.commit(); len(w.pending) == 0 {
			break
		}
	}
	if len(w.pending) > 0 {
		w.t.Errorf("worker %d: %d writes never look committed", w.i, len(w.pending))
	}
	if err := w.file.Close(w.t.Context()); err != nil {
		w.t.Error(err)
	}
}

func (w *chaosWorker) reopen() {
	if w.file != nil {
		if err := w.file.Close(w.t.Context()); err != nil {
			w.t.Error(err)
		}
	}
	root, _, err := w.f.Root(w.t.Context())
	if err == nil {
		how := &vfs.OpenHow{Access: readWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}}}
		w.file, _, err = w.f.Open(w.t.Context(), vfs.At{Dir: root, Name: "file"}, how)
	}
	if err != nil {
		w.t.Fatalf("open: %v", err)
	}
}

func (w *chaosWorker) write(b int) {
	w.last++
	id := w.last<<8 | uint64(w.i)
	how := vfs.Unstable
	if w.rand.IntN(10) == 0 {
		how = vfs.DataSync
	}
	var did vfs.Written
	n, err := vfs.WriteFull(w.t.Context(), w.file, chaosData(id), uint64(w.offset(b)), how, &did)
	if err != nil || n != chaosBlock {
		w.t.Errorf("write: %d, %v", n, err)
		return
	}
	w.ids[b] = id
	delete(w.pending, b)
	if did.Committed == vfs.Unstable {
		w.pending[b] = chaosWrite{id, did.Verf}
	}
}

func (w *chaosWorker) read(b int) {
	if w.ids[b] == 0 {
		return
	}
	p := make([]byte, chaosBlock)
	n, _, err := vfs.ReadFull(w.t.Context(), w.file, p, uint64(w.offset(b)))
	if err != nil || string(p[:n]) != string(chaosData(w.ids[b])) {
		w.t.Errorf("worker %d, block %d: %d bytes that are not what was written, %v", w.i, b, n, err)
	}
}

// commit believes of its writes what the verifier says, and writes the others
// again.
func (w *chaosWorker) commit() {
	var c vfs.Written
	if err := w.file.Commit(w.t.Context(), 0, 0, &c); err != nil {
		w.t.Errorf("commit: %v", err)
		return
	}
	var again []int
	for b, p := range w.pending {
		if p.verf != c.Verf {
			again = append(again, b)
		} else if w.l.wasLost(p.id) {
			w.t.Errorf("worker %d: a write that was lost looks committed", w.i)
		}
	}
	clear(w.pending)
	for _, b := range again {
		w.write(b)
	}
}

// trouble makes some, and goes on when the server is back, while others go on all
// the time.
func (w *chaosWorker) trouble() {
	switch w.rand.IntN(8) {
	case 0, 1:
		w.r.revoke(all)
	case 2:
		if w.rand.IntN(4) > 0 {
			return
		}
		n := w.f.Stats().Handshakes
		if w.r.kill(); w.rand.IntN(4) > 0 {
			eventually(w.t, "a new session", func() bool { return w.f.Stats().Handshakes > n })
		}
	case 3, 4:
		w.l.crash()
	case 5:
		w.r.refuses([...]localio.SessionWhy{
			localio.SESSION_REFUSED, localio.SESSION_NOT_TO_PASS, localio.SESSION_NO_FILE, localio.SESSION_CROWDED,
		}[w.rand.IntN(4)], vfs.ErrAccess)
		w.r.revoke(all)
		for range 20 {
			w.write(w.rand.IntN(chaosBlocks))
			w.read(w.rand.IntN(chaosBlocks))
		}
		w.r.refuse.Store(nil)
		w.file.(*file).forget()
	case 6:
		w.file.(*file).forget()
	case 7:
		w.f.s.shrink()
	}
}
