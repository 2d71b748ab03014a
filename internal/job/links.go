package job

import "sync"

// maxLinked bounds the files with several names that are kept track of at once,
// about 200 bytes each. A file is forgotten when all its names have been met.
// Names of further files are copied as files of their own.
const maxLinked = 1 << 18

// linked is a file with several names.
type linked struct {
	done chan struct{} // closed when copy and ok are set
	copy object
	ok   bool
	met  uint32 // names that have been met
}

// linkTable knows the copies of files with several names. The zero value is
// ready; its methods may be called concurrently.
type linkTable struct {
	mu    sync.Mutex
	files map[objectID]*linked
}

// claim meets one of the file's nlink names. The first caller copies the file
// and calls settle; the others wait for linked.done. It returns nil if the table
// is full.
func (t *linkTable) claim(id objectID, nlink uint32) (l *linked, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l = t.files[id]
	if l == nil {
		if len(t.files) >= maxLinked {
			return nil, false
		}
		if t.files == nil {
			t.files = make(map[objectID]*linked)
		}
		l = &linked{done: make(chan struct{}), met: 1}
		t.files[id] = l
		return l, true
	}
	if l.met++; l.met >= nlink {
		delete(t.files, id)
	}
	return l, false
}

// settle says what came of the copy. After a failure the next name is the first.
func (t *linkTable) settle(id objectID, l *linked, copy object, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !ok && t.files[id] == l {
		delete(t.files, id)
	}
	l.copy, l.ok = copy, ok
	close(l.done)
}
