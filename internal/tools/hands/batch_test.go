package hands

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/hands/wire"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
	"github.com/nfsbox/nfsbox/internal/tools/queue/memqueue"
)

// TestBatchesFill: while workers have plenty of files, those that come one by one make a batch. While they have few, none
// waits for company.
func TestBatchesFill(t *testing.T) {
	for _, c := range []struct{ files, batches int }{{plenty, 1}, {plenty / 4, 20}} {
		synctest.Test(t, func(t *testing.T) {
			conn := memqueue.New().Connect()
			job := queue.Job{Name: "j", Run: fmt.Sprintf("%032x", 1), Spec: []byte("spec")}
			coordinator, err := Open(t.Context(), Options{Broker: conn, Job: job, Tell: func(string) {}})
			if err != nil {
				t.Fatal(err)
			}
			d := &Dir{Path: func() []string { return nil }}
			for i := range c.files {
				coordinator.add(group{work: wire.COPY}, d, wire.File{Name: fmt.Append(nil, i)})
			}
			time.Sleep(2 * patient)
			full := coordinator.Standing().Batches
			for i := range 20 {
				coordinator.add(group{work: wire.REMOVE}, d, wire.File{Name: fmt.Append(nil, i)})
				time.Sleep(2 * linger)
			}
			time.Sleep(2 * patient)
			if got := coordinator.Standing().Batches - full; got != c.batches {
				t.Errorf("beside %d files: %d batches, want %d", c.files, got, c.batches)
			}
			if err := coordinator.Close(); err != nil {
				t.Error(err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
