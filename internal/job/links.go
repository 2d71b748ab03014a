package job

import (
	"slices"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// maxLinked bounds the files with several names that are kept track of at once,
// about 250 bytes each. A file is forgotten when all its names have been met.
// Names of further files are copied as files of their own.
const maxLinked = 1 << 18

// linkID is what names of one file have in common. An id alone does not make two
// names one file: numbers of files are used again while a tree is listed, and several
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

// linkIDOf is a's, of a file that has other names or may have them.
func linkIDOf(a *vfs.Attr) (linkID, bool) {
	id, ok := idOf(a)
	ok = ok && a.Has(vfs.MaskSize|vfs.MaskMtime|vfs.MaskCtime|vfs.MaskNlink)
	return linkID{id, a.Size, stampOf(a.Mtime), stampOf(a.Ctime), a.Nlink}, ok
}

// linked is a file with several names.
type linked struct {
	id   linkID
	done chan struct{} // closed when copy and ok are set
	copy object
	ok   bool
	met  uint32 // names that have been met
}

// linkTable knows the copies of files with several names. The zero value is
// ready; its methods may be called concurrently.
type linkTable struct {
	mu sync.Mutex
	// files holds one entry for an object's id, and several if what was said of it
	// did not agree.
	files map[objectID][]*linked
	n     int
}

// claim meets one of the names of the file that id says. The first caller copies the
// file and calls settle; the others wait for linked.done. It returns nil if the table
// is full. odd says that the same object was met before, and was not the same.
func (t *linkTable) claim(id linkID) (l *linked, first, odd bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.files[id.objectID]
	i := slices.IndexFunc(all, func(l *linked) bool { return l.id == id })
	if i < 0 {
		if t.n >= maxLinked {
			return nil, false, false
		}
		if t.files == nil {
			t.files = make(map[objectID][]*linked)
		}
		l = &linked{id: id, done: make(chan struct{}), met: 1}
		t.files[id.objectID] = append(all, l)
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
	all := t.files[l.id.objectID]
	i := slices.Index(all, l)
	if i < 0 {
		return
	}
	t.n--
	if len(all) == 1 {
		delete(t.files, l.id.objectID)
		return
	}
	t.files[l.id.objectID] = slices.Delete(all, i, i+1)
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

// linkPairs knows which file of the destination stands for which one of the
// source, as far as either has several names. It holds maxLinked of either; the
// names of further ones are compared each for itself.
type linkPairs struct {
	mu    sync.Mutex
	toDst map[linkID]linkID
	toSrc map[linkID]linkID
}

// meet takes note of a pair. again is true if the same two files have been met
// under other names. why says what is wrong with the pair, if anything is.
func (l *linkPairs) meet(src, dst *vfs.Attr) (again bool, why string) {
	s, sok := linkIDOf(src)
	d, dok := linkIDOf(dst)
	if !sok || !dok || src.Nlink < 2 && dst.Nlink < 2 {
		return false, ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.toDst == nil {
		l.toDst, l.toSrc = make(map[linkID]linkID), make(map[linkID]linkID)
	}
	was, known := l.toDst[s]
	of, taken := l.toSrc[d]
	switch {
	case known && was == d:
		return true, ""
	case known:
		return false, "a hard link in the source, and in the destination a file of its own"
	case taken && of != s:
		return false, "a file of its own in the source, and in the destination a hard link"
	}
	if len(l.toDst) < maxLinked {
		l.toDst[s], l.toSrc[d] = d, s
	}
	return false, ""
}
