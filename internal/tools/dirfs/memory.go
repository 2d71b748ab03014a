package dirfs

import (
	"container/list"
	"sync"
)

const (
	// maxMoved bounds the objects whose places after a rename or link of this FS are
	// kept, about 200 bytes each. At the bound the oldest is dropped, and is searched for.
	maxMoved = 1 << 12
	// maxLong bounds the names that are kept because they do not fit a handle, about 400
	// bytes each. At the bound the oldest is dropped, and is searched for.
	maxLong = 1 << 12
	// maxGone bounds the objects that are known to have been removed by this FS just now.
	// At the bound the oldest is dropped.
	maxGone = 256
)

// recent is a map that drops its oldest entry when it holds max.
type recent[K comparable, V any] struct {
	mu    sync.Mutex
	of    map[K]*list.Element
	order list.List
}

type entry[K comparable, V any] struct {
	key K
	val V
}

func (r *recent[K, V]) put(k K, v V, most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[K]*list.Element)
	}
	if e := r.of[k]; e != nil {
		e.Value.(*entry[K, V]).val = v
		r.order.MoveToBack(e)
		return
	}
	r.of[k] = r.order.PushBack(&entry[K, V]{k, v})
	if r.order.Len() > most {
		first := r.order.Front()
		delete(r.of, first.Value.(*entry[K, V]).key)
		r.order.Remove(first)
	}
}

func (r *recent[K, V]) get(k K) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.of[k]
	if e == nil {
		return v, false
	}
	return e.Value.(*entry[K, V]).val, true
}

// spot is a name in a directory.
type spot struct {
	slot uint64
	name string
}

// moved maps objects to the places where this FS has put them by a rename or a link.
type moved struct{ spots recent[ident, spot] }

func (m *moved) note(id ident, slot uint64, name string) { m.spots.put(id, spot{slot, name}, maxMoved) }
func (m *moved) find(id ident) (spot, bool)              { return m.spots.get(id) }

// longNames maps hashes to names that do not fit a handle.
type longNames struct{ names recent[uint64, string] }

func (l *longNames) keep(name string) { l.names.put(hashName(name), name, maxLong) }

// find returns "" for an unknown name.
func (l *longNames) find(hash uint64) string {
	name, _ := l.names.get(hash)
	return name
}

// gone are objects that this FS has just removed. A new object within the same tick of the
// clock can get the inode number and time of birth of one of them, and must not be taken for
// it.
type gone struct{ ids recent[ident, struct{}] }

func (g *gone) note(id ident)     { g.ids.put(id, struct{}{}, maxGone) }
func (g *gone) has(id ident) bool { _, ok := g.ids.get(id); return ok }
