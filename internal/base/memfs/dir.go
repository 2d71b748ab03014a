package memfs

import (
	"slices"
	"sort"
)

const (
	// direntSize is what an entry adds to the size that its directory reports.
	direntSize = 32
	// firstCookie is the smallest cookie of an entry: 0 is the start of a listing, and 1 and 2 are
	// for "." and "..".
	firstCookie = 3
	// minGone is how many removed entries a directory keeps before it considers sweeping them out.
	minGone = 64
)

// dirent is a name in a directory.
type dirent struct {
	name   string
	node   *inode // nil: removed, and not yet swept out of order
	cookie uint64
}

// directory is what makes an inode a directory.
type directory struct {
	parent *inode // the root's is itself
	names  map[string]*dirent
	order  []*dirent // by cookie, removed ones among them
	gone   int       // how many of order are removed
	last   uint64    // cookie last given
}

func newDirectory(parent *inode) *directory {
	return &directory{parent: parent, names: make(map[string]*dirent), last: firstCookie - 1}
}

func (d *directory) lookup(name string) *inode {
	if e := d.names[name]; e != nil {
		return e.node
	}
	return nil
}

// add adds a name, which must not exist.
func (d *directory) add(name string, n *inode) {
	d.last++
	e := &dirent{name: name, node: n, cookie: d.last}
	d.names[name] = e
	d.order = append(d.order, e)
}

// remove removes a name. The others keep their cookies.
func (d *directory) remove(name string) {
	e := d.names[name]
	delete(d.names, name)
	e.node = nil
	d.gone++
	if d.gone > minGone && d.gone > len(d.order)/2 {
		d.order = slices.DeleteFunc(d.order, func(e *dirent) bool { return e.node == nil })
		d.gone = 0
	}
}

// behind returns the entries with cookies greater than cookie.
func (d *directory) behind(cookie uint64) []*dirent {
	i := sort.Search(len(d.order), func(i int) bool { return d.order[i].cookie > cookie })
	return d.order[i:]
}

func holds(dir, n *inode) bool {
	for n != dir {
		if n.dir.parent == n {
			return false
		}
		n = n.dir.parent
	}
	return true
}
