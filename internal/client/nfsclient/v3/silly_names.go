package v3

import (
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

// openNames are the names of the open files. Other names are removed, and replaced, without a LOOKUP
// before.
//
// A file has a known name if it was made under it, or was found under it and had no other then.
// If this FS takes a name from it, or adds one, its name becomes unknown. While there is a file
// with an unknown name, every name is looked up. A rename by another client goes unnoticed, as
// with the kernel's client: if this FS then removes the new name, the file becomes stale.
type openNames struct {
	of      map[uint64]*openName // by nameMemory.folded
	unknown int                  // open Files without a known name
}

// openName is a name by which one file was opened, or is being opened. It is known as long as it is in
// openNames.of.
type openName struct {
	key uint64
	n   int        // Files
	h   vfs.Handle // zero while the first one is being opened
}

// folded is a key that is equal for names that differ only in case, which a server may take for one.
func (m *nameMemory) folded(dir *vfs.Handle, name string) uint64 {
	return m.key(dir, strings.ToLower(name))
}

// expect is called before a file is opened by a name, so that changes of the name meanwhile are
// noticed. The caller calls drop.
func (t *openFiles) expect(key uint64) *openName {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.names.of[key]
	if n == nil {
		n = &openName{key: key}
		if t.names.of == nil {
			t.names.of = make(map[uint64]*openName)
		}
		t.names.of[key] = n
	}
	n.n++
	return n
}

// nameless is expect for a file that is opened by its handle.
func (t *openFiles) nameless() *openName {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names.unknown++
	return &openName{n: 1}
}

// drop ends the use of n by one File.
func (t *openFiles) drop(n *openName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch n.n--; {
	case t.names.of[n.key] != n:
		t.names.unknown--
	case n.n == 0:
		delete(t.names.of, n.key)
	}
}

// opened records the object that was found by n. only says that it has no other name.
func (t *openFiles) opened(n *openName, h vfs.Handle, only bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !only || !n.h.IsZero() && n.h != h {
		t.names.forget(n.key)
	}
	n.h = h
}

// moved is called before a name is taken from its object, and again afterwards, for files that
// are being opened meanwhile; and when the name is found not to be the only one.
func (t *openFiles) moved(key uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names.forget(key)
}

// linked is called before h gets another name, and again afterwards. A file that is being
// opened may be h.
func (t *openFiles) linked(h vfs.Handle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, n := range t.names.of {
		if n.h == h || n.h.IsZero() {
			t.names.forget(key)
		}
	}
}

// forget makes the name of a file an unknown one. openFiles.mu is held.
func (o *openNames) forget(key uint64) {
	if n := o.of[key]; n != nil {
		delete(o.of, key)
		o.unknown += n.n
	}
}

// mayBe reports whether a name may be that of an open file.
func (t *openFiles) mayBe(key uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.names.unknown > 0 || t.names.of[key] != nil
}
