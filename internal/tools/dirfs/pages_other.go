//go:build !linux

package dirfs

import (
	"errors"
	"hash/maphash"

	"github.com/nfsbox/nfsbox/vfs"
)

// pageNames bounds the names in a page, about 100 bytes each. A directory of n names is read
// n/pageNames times, and once more.
const pageNames = 1 << 16

// order is what all listings of an FS share.
type order struct{ seed maphash.Seed }

func newOrder() order { return order{maphash.MakeSeed()} }

// pages lists a directory, page by page.
type pages struct{ hashPages }

// from begins a listing at a position.
func (p *pages) from(f *FS, at vfs.Pos, _ uint32) {
	p.hashPages = hashPages{seed: f.order.seed, most: pageNames, at: at}
}

func (p *pages) close() {}

func (p *pages) next(d *hostDir) (over bool, err error) { return p.hashPages.next(d.list) }

// searchDir returns the name in d for which is returns true; "" if there is none.
func searchDir(d *hostDir, is func(name []byte, ino uint64) bool) (found string, err error) {
	dir, err := d.list()
	if err != nil {
		return "", fail("list", err)
	}
	err = eachName(dir, func(name string) {
		if found == "" && is([]byte(name), 0) {
			found = name
		}
	})
	return found, fail("list", errors.Join(err, dir.Close()))
}
