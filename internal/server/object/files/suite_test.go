package files

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/memfs"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/objecttest"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// farFuture is behind the time of any file.
var farFuture = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// stacks are the file systems that the suite runs on.
var stacks = []struct {
	name   string
	racers int
	make   func(t *testing.T) vfs.FS
}{
	{"memfs", 100, memory},
	{"localfs", 100, local},
	{"loopback", 100, func(t *testing.T) vfs.FS { return dial(t, "nfs://"+serve(t, memory(t))+"/").FS() }},
}

func memory(t *testing.T) vfs.FS {
	f := memfs.New(memfs.Options{Mode: 0o777})
	t.Cleanup(func() {
		if n := f.OpenFiles(); n != 0 {
			t.Errorf("%d files are open", n)
		}
	})
	return f
}

func local(t *testing.T) vfs.FS {
	f, err := localfs.New(inMemory(t), localfs.Options{Handles: localfs.HandlesMap, StateDir: inMemory(t)})
	if err != nil {
		t.Skipf("NOT TESTED on a directory: %v", err)
	}
	t.Cleanup(func() {
		if err := vfs.CloseFS(f); err != nil {
			t.Error(err)
		}
	})
	return f
}

// inMemory is a directory on a disk in memory, where there is one: what it really has is not what
// counts here.
func inMemory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "nfsbox-files-test-")
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

func TestSuite(t *testing.T) {
	for _, stack := range stacks {
		t.Run(stack.name, func(t *testing.T) {
			if need.Race && stack.name != "memfs" {
				t.Skip("NOT TESTED with the race detector: the whole suite; TestHosts and TestWire are")
			}
			suite(t, stack.racers, func(t *testing.T) vfs.FS { return stack.make(t) })
		})
	}
}

// suite runs the suite with a store of its own on a file system each.
func suite(t *testing.T, racers int, newFS func(t *testing.T) vfs.FS) {
	under := make(map[object.Store]vfs.FS)
	start := func(t *testing.T, f vfs.FS) object.Store {
		s := open(t, f, Options{})
		under[s] = f
		t.Cleanup(func() { sound(t, f) })
		return s
	}
	objecttest.Run(t, objecttest.Config{
		Racers: racers,
		New:    func(t *testing.T) object.Store { return start(t, newFS(t)) },
		Reopen: func(t *testing.T, s object.Store) object.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return start(t, under[s])
		},
		Corrupt: func(t *testing.T, s object.Store, key string) {
			folder, name := s.(*Store).layout.Split(key)
			overwrite(t, under[s], folder+"/"+name, 0, "\x00\xff")
		},
	})
}

// sound wants no temporaries to be left.
func sound(t *testing.T, f vfs.FS) {
	left := 0
	s, err := Open(context.Background(), f, rootOf(t, f), Options{})
	if err != nil {
		t.Error(err)
		return
	}
	if left, _, err = s.Sweep(context.Background(), farFuture); err != nil || left > 0 {
		t.Errorf("a sweep finds %d temporaries, %v", left, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
