package crash

import (
	"os"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/localfs"
)

const crashLives = 5

// TestCrash: a server's disk loses its power, or its process is killed, again and
// again while clients change things of every kind. What they were told is there
// afterwards.
func TestCrash(t *testing.T) {
	seeds := 15
	if testing.Short() {
		t.Log("-short leaves out all seeds but the first two")
		seeds = 2
	}
	if os.Getenv("NFSBOX_SOAK") != "" {
		seeds = 500
	}
	for _, mode := range []localfs.Mode{localfs.HandlesKernel, localfs.HandlesMap} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			if mode == localfs.HandlesKernel && os.Geteuid() != 0 {
				t.Skip("the kernel's handles are root's")
			}
			acked := 0
			for seed := range seeds {
				c, lost := lossesOf(t, mode, uint64(seed+1), []int{1, 4}[seed%2], crashLives, "")
				acked += c.l.acked
				if len(lost) > 0 {
					t.Errorf("seed %d, %d workers: %s", seed+1, c.workers, strings.Join(lost, "\n"))
				}
			}
			t.Logf("%d seeds, %d calls acknowledged", seeds, acked)
		})
	}
}

// TestCrashLedger: a directory that the disk may lose takes what is in it along, and of a
// file that has a name elsewhere one link.
func TestCrashLedger(t *testing.T) {
	l := newLedger()
	dir, below, file, other := &object{}, &object{}, &object{}, &object{}
	l.set(place{l.root, "dir"}, dir)
	l.set(place{dir, "below"}, below)
	l.set(place{below, "file"}, file)
	l.set(place{l.root, "link"}, file)
	l.set(place{l.root, "other"}, other)
	lost := l.below(func(o *object) bool { return o == dir })
	if !lost[dir] || !lost[below] || !lost[file] || lost[other] || lost[l.root] {
		t.Errorf("with the directory goes %v", lost)
	}
	if n, exact := l.links(file, map[*object]int{l.root: 1}); n != 1 || !exact {
		t.Errorf("%d links, exactly: %v; the directory of one is gone", n, exact)
	}
	if n, exact := l.links(file, nil); n != 2 || !exact {
		t.Errorf("%d links, exactly: %v", n, exact)
	}
}
