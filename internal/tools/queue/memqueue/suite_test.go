package memqueue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/leak"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
	"github.com/nfsbox/nfsbox/internal/tools/queue/memqueue"
	"github.com/nfsbox/nfsbox/internal/tools/queue/queuetest"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestSuite(t *testing.T) {
	queuetest.Run(t, func(t *testing.T, test func(*testing.T, *queuetest.Lab)) {
		synctest.Test(t, func(t *testing.T) {
			s := memqueue.New()
			test(t, &queuetest.Lab{
				Connect:  func(testing.TB) queue.Broker { return s.Connect() },
				Lease:    queue.LeaseTime,
				Forget:   func(testing.TB) { s.Forget() },
				Outage:   func(testing.TB) func() { return s.Outage() },
				Forge:    func(_ testing.TB, j queue.Job, it queue.Item) { s.Forge(j, it) },
				ForgeJob: func(_ testing.TB, j queue.Job) { s.ForgeJob(j) },
			})
		})
	})
}

// TestUnanswered wants a question to wait for AskTime, and no longer.
func TestUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memqueue.New()
		b := s.Connect()
		j := queue.Job{Name: "copy", Run: "00112233445566778899aabbccddeeff"}
		d, err := b.Open(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			err := d.Answer(t.Context(), func(ctx context.Context, _ []byte) []byte {
				<-ctx.Done()
				return nil
			})
			if !errors.Is(err, queue.ErrBroker) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		w, err := b.Join(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := w.Ask(t.Context(), nil); !errors.Is(err, queue.ErrNobody) || time.Since(begin) != queue.AskTime {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}
