package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestStopped stops a backup at each read, and wants the next to go on from what was done, and to end up the same.
func TestStopped(t *testing.T) {
	const files = 12
	for stop := 1; ; stop++ {
		b := newBed(t)
		for i := range files {
			d := b.create(b.root, fmt.Sprint("d", i%3, i), vfs.CreateHow{Type: vfs.TypeDir})
			b.file(d, "f", strings.Repeat(fmt.Sprint(i), 3000))
		}
		ctx, cancel := context.WithCancel(t.Context())
		var reads atomic.Int64
		b.fault = func(_ context.Context, op string, _ vfs.Handle) error {
			if op == "read" && reads.Add(1) == int64(stop) {
				cancel()
			}
			return nil
		}
		sum, err := Run(ctx, b.options())
		cancel()
		if err == nil {
			if stop < files {
				t.Fatalf("it was done after %d reads", stop)
			}
			return
		}
		if !errors.Is(err, context.Canceled) || !sum.Partial || sum.Snapshot != "" {
			t.Fatalf("%v: %+v", err, sum)
		}
		if _, err := snapshot.Find(t.Context(), b.store, "t"); !errors.Is(err, snapshot.ErrNoSnapshot) {
			t.Errorf("there is a snapshot: %v", err)
		}
		b.fault = nil
		was := sum.Files
		sum, s := b.backup()
		b.wantSame(s)
		if sum.Resumed != was || sum.Read != files-was || !sum.Complete || sum.Partial {
			t.Errorf("stopped at read %d with %d files: %+v", stop, was, sum)
		}
		if p, err := snapshot.OpenPartial(t.Context(), b.store, "t"); p != nil || err != nil {
			t.Errorf("the checkpoint is there: %v, %v", p, err)
		}
	}
}
