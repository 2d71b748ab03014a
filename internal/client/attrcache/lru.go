package attrcache

// lru is a map that forgets what was not used for longest.
type lru[K comparable, V any] struct {
	max    int
	pinned func(*V) bool // what must not be forgotten; nil: nothing
	gone   func(*V)      // is told of what is forgotten; nil: nobody

	m    map[K]*link[K, V]
	ring link[K, V] // next was used last
}

type link[K comparable, V any] struct {
	prev, next *link[K, V]
	key        K
	val        V
}

func (l *lru[K, V]) init(most int) {
	l.max, l.m = most, make(map[K]*link[K, V])
	l.ring.prev, l.ring.next = &l.ring, &l.ring
}

// get returns the value of k, which is used by that; nil: there is none.
func (l *lru[K, V]) get(k *K) *V {
	e := l.m[*k]
	if e == nil {
		return nil
	}
	if l.ring.next != e {
		e.leave()
		l.enter(e)
	}
	return &e.val
}

// make returns the value of k, a zero one if there was none; fresh says so.
func (l *lru[K, V]) make(k *K) (v *V, fresh bool) {
	if v := l.get(k); v != nil {
		return v, false
	}
	for e := l.ring.prev; len(l.m) >= l.max && e != &l.ring; e = e.prev {
		if l.pinned == nil || !l.pinned(&e.val) {
			if l.gone != nil {
				l.gone(&e.val)
			}
			l.remove(e)
			break
		}
	}
	e := &link[K, V]{key: *k}
	l.m[*k] = e
	l.enter(e)
	return &e.val, true
}

// drop forgets k.
func (l *lru[K, V]) drop(k *K) {
	if e := l.m[*k]; e != nil {
		l.remove(e)
	}
}

func (l *lru[K, V]) remove(e *link[K, V]) {
	e.leave()
	delete(l.m, e.key)
}

func (l *lru[K, V]) enter(e *link[K, V]) {
	e.prev, e.next = &l.ring, l.ring.next
	e.prev.next, e.next.prev = e, e
}

func (e *link[K, V]) leave() { e.prev.next, e.next.prev = e.next, e.prev }
