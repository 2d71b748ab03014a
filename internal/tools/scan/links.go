package scan

import (
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// MaxLinks bounds the objects with several names that a Links remembers, about 40 bytes each.
// At the bound it remembers those that it has: a further object counts with each of its names.
const MaxLinks = 1 << 20

// Links finds the further names of objects that were met before. It may be used concurrently.
type Links struct {
	mu    sync.Mutex
	max   int
	met   map[object]struct{}
	names uint64
	over  uint64
}

// object identifies an object.
type object struct {
	fsid   [2]uint64
	fileID uint64
}

// NewLinks returns a Links that has met nothing.
func NewLinks() *Links { return &Links{max: MaxLinks, met: make(map[object]struct{})} }

// Again reports whether a is of an object that was met under another name. Directories, and objects
// with one name, are not looked for.
func (l *Links) Again(a *vfs.Attr) bool {
	if l == nil || a.Nlink < 2 || a.Type == vfs.TypeDir || !a.Has(vfs.MaskFSID|vfs.MaskFileID|vfs.MaskNlink) {
		return false
	}
	o := object{a.FSID, a.FileID}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch _, met := l.met[o]; {
	case met:
		l.names++
		return true
	case len(l.met) >= l.max:
		l.over++
	default:
		l.met[o] = struct{}{}
	}
	return false
}

// Names is how many further names were met.
func (l *Links) Names() uint64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names
}

// Over is how many names of objects with several names were met beyond MaxLinks. Each was
// counted as an object, although it may be a further name of one.
func (l *Links) Over() uint64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}
