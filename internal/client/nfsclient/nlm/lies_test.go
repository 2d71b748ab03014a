package nlm_test

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/nlm"
	"github.com/nfsbox/nfsbox/proto/nlm4"
)

// TestLies has a server answer nonsense where it is asked for what it holds: there are few questions, and the
// owner is told of a loss, or has its lock. Nothing goes on afterwards.
func TestLies(t *testing.T) {
	holder := func(off, n uint64, change func(*nlm4.Nlm4Holder)) func(*nlm4.Nlm4Testres) {
		return func(res *nlm4.Nlm4Testres) {
			h := &res.TestStat.Holder
			res.TestStat.Stat, h.LOffset, h.LLen = nlm4.NLM4_DENIED, off, n
			if change != nil {
				change(h)
			}
		}
	}
	status := func(st nlm4.Nlm4Stats) func(*nlm4.Nlm4Testres) {
		return func(res *nlm4.Nlm4Testres) { res.TestStat.Stat = st }
	}
	byte := uint64(0)
	for name, lie := range map[string]func(*nlm4.Nlm4Testres){
		"an unknown status":         status(77),
		"a negative status":         status(-1),
		"it waits":                  status(nlm4.NLM4_BLOCKED),
		"no room":                   status(nlm4.NLM4_DENIED_NOLOCKS),
		"a file that is gone":       status(nlm4.NLM4_STALE_FH),
		"nothing is locked":         status(nlm4.NLM4_GRANTED),
		"a holder beyond all files": holder(math.MaxUint64, 1, nil),
		"a holder from 2^63":        holder(1<<63, 0, nil),
		"a holder of 2^64-1 bytes":  holder(0, math.MaxUint64, nil),
		"a holder elsewhere":        holder(1000, 10, nil),
		"a holder before":           holder(0, 10, nil),
		"one byte in the middle":    holder(500, 1, nil),
		"a byte more each time": func(res *nlm4.Nlm4Testres) {
			byte++
			holder(100+byte, 1, nil)(res)
		},
		"the bytes of others": holder(100, 900, func(h *nlm4.Nlm4Holder) { h.Svid++ }),
		"a long name":         holder(100, 900, func(h *nlm4.Nlm4Holder) { h.Oh = bytes.Repeat([]uint8{7}, nlm4.MAXNETOBJ_SZ) }),
		"another kind":        holder(100, 900, func(h *nlm4.Nlm4Holder) { h.Exclusive = !h.Exclusive }),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, c, h := simple(t)
				must(t, c.Lock(t.Context(), h, alone(1, 100, 900)), nil)
				must(t, c.Lock(t.Context(), h, shared(2, 2000, 10)), nil)
				s.mu.Lock()
				s.lie = lie
				s.mu.Unlock()
				s.cut(t)
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n := s.called(nlm4.NLMPROC4_TEST); n > 400 {
					t.Errorf("%d questions", n)
				}
				_, free, err := c.TestLock(t.Context(), h, alone(3, 100, 1))
				if free && name != "nothing is locked" || err == nil && free != (name == "nothing is locked") {
					t.Errorf("TEST: %t, %v", free, err)
				}
				for n := range 2 {
					err := c.Unlock(t.Context(), h, alone(n+1, 0, 0))
					if _, told := errors.AsType[*nlm.LostError](err); err != nil && !told {
						t.Error(err)
					}
				}
				synctest.Wait()
				if st := c.Stats(); st.Locks != 0 || st.Owners != 0 || st.Pending != 0 {
					t.Errorf("left: %+v", st)
				}
			})
		})
	}
}
