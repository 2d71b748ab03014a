package hands

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/hands/wire"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
	"github.com/nfsbox/nfsbox/internal/tools/queue/memqueue"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestBatchesFill: while workers have plenty of files, those that come one by one make a batch. While they have few, none
// waits for company.
func TestBatchesFill(t *testing.T) {
	for _, c := range []struct{ files, batches int }{{plenty, 1}, {plenty / 4, 20}} {
		synctest.Test(t, func(t *testing.T) {
			coordinator, d := alone(t), &Dir{Path: func() []string { return nil }}
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
		})
	}
}

// TestBatchesBegin: files that wait in batches of their own are none that workers have, however many they are.
func TestBatchesBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const dirs = 2 * plenty
		coordinator, d := alone(t), &Dir{Path: func() []string { return nil }}
		for i := range dirs {
			dir, err := vfs.MakeHandle(fmt.Append(nil, i))
			if err != nil {
				t.Fatal(err)
			}
			coordinator.add(group{work: wire.COPY, src: dir}, d, wire.File{Name: []byte("file")})
		}
		time.Sleep(2 * linger)
		if got := coordinator.Standing().Batches; got != dirs {
			t.Errorf("%d batches of %d directories are dealt", got, dirs)
		}
	})
}

// alone is a coordinator without workers, until the test ends.
func alone(t *testing.T) *Coordinator {
	t.Helper()
	conn := memqueue.New().Connect()
	job := queue.Job{Name: "j", Run: fmt.Sprintf("%032x", 1), Spec: []byte("spec")}
	c, err := Open(t.Context(), Options{Broker: conn, Job: job, Tell: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), conn.Close()); err != nil {
			t.Error(err)
		}
	})
	return c
}
