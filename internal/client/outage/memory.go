package outage

import (
	"errors"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// memory is what the server has told. It is empty without Options.Offline.
type memory struct {
	mu     sync.Mutex
	root   vfs.Handle
	attrs  table[vfs.Handle, vfs.Attr]
	rights table[rightKey, right]
	names  table[nameKey, vfs.Handle]
}

// rightKey is a caller and an object.
type rightKey struct {
	h   vfs.Handle
	who string
}

// right is what a caller may do, of what was asked, while the object's ctime is that one.
type right struct {
	asked, got vfs.Access
	ctime      time.Time
}

type nameKey struct {
	dir  vfs.Handle
	name string
}

// table is a bounded map, whose values have an age.
type table[K comparable, V any] struct{ m map[K]told[V] }

type told[V any] struct {
	v  V
	at int64
}

func (t *table[K, V]) put(k K, v V, at int64) {
	if t.m == nil {
		t.m = make(map[K]told[V])
	}
	if _, there := t.m[k]; !there && len(t.m) >= maxRemembered {
		for old := range t.m { // Go walks maps from a random place
			delete(t.m, old)
			break
		}
	}
	t.m[k] = told[V]{v, at}
}

// get returns the value if it was told since then.
func (t *table[K, V]) get(k K, since int64) (v V, ok bool) {
	x, ok := t.m[k]
	return x.v, ok && x.at >= since
}

// remembers reports whether anything is.
func (s *shared) remembers() bool { return s.o.Offline > 0 }

func (s *shared) noteRoot(h vfs.Handle, a *vfs.Attr) {
	if s.remembers() {
		s.memory.mu.Lock()
		s.memory.root = h
		s.memory.mu.Unlock()
		s.noteAttr(h, a)
	}
}

func (s *shared) noteAttr(h vfs.Handle, a *vfs.Attr) {
	if s.remembers() && a.Has(vfs.MaskV3) && !h.IsZero() {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		s.memory.attrs.put(h, *a, s.now())
	}
}

// noteChange is noteAttr for an object that was changed: if it is not known into what, it is forgotten.
// err is that of the change.
func (s *shared) noteChange(h vfs.Handle, wcc *vfs.WCC, err error) {
	if !s.remembers() || unsent(err) {
		return
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	if wcc.After.Has(vfs.MaskV3) {
		s.memory.attrs.put(h, wcc.After, s.now())
		return
	}
	delete(s.memory.attrs.m, h)
}

func (s *shared) noteRights(h vfs.Handle, who string, asked, got vfs.Access, a *vfs.Attr) {
	if !s.remembers() || !a.Has(vfs.MaskV3) {
		return
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	k, now := rightKey{h, who}, s.now()
	r := right{asked: asked, got: got, ctime: a.Ctime}
	if old, ok := s.memory.rights.m[k]; ok && old.v.ctime.Equal(a.Ctime) && now-old.at < int64(s.o.Offline) {
		r.asked, r.got = old.v.asked|asked, old.v.got&^asked|got
		now = old.at // as old as the older of both
		if asked|old.v.asked == asked {
			now = s.now()
		}
	}
	s.memory.rights.put(k, r, now)
	s.memory.attrs.put(h, *a, s.now())
}

func (s *shared) noteName(dir vfs.Handle, name string, h vfs.Handle) {
	if s.remembers() && !h.IsZero() {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		s.memory.names.put(nameKey{dir, name}, h, s.now())
	}
}

func (s *shared) forgetName(dir vfs.Handle, name string, err error) {
	if s.remembers() && !unsent(err) {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		delete(s.memory.names.m, nameKey{dir, name})
	}
}

func (s *shared) noteEntry(dir vfs.Handle, e *vfs.Entry) {
	if s.remembers() && !e.Handle.IsZero() {
		s.noteName(dir, string(e.Name), e.Handle)
		s.noteAttr(e.Handle, &e.Attr)
	}
}

// since is the time from which on what was told counts, for a call that failed with err. ok is false if nothing counts:
// the server has answered.
func (s *shared) since(err error) (at int64, ok bool) {
	var busy *BusyError
	if !s.remembers() || !errors.As(err, &busy) {
		return 0, false
	}
	return s.now() - int64(s.o.Offline), true
}

func (s *shared) rootMeanwhile(err error) (h vfs.Handle, a vfs.Attr, ok bool) {
	s.memory.mu.Lock()
	h = s.memory.root
	s.memory.mu.Unlock()
	if h.IsZero() {
		return h, a, false
	}
	a, ok = s.attrMeanwhile(h, err)
	return h, a, ok
}

func (s *shared) attrMeanwhile(h vfs.Handle, err error) (a vfs.Attr, ok bool) {
	since, ok := s.since(err)
	if !ok {
		return a, false
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return s.memory.attrs.get(h, since)
}

func (s *shared) rightsMeanwhile(h vfs.Handle, who string, want vfs.Access, err error) (got vfs.Access, a vfs.Attr, ok bool) {
	since, ok := s.since(err)
	if !ok {
		return 0, a, false
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return s.memory.may(h, who, want, since)
}

// may returns what is known of the caller's rights. m.mu is held.
func (m *memory) may(h vfs.Handle, who string, want vfs.Access, since int64) (got vfs.Access, a vfs.Attr, ok bool) {
	a, known := m.attrs.get(h, since)
	r, ok := m.rights.get(rightKey{h, who}, since)
	if !known || !ok || want&^r.asked != 0 || !r.ctime.Equal(a.Ctime) {
		return 0, a, false
	}
	return r.got & want, a, true
}

func (s *shared) nameMeanwhile(dir vfs.Handle, name, who string, err error) (h vfs.Handle, a, dirAttr vfs.Attr, ok bool) {
	since, ok := s.since(err)
	if !ok {
		return h, a, dirAttr, false
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	got, dirAttr, ok := s.memory.may(dir, who, vfs.AccessLookup, since)
	if !ok || got == 0 {
		return h, a, dirAttr, false
	}
	if h, ok = s.memory.names.get(nameKey{dir, name}, since); !ok {
		return h, a, dirAttr, false
	}
	a, ok = s.memory.attrs.get(h, since)
	return h, a, dirAttr, ok
}
