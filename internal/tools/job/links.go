package job

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxLinked bounds the objects with several names that are tracked at once, about 250 bytes
// each. An object is forgotten when all its names have been met. At the bound, names of
// further objects are copied as objects of their own.
const maxLinked = 1 << 18

// linkID identifies an object with several names, of any type but a directory. A file id
// alone is not enough: ids are used again while a tree is listed, and several file systems
// may share one file system id (subvolumes of btrfs).
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

// linkIDOf is a's linkID; false if a lacks an attribute that it takes.
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

// linkTable maps objects with several names to their copies. The zero value is ready; its
// methods may be called concurrently.
type linkTable struct {
	mu sync.Mutex
	// objects has one entry for an id, or several if the attributes of its names did not
	// agree.
	objects map[objectID][]*linked
	n       int
}

// claim records that a name of the object id was met. The first caller copies the object
// and calls settle; the others wait for linked.done. l is nil if the table is full. odd says
// that the same object was met before with other attributes.
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

// forget removes l from the table, if it is there.
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

// settle publishes the copy. After a failure the next name that is met is the first again.
func (t *linkTable) settle(l *linked, copy object, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !ok {
		t.forget(l)
	}
	l.copy, l.ok = copy, ok
	close(l.done)
}

// maxLinkPath bounds the path that is kept for messages, in bytes: its end is kept.
const maxLinkPath = 200

// linkPairs maps objects of the source to those of the destination, if either has several
// names, and back. Each map holds maxLinked entries with a path of maxLinkPath bytes. At the
// bound, names of further objects are compared one by one.
type linkPairs struct {
	mu    sync.Mutex
	toDst map[linkID]met
	toSrc map[linkID]met
}

// met is the counterpart of an object, and the path of the first name that was compared.
type met struct {
	id   linkID
	path string
}

// meet records a pair. again says that the same two objects were met under other names. why,
// if not empty, says how the links of the two sides differ.
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
