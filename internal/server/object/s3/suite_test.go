package s3

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/objecttest"
	"github.com/nfsbox/nfsbox/internal/testkit/fakes3"
	"github.com/nfsbox/nfsbox/internal/testkit/leak"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

func TestMain(m *testing.M) { leak.Main(m, "net/http.(*persistConn)") }

// racers do one thing at once; each has a request under way.
const racers = 40

// over are the options of a store in a fake. Pauses between tries are none.
func over(f *fakes3.Server, prefix string) Options {
	return Options{Prefix: prefix, Write: true, Options: bucket.Options{
		Bucket: fakes3.Bucket, Endpoint: f.URL, Credentials: bucket.Static(fakes3.Key, fakes3.Secret),
		Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}}
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// suite runs the stores' suite over a fake, each test with a prefix of its own. Stores are opened without faults: as
// long as nothing has been answered, Open gives up soon.
func suite(t *testing.T, f *fakes3.Server, faults fakes3.Faults) {
	n := 0
	open := func(t *testing.T, o Options) *Store {
		f.Set(fakes3.Faults{})
		defer f.Set(faults)
		return open(t, o)
	}
	objecttest.Run(t, objecttest.Config{
		New: func(t *testing.T) object.Store {
			n++
			return open(t, over(f, fmt.Sprint("Stores/no-", n)))
		},
		Reopen: func(t *testing.T, s object.Store) object.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, s.(*Store).o)
		},
		Corrupt: func(t *testing.T, s object.Store, key string) {
			if !f.Change(s.(*Store).name(key), func(b []byte) []byte { b[0] ^= 1; return b }) {
				t.Fatalf("%s is not there", key)
			}
		},
		Racers: racers,
	})
}

func TestSuite(t *testing.T) {
	need.Speed(t, "the suite without faults; TestSuiteWithFaults does the same, and more")
	suite(t, fakes3.Start(t, 1, fakes3.Faults{}), fakes3.Faults{})
}

// TestSuiteWithFaults has one request of eight go wrong in some way.
func TestSuiteWithFaults(t *testing.T) {
	seeds := uint64(2)
	if need.Race {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			suite(t, fakes3.Start(t, seed, fakes3.Faults{}), fakes3.Faults{SlowDown: 30, Dropped: 20, Lost: 30, Cut: 30, Twice: 20})
		})
	}
}
