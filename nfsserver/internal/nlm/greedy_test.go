package nlm

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/proto/nlm4"
)

// greedy is how many homes take all that they can before the next one comes.
const greedy = 6

// takeInTurn has homes take all that they can of something, one after the other: each
// gets no more than share, and the next home still gets a few. fill has home n
// ask for as many as most, or more, and returns how many it has got.
func takeInTurn(t *testing.T, what string, homes, share int, fill func(n, most int) int) {
	t.Helper()
	for n := range homes {
		if got := fill(n, 2*share); got > share {
			t.Errorf("one home has %d %s", got, what)
		}
	}
	const few = 8
	if got := fill(homes, few); got < few {
		t.Errorf("the next home has %d %s", got, what)
	}
}

func TestGreedyQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		expect(t, "the lock", l.guest("first", "192.0.2.11").lock(want{fh: fh, svid: -1, exclusive: true}), nlm4.NLM4_GRANTED)
		takeInTurn(t, "locks that wait for one file", greedy, maxQueue/2, func(n, most int) (got int) {
			g := l.guest("g", fmt.Sprint("192.0.2.", 100+n))
			for got < most && g.lock(want{fh: fh, svid: int32(got), exclusive: true, block: true}) == nlm4.NLM4_BLOCKED {
				got++
			}
			return got
		})
	})
}

func TestGreedyReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		takeInTurn(t, "reservations of one file", greedy, maxFileShares/2, func(n, most int) (got int) {
			g := l.guest("g", fmt.Sprint("192.0.2.", 100+n))
			for ; got < most; got++ {
				var res nlm4.Nlm4Shareres
				g.call(nlm4.NLMPROC4_SHARE, &nlm4.Nlm4Shareargs{Share: nlm4.Nlm4Share{CallerName: []byte(g.name), Fh: fh,
					Oh: binary.BigEndian.AppendUint32(nil, uint32(got)), Mode: nlm4.FsmDN, Access: nlm4.FsaR}}, &res)
				if res.Stat != nlm4.NLM4_GRANTED {
					break
				}
			}
			return got
		})
	})
}

func TestGreedyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLab(t, Options{}).svc
		var all []*client
		fill := func(n, most int) (got int) {
			for ; got < most; got++ {
				c, err := s.enter(from(n), fmt.Sprint(got))
				if err != nil {
					break
				}
				all = append(all, c)
			}
			return got
		}
		takeInTurn(t, "clients", greedy, maxNames, fill)
		for _, c := range all {
			s.leave(c)
		}
		const more = 200 // than there were places left
		if got := fill(greedy+1, more); got < more {
			t.Errorf("beside those that hold nothing one home has %d clients", got)
		}
		for _, c := range all[len(all)-more:] {
			s.leave(c)
		}
	})
}

func TestGreedyResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLab(t, Options{}).svc
		s.call.Dial = func(ctx context.Context, _ string, _ netip.Addr, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, syscall.ECONNREFUSED
		}
		takeInTurn(t, "answers that wait", maxResults/maxClientResults+2, maxClientResults, func(n, _ int) int {
			c, err := s.enter(from(n), "a")
			if err != nil {
				t.Fatal(err)
			}
			defer s.leave(c)
			for range 2 * maxClientResults { // those that are being sent wait no more
				s.sendResult(c, nlm4.NLMPROC4_TEST_RES, &nlm4.Nlm4Testres{})
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			return c.home.results
		})
	})
}
