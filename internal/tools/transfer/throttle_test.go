package transfer

import (
	"bytes"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/throttle"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
)

// TestThrottle: several files are copied, and compared, at the rate; each byte counts once, and again if it is
// read back. A rate that is changed holds for files under way.
func TestThrottle(t *testing.T) {
	const size = 3 << 20
	contents := bytes.Repeat([]byte("nfsbox!\n"), size/8)
	for name, c := range map[string]struct {
		verify, compare bool
		change          uint64
		takes           float64 // seconds
	}{
		"copied": {takes: 12}, "read back": {verify: true, takes: 24}, "compared": {compare: true, takes: 12},
		"faster": {change: 10 << 20, takes: 5 + 0.7}, "slower": {change: 512 << 10, takes: 5 + 14},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, out := mem(t, memfs.Options{}), mem(t, memfs.Options{})
				limit := throttle.New(1 << 20)
				o := options(t)
				o.Throttle, o.Verify = limit, c.verify
				start := time.Now()
				if c.change > 0 {
					time.AfterFunc(5*time.Second, func() { limit.Set(c.change) })
				}
				var all sync.WaitGroup
				for _, name := range []string{"a", "b", "c", "d"} {
					src := in.file(name, contents)
					all.Go(func() {
						if c.compare {
							if cmp, err := Compare(t.Context(), src, src, size, o); err != nil || cmp.Differ || cmp.Bytes != size {
								t.Errorf("%+v, %v", cmp, err)
							}
							return
						}
						if _, err := File(t.Context(), src, out.target(name), o); err != nil {
							t.Error(err)
						}
						out.same(name, contents, 0o640)
					})
				}
				all.Wait()
				if took := time.Since(start).Seconds(); math.Abs(took/c.takes-1) > 0.05 {
					t.Errorf("it took %.1f s, want %.1f", took, c.takes)
				}
			})
		})
	}
}
