package localio

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/proto/localio"
)

// TestStorm has clients come, open, close and go, and files be changed meanwhile.
// The rig looks for what is left in the end.
func TestStorm(t *testing.T) {
	r := newRig(t, Options{MaxFiles: 20, MaxSessions: 3})
	const files, clients, rounds = 4, 4, 30
	var handles []localio.SessionOpenFile
	for i := range files {
		handles = append(handles, want(r.file(string(rune('a'+i)), 0o644)))
	}
	var wg sync.WaitGroup
	for k := range clients {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(k)))
			for range rounds {
				stormClient(t, r, rnd, handles)
			}
		})
	}
	done := make(chan struct{})
	var changes sync.WaitGroup
	changes.Go(func() {
		for i := range 1_000_000 {
			select {
			case <-done:
				return
			default:
			}
			name := string(rune('a' + i%files))
			h, _, _, err := r.own.Lookup(t.Context(), r.root, name)
			if err != nil {
				t.Error(err)
				return
			}
			r.chmod(h, 0o644)
		}
	})
	wg.Wait()
	close(done)
	changes.Wait()
	eventually(t, "all is given back", func() bool {
		st := r.s.Stats()
		return st.Sessions == 0 && st.Strangers == 0 && st.Files == 0 && r.host.watches.Load() == 0
	})
	if st := r.s.Stats(); st.Opened == 0 || st.Revoked == 0 {
		t.Errorf("nothing has happened: %+v", st)
	}
}

// stormClient is the life of one client, which ends at any time.
func stormClient(t *testing.T, r *rig, rnd *rand.Rand, handles []localio.SessionOpenFile) {
	n := greeted(t, r.dir, r.s.o.MaxFiles)
	defer func() {
		if err := n.c.Close(); err != nil {
			t.Error(err)
		}
	}()
	r.offer(n.nonce)
	var m localio.SessionMessage
	if _, err := n.c.Receive(&m); err != nil {
		return // there were enough
	}
	for range rnd.IntN(10) {
		var ask []localio.SessionOpenFile
		for range 1 + rnd.IntN(8) {
			ask = append(ask, handles[rnd.IntN(len(handles))])
		}
		first := n.next
		n.ask(ask...)
		if rnd.IntN(8) == 0 {
			return // without the answers
		}
		for _, f := range n.answers(first, len(ask)) {
			if f.Why == localio.SESSION_OK && rnd.IntN(10) > 0 {
				n.close(f)
			}
		}
	}
}
