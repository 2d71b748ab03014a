//go:build linux

package outsider

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestFilesMoveAbout: files are moved from directory to directory while the tree is copied, until
// the copy ends. Each of them is in the copy, under a name that it had, or the copy is not complete.
func TestFilesMoveAbout(t *testing.T) {
	for _, over := range []string{"local", "nfs"} {
		t.Run(over, func(t *testing.T) {
			b := newBox(t)
			const dirs, files, rounds = 30, 300, 6
			src := b.path("srv", "src")
			at := func(file, dir int) string {
				return filepath.Join(src, fmt.Sprint("d", dir%dirs), fmt.Sprint("f", file))
			}
			for i := range files {
				b.write(at(i, i), fmt.Sprint("file ", i))
				b.no(os.Chtimes(at(i, i), b.before(), b.before()))
			}
			from := src
			if over == "nfs" {
				from = b.serve(b.path("srv")).url + "src"
			}
			complete, incomplete := 0, 0
			for round := range rounds {
				dst := b.path(fmt.Sprint("dst", round))
				stop := b.moveAbout(round, files, dirs, at)
				r := b.run("cp", "-r", "--json", from, dst)
				stop()
				if r.status != 0 {
					incomplete++
					continue
				}
				complete++
				for i := range files {
					if found, err := filepath.Glob(filepath.Join(dst, "*", fmt.Sprint("f", i))); err != nil || len(found) == 0 {
						t.Errorf("round %d: f%d is in no copy, and the exit status is 0; dirs_changed %d", round, i, r.count(b, "dirs_changed"))
					}
				}
				b.no(os.RemoveAll(dst))
			}
			t.Logf("%d copies were complete, %d were not", complete, incomplete)
		})
	}
}

// moveAbout moves files until the returned function has ended that.
func (b *box) moveAbout(seed, files, dirs int, at func(file, dir int) string) (stop func()) {
	ended := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		chance := rand.New(rand.NewPCG(uint64(seed), 1))
		for n := 0; ; n++ {
			select {
			case <-ended:
				return
			default:
			}
			file := chance.IntN(files)
			found, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(at(0, 0))), "*", fmt.Sprint("f", file)))
			if err == nil && len(found) == 1 {
				err = os.Rename(found[0], at(file, chance.IntN(dirs)))
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(ended); work.Wait() })
}
