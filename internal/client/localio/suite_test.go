//go:build linux

package localio

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// inMemory is a temporary directory on tmpfs, which never reads without waiting.
func inMemory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "localio")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func isRoot() bool { return os.Geteuid() == 0 }

func self() vfs.Caller { return vfs.Caller{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())} }

// soak reports whether a long run is wanted.
func soak() bool { return os.Getenv("NFSBOX_SOAK") != "" }

// names are the tests of large directories, with which no suite but TestSuiteRemote
// is concerned: names go below always.
func names() map[string]string {
	if soak() {
		return nil
	}
	why := "names go below"
	return map[string]string{"large/directory": why, "large/changes-while-listed": why}
}

// TestSuiteLocal runs the suite with all data past the network, where no read
// comes without waiting.
func TestSuiteLocal(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		Callers: isRoot(), Differences: names(),
		New: func(t *testing.T) vfs.FS { return newRig(t, inMemory(t)).ready(Options{Caller: self()}) },
	})
}

// TestSuiteDisk runs what is about data where reads do come without waiting.
func TestSuiteDisk(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		Callers: isRoot(),
		Groups:  []string{"open", "read", "write", "commit", "truncate", "holes", "cancel"},
		New:     func(t *testing.T) vfs.FS { return newRig(t, t.TempDir()).ready(Options{Caller: self()}) },
	})
}

// TestSuiteCrowded runs it where hardly a descriptor may be held.
func TestSuiteCrowded(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		Callers: isRoot(), Differences: names(),
		New: func(t *testing.T) vfs.FS { return newRig(t, inMemory(t)).ready(Options{MaxFiles: 2, Caller: self()}) },
	})
}

// TestSuiteRemote runs it with all data over the network.
func TestSuiteRemote(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		Callers: isRoot(),
		New: func(t *testing.T) vfs.FS {
			r := newRig(t, inMemory(t))
			r.mute.Store(true)
			return r.fs(Options{Caller: self()})
		},
	})
}

// TestSuiteFaults runs it while descriptors are taken back all the time, and
// refused, and sessions end.
func TestSuiteFaults(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		Callers: isRoot(), Differences: names(),
		New: func(t *testing.T) vfs.FS {
			r := newRig(t, inMemory(t))
			f := r.ready(Options{Caller: self()})
			stop, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				r.faults(stop)
			}()
			t.Cleanup(func() { close(stop); <-done })
			return f
		},
	})
}

// faults makes some trouble each millisecond.
func (r *rig) faults(stop chan struct{}) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	chance := rand.New(rand.NewPCG(1, 2))
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		switch n := chance.IntN(100); {
		case n < 60:
			r.revoke(func(vfs.Handle) bool { return chance.IntN(2) == 0 })
		case n < 70:
			r.refuses(localio.SESSION_CROWDED, 0)
		case n < 90:
			r.refuse.Store(nil)
		case n < 91:
			r.kill()
		}
	}
}
