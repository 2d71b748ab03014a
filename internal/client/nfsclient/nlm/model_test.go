package nlm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/internal/client/nfsclient/nlm"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

const (
	modelClients = 2
	modelOwners  = 2
	modelFiles   = 2
	modelBytes   = 16
)

// place is an owner of a client in a file.
type place struct{ client, owner, file int }

// world is two clients that lock, a server that restarts, and what each owner has been told.
type world struct {
	t       *testing.T
	s       *server
	clients [modelClients]*client
	files   [modelFiles]vfs.Handle
	told    map[place]byterange.Set // what the owner takes for its own
	unsure  map[place]bool          // it was told that this is not so
	log     []string
}

// TestRandom runs random sequences of locks, unlocks, restarts, and broken connections.
func TestRandom(t *testing.T) {
	if os.Getenv("NFSBOX_SOAK") == "" {
		t.Skip("random sequences: NFSBOX_SOAK=1 runs them")
	}
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		data := make([]byte, 160)
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		bubble(t, func(t *testing.T) {
			play(t, data)
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}

// FuzzSequences is TestRandom with sequences that are found by a fuzzer.
func FuzzSequences(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 200, 1, 2, 3, 4, 5, 6})
	f.Add([]byte{0, 0, 15, 0, 201, 0, 0, 0, 0, 1, 15, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		bubble(t, func(t *testing.T) { play(t, data[:min(len(data), 512)]) })
	})
}

// play takes a step for each four bytes.
func play(t *testing.T, data []byte) {
	w := &world{t: t, s: newServer(t), told: make(map[place]byterange.Set), unsure: make(map[place]bool)}
	mem := memfs.New(memfs.Options{Mode: 0o777})
	for i := range w.clients {
		w.clients[i] = w.s.client(t, mem, uint64(i+1))
	}
	for i := range w.files {
		w.files[i] = create(t, mem, fmt.Sprint(i))
	}
	for ; len(data) >= 4 && !t.Failed(); data = data[4:] {
		w.step(data[0], data[1], data[2], data[3])
	}
	w.check()
}

// step does what four bytes say.
func (w *world) step(what, where, first, last byte) {
	p := place{int(where) % modelClients, int(where/2) % modelOwners, int(where/4) % modelFiles}
	a, b := uint64(first%modelBytes), uint64(last%modelBytes)
	span := byterange.Span{First: min(a, b), Last: max(a, b), Exclusive: where&0x40 != 0}
	w.log = append(w.log, fmt.Sprintf("%d %+v %+v", what%32, p, span))
	switch what % 32 {
	case 0:
		w.s.restart(w.t, 0)
	case 1, 2:
		w.s.restart(w.t, time.Duration(first%64)*time.Second)
	case 3, 4:
		w.s.cut(w.t)
	case 5, 6, 7:
		time.Sleep(time.Duration(first) * 100 * time.Millisecond)
	case 8, 9:
		w.check()
	case 10, 11:
		w.cutOff(p, span, time.Duration(last)*15*time.Millisecond)
	case 12, 13, 14, 15, 16, 17, 18, 19:
		w.unlock(p, span)
	default:
		w.lock(p, span)
	}
}

func lockOf(p place, span byterange.Span) *vfs.Lock {
	return &vfs.Lock{Owner: owner(p.owner), Exclusive: span.Exclusive, Off: span.First, Len: span.Len()}
}

func (w *world) lock(p place, span byterange.Span) {
	err := w.clients[p.client].Lock(w.t.Context(), w.files[p.file], lockOf(p, span))
	switch {
	case err == nil:
		w.told[p] = w.told[p].Put(span)
	case errors.Is(err, vfs.ErrLocked):
	default:
		w.doubt(p, err)
	}
}

func (w *world) unlock(p place, span byterange.Span) {
	err := w.clients[p.client].Unlock(w.t.Context(), w.files[p.file], lockOf(p, span))
	w.told[p] = w.told[p].Take(span)
	if err != nil {
		w.doubt(p, err)
	}
}

// cutOff locks, and gives up before a slow server has answered, or just then. The server is not so slow
// that the call is sent again: this server has no cache of replies, and would execute it twice.
func (w *world) cutOff(p place, span byterange.Span, slow time.Duration) {
	w.s.mu.Lock()
	w.s.before = func(p *xdr.Proc) bool {
		if p == nlm4.NLMPROC4_LOCK {
			time.Sleep(slow)
		}
		return true
	}
	w.s.mu.Unlock()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Second)
	defer cancel()
	err := w.clients[p.client].Lock(ctx, w.files[p.file], lockOf(p, span))
	w.s.mu.Lock()
	w.s.before = nil
	w.s.mu.Unlock()
	switch {
	case err == nil:
		w.told[p] = w.told[p].Put(span)
	case errors.Is(err, vfs.ErrLocked):
	case ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded):
		w.unsure[p] = true
	default:
		w.doubt(p, err)
	}
}

// doubt notes that an owner was told of a loss, or has no answer.
func (w *world) doubt(p place, err error) {
	if _, ok := errors.AsType[*nlm.LostError](err); !ok {
		w.t.Errorf("%v after %q", err, w.log)
	}
	w.unsure[p] = true
}

// check waits until all is quiet. Then the server holds what the clients think, nothing else, and every
// owner has been told so, or is when it asks next.
func (w *world) check() {
	time.Sleep(8 * time.Minute) // a grace, settling, and watching
	known := make(map[string]bool)
	for client := range modelClients {
		for owner := range modelOwners {
			for file := range modelFiles {
				known[w.checkOne(place{client, owner, file})] = true
			}
		}
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for _, of := range w.s.held {
		for o := range of {
			if !known[o.oh] {
				w.t.Errorf("the server has a lock that nobody has, after %q", w.log)
			}
		}
	}
}

func (w *world) checkOne(p place) (oh string) {
	c, h := w.clients[p.client], w.files[p.file]
	set, oh, lost := c.Held(h, owner(p.owner))
	w.s.mu.Lock()
	var there byterange.Set
	for o, have := range w.s.held[string(h.Bytes())] {
		if o.oh == oh && oh != "" {
			there = slices.Clone(have)
		}
	}
	w.s.mu.Unlock()
	if !slices.Equal(set, there) {
		w.t.Errorf("%+v: the client has %v, the server %v, after %q", p, set, there, w.log)
	}
	switch {
	case w.unsure[p]:
	case !lost && !slices.Equal(set, w.told[p]):
		w.t.Errorf("%+v: the owner has %v, was told %v, and hears of no loss, after %q", p, set, w.told[p], w.log)
	case lost:
		err := c.Unlock(w.t.Context(), h, &vfs.Lock{Owner: owner(p.owner), Off: 1 << 40, Len: 1})
		if _, ok := errors.AsType[*nlm.LostError](err); !ok {
			w.t.Errorf("%+v: %v in place of a loss", p, err)
		}
	}
	w.told[p] = set
	delete(w.unsure, p)
	return oh
}
