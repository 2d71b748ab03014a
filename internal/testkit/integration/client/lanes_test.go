package client

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/metric"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestMetadataBesideBulk measures how long a LOOKUP takes while 64 callers read
// as fast as the server's disk gives it, beside how long it takes alone. It is a
// measurement, and asserts nothing but that it can be made: NFSBOX_SOAK=1.
func TestMetadataBesideBulk(t *testing.T) {
	if os.Getenv("NFSBOX_SOAK") == "" {
		t.Skip("NFSBOX_SOAK is not set")
	}
	const (
		readers  = 64
		readSize = 256 << 10
		slots    = 8 // of the disk, which takes readTime for a READ
		readTime = 10 * time.Millisecond
		lookTime = time.Millisecond
		rounds   = 5
		measured = 2 * time.Second
	)
	disk := make(chan struct{}, slots)
	at := memfs.New(memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		switch op {
		case "read":
			disk <- struct{}{}
			time.Sleep(readTime)
			<-disk
		case "lookup":
			time.Sleep(lookTime)
		}
		return nil
	}})
	for _, query := range []string{"", "&nconnect=1"} {
		c := dial(t, "nfs://127.0.0.1:"+serve(t, export.Export{Path: "/", FS: at})+"/?readahead=0"+query)
		f := c.FS()
		root, _, err := f.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h, _, _, err := f.Create(t.Context(), root, "bulk"+query, &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode | vfs.MaskSize, Mode: 0o600, Size: readers * readSize}})
		if err != nil {
			t.Fatal(err)
		}
		look := func() *metric.Snapshot {
			var took metric.Histogram
			for end := time.Now().Add(measured); time.Now().Before(end); {
				began := time.Now()
				if _, _, _, err := f.Lookup(t.Context(), root, "bulk"+query); err != nil {
					t.Fatal(err)
				}
				took.Since(began, time.Now())
			}
			return took.Snapshot()
		}
		for range rounds {
			idle := look()
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for i := range readers {
				wg.Go(func() {
					file, _, err := f.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
					if err != nil {
						t.Error(err)
						return
					}
					for buf := make([]byte, readSize); ctx.Err() == nil; {
						if _, _, err := file.ReadAt(ctx, buf, uint64(i)*readSize, nil); err != nil && ctx.Err() == nil {
							t.Error(err)
							break
						}
					}
					if err := file.Close(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			before := c.Stats().BytesIn
			busy := look()
			rate := float64(c.Stats().BytesIn-before) / measured.Seconds() / 1e6
			stop()
			wg.Wait()
			t.Logf("%q: LOOKUP p50 %v, p99 %v idle; %v, %v beside reads of %.0f MB/s, at most %d at once",
				query, idle.Duration(0.5), idle.Duration(0.99), busy.Duration(0.5), busy.Duration(0.99), rate, c.Stats().Load[1].Limit)
		}
	}
}
