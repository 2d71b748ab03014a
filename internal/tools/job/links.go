package job

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxLinked bounds the objects with several names that are kept track of at once,
// about 250 bytes each. One is forgotten when all its names have been met. Names of
// further ones are copied as objects of their own.
const maxLinked = 1 << 18

// linkID is what names of one object have in common, of whatever type but a directory.
// An id alone does not make two names one: numbers of files are used again while a tree is listed, and several
// file systems may stand behind one id (subvolumes of btrfs).
type linkID struct {
	objectID
	size         uint64
	mtime, ctime stamp
	nlink        uint32
}

// stamp is a time that can be compared with ==.
type stamp struct {
	sec  int64
	nsec int
}

func stampOf(t time.Time) stamp { return stamp{t.Unix(), t.Nanosecond()} }

// linkIDOf is a's, of an object that has other names or may have them.
func linkIDOf(a *vfs.Attr) (linkID, bool) {
	id, ok := idOf(a)
	ok = ok && a.Has(vfs.MaskSize|vfs.MaskMtime|vfs.MaskCtime|vfs.MaskNlink)
	return linkID{id, a.Size, stampOf(a.Mtime), stampOf(a.Ctime), a.Nlink}, ok
}

// linked is an object with several names.
type linked struct {
	id   linkID
	done chan struct{} // closed when copy, at and ok are set
	copy object
	at   transfer.Target // where it was made
	ok   bool
	met  uint32 // names that have been met
}

// linkTable knows the copies of objects with several names. The zero value is
// ready; its methods may be called concurrently.
type linkTable struct {
	mu sync.Mutex
	// objects holds one entry for an id, and several if what was said of it did not
	// agree.
	objects map[objectID][]*linked
	n       int
}

// claim meets one of the names of the object that id says. The first caller copies it
// and calls settle; the others wait for linked.done. It returns nil if the table
// is full. odd says that the same object was met before, and was not the same.
func (t *linkTable) claim(id linkID) (l *linked, first, odd bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.objects[id.objectID]
	i := slices.IndexFunc(all, func(l *linked) bool { return l.id == id })
	if i < 0 {
		if t.n >= maxLinked {
			return nil, false, false
		}
		if t.objects == nil {
			t.objects = make(map[objectID][]*linked)
		}
		l = &linked{id: id, done: make(chan struct{}), met: 1}
		t.objects[id.objectID] = append(all, l)
		t.n++
		return l, true, len(all) > 0
	}
	l = all[i]
	if l.met++; l.met >= id.nlink {
		t.forget(l)
	}
	return l, false, false
}

// forget takes l out, if it is there.
func (t *linkTable) forget(l *linked) {
	all := t.objects[l.id.objectID]
	i := slices.Index(all, l)
	if i < 0 {
		return
	}
	t.n--
	if len(all) == 1 {
		delete(t.objects, l.id.objectID)
		return
	}
	t.objects[l.id.objectID] = slices.Delete(all, i, i+1)
}

// settle says what came of the copy. After a failure the next name is the first.
func (t *linkTable) settle(l *linked, copy object, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !ok {
		t.forget(l)
	}
	l.copy, l.ok = copy, ok
	close(l.done)
}

// maxLinkPath bounds what is kept of a path to name it, in bytes: the lower part.
const maxLinkPath = 200

// linkPairs knows which object of the destination stands for which one of the
// source, as far as either has several names. It holds maxLinked of either, with up to
// maxLinkPath bytes for a name; the names of further ones are compared each for itself.
type linkPairs struct {
	mu    sync.Mutex
	toDst map[linkID]met
	toSrc map[linkID]met
}

// met is what an object was met with, and under which path.
type met struct {
	id   linkID
	path string
}

// meet takes note of a pair. again is true if the same two objects have been met
// under other names. why says what is wrong with the pair, if anything is.
func (l *linkPairs) meet(src, dst *vfs.Attr, path func() string) (again bool, why string) {
	s, sok := linkIDOf(src)
	d, dok := linkIDOf(dst)
	if !sok || !dok || src.Nlink < 2 && dst.Nlink < 2 {
		return false, ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.toDst == nil {
		l.toDst, l.toSrc = make(map[linkID]met), make(map[linkID]met)
	}
	was, known := l.toDst[s]
	of, taken := l.toSrc[d]
	switch {
	case known && was.id == d:
		return true, ""
	case known:
		return false, fmt.Sprintf("a hard link to %s in the source, and not in the destination", was.path)
	case taken && of.id != s:
		return false, fmt.Sprintf("a hard link to %s in the destination, and not in the source", of.path)
	}
	if len(l.toDst) < maxLinked {
		p := path()
		if len(p) > maxLinkPath {
			p = "..." + p[len(p)-maxLinkPath:]
		}
		l.toDst[s], l.toSrc[d] = met{d, p}, met{s, p}
	}
	return false, ""
}
