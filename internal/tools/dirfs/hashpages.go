package dirfs

import (
	"errors"
	"hash/maphash"
	"io"
	"math"
	"os"
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

// Some systems have no position in a directory that survives changes of it. There a listing
// goes by the hashes of the names, in ascending order: a page has the lowest ones after the
// position. Each page reads the whole directory.

// readNames is how many names are read at a time.
const readNames = 1024

// hashPages lists a directory, page by page.
type hashPages struct {
	seed maphash.Seed // gives each FS an order and positions of its own
	most int          // names in a page
	at   vfs.Pos
	rest []hashed
	over bool
}

type hashed struct {
	hash uint64
	name string
}

// verf goes with every cookie, so that positions of another FS are refused.
func (p *hashPages) verf() (v vfs.Verifier) {
	n := maphash.String(p.seed, "verifier")
	for i := range v {
		v[i] = byte(n >> (8 * i))
	}
	return v
}

func (p *hashPages) more() bool { return len(p.rest) > 0 }

// next reads the directory for the names after the current position.
func (p *hashPages) next(list func() (*os.File, error)) (over bool, err error) {
	if p.over {
		return true, nil
	}
	if p.at.Cookie != 0 && p.at.Verf != p.verf() {
		return false, vfs.ErrBadCookie
	}
	dir, err := list()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	var page []hashed
	limit := uint64(math.MaxUint64) // hashes from here on belong to later pages
	err = eachName(dir, func(name string) {
		h := max(maphash.String(p.seed, name), 1)
		if h <= p.at.Cookie || h >= limit {
			return
		}
		page = append(page, hashed{h, name})
		if len(page) >= 2*p.most {
			page, limit = p.lowest(page)
		}
	})
	if err != nil {
		return false, err
	}
	if limit == math.MaxUint64 && len(page) <= p.most {
		p.over = true
	}
	if len(page) > p.most {
		page, _ = p.lowest(page)
	}
	slices.SortFunc(page, byHash)
	p.rest = page
	return len(page) == 0, nil
}

func byHash(a, b hashed) int {
	if a.hash < b.hash {
		return -1
	}
	if a.hash > b.hash {
		return 1
	}
	return 0
}

// lowest returns the p.most lowest of page, and the first hash that is not among them.
func (p *hashPages) lowest(page []hashed) ([]hashed, uint64) {
	slices.SortFunc(page, byHash)
	return page[:p.most], page[p.most].hash
}

// eachName calls do for every name in dir but "." and "..".
func eachName(dir *os.File, do func(name string)) error {
	for {
		names, err := dir.Readdirnames(readNames)
		for _, name := range names {
			do(name)
		}
		if errors.Is(err, io.EOF) || err == nil && len(names) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take returns the next entry of the page. Its inode number is not known.
func (p *hashPages) take() (name []byte, ino uint64, at vfs.Pos, err error) {
	e := p.rest[0]
	p.rest = p.rest[1:]
	p.at = vfs.Pos{Cookie: e.hash, Verf: p.verf()}
	return []byte(e.name), 0, p.at, nil
}
