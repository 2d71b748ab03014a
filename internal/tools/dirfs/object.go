package dirfs

import (
	"errors"

	"github.com/nfsbox/nfsbox/vfs"
)

// place is where an object was found: a directory, held and pinned, and the name in it; "."
// for the root itself.
type place struct {
	s    *slot
	dir  *hostDir
	name string
	st   stat
}

// object finds the object of r. The caller leaves o.s.
func (f *FS) object(r *ref) (o place, err error) {
	if r.slot == 0 {
		return f.rootPlace(f.pin, r)
	}
	if o, err = f.named(f.pin, r); !errors.Is(err, vfs.ErrStale) {
		return o, err
	}
	// It is gone or another object: this FS may have moved the one sought.
	f.slots.tree.RLock()
	defer f.slots.tree.RUnlock()
	return f.objectIn(r)
}

// objectIn is object for a caller that has locked tree for reading, so that this FS moves no
// directory meanwhile.
func (f *FS) objectIn(r *ref) (o place, err error) {
	if r.slot == 0 {
		return f.rootPlace(f.pinIn, r)
	}
	if r.kind == vfs.TypeDir {
		if o, err = f.named(f.pinIn, r); !errors.Is(err, vfs.ErrStale) {
			return o, err
		}
	}
	if m, ok := f.moved.find(r.id); ok {
		if s, err := f.slots.of(&ref{slot: m.slot}); err == nil {
			if o, err = f.at(f.pinIn, s, m.name, r.id); err == nil {
				return o, nil
			}
		}
	}
	return f.search(r)
}

// named finds the object where its handle says. A directory with a slot is found where the
// slot says.
func (f *FS) named(pin pinner, r *ref) (o place, err error) {
	s, name := f.slots.whereIs(r)
	if s == nil {
		if s, err = f.slots.of(r); err != nil {
			return o, err
		}
		if name = r.name; name == "" {
			name = f.long.find(r.hash)
		}
	}
	return f.at(pin, s, name, r.id)
}

// pinner is FS.pin or FS.pinIn.
type pinner func(*slot) (*hostDir, error)

func (f *FS) rootPlace(pin pinner, r *ref) (o place, err error) {
	s := f.slots.find(r)
	if s == nil {
		return o, vfs.ErrBadHandle
	}
	return f.at(pin, s, ".", r.id)
}

// whereIs returns the place of a directory that has a slot; its parent's slot is held.
func (t *slots) whereIs(r *ref) (*slot, string) {
	if r.kind != vfs.TypeDir {
		return nil, ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[r.id]
	if s == nil || s.parent == nil {
		return nil, ""
	}
	t.holdLocked(s.parent)
	return s.parent, s.name
}

// at looks name up in s, which is held, and returns ErrStale unless it is the object id.
// After an error s is no longer held.
func (f *FS) at(pin pinner, s *slot, name string, id ident) (o place, err error) {
	if name == "" {
		f.slots.drop(s)
		return o, vfs.ErrStale
	}
	o = place{s: s, name: name}
	if o.dir, err = pin(s); err != nil {
		f.slots.drop(s)
		return o, err
	}
	if name == "." {
		err = o.dir.self(&o.st)
	} else {
		err = o.dir.stat(name, &o.st)
	}
	if err = notNoEnt(fail("stat", err)); err == nil && o.st.id() != id {
		err = vfs.ErrStale
	}
	if err != nil {
		f.leave(s)
	}
	return o, err
}

// search looks for an object in all of the directory that its handle names, because this FS
// has renamed something there, or the name was too long for the handle. The caller has
// locked tree for reading.
func (f *FS) search(r *ref) (o place, err error) {
	s, err := f.slots.of(r)
	if err != nil {
		return o, err
	}
	if !s.hasMoves(&f.slots) && r.name != "" {
		f.slots.drop(s)
		return o, vfs.ErrStale
	}
	dir, err := f.pinIn(s)
	if err != nil {
		f.slots.drop(s)
		return o, err
	}
	name, err := searchDir(dir, func(name []byte, ino uint64) bool {
		var st stat
		return (ino == 0 || ino == r.id.ino || r.id.mount != s.id.mount) && dir.stat(string(name), &st) == nil && st.id() == r.id
	})
	f.slots.unpin(s)
	if err != nil || name == "" {
		f.slots.drop(s)
		return o, staleOr(err)
	}
	f.moved.note(r.id, s.serial, name)
	return f.at(f.pinIn, s, name, r.id)
}

func staleOr(err error) error {
	if err == nil {
		return vfs.ErrStale
	}
	return notNoEnt(err)
}

func (s *slot) hasMoves(t *slots) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.moves
}

// find finds the object of handle h.
func (f *FS) find(h vfs.Handle) (r ref, o place, err error) {
	if r, err = parse(h); err == nil {
		o, err = f.object(&r)
	}
	return r, o, err
}

// take opens the object of handle h, so that the caller acts on that very object. The caller
// closes it and leaves o.s.
func (f *FS) take(h vfs.Handle) (x hostObject, o place, err error) {
	r, o, err := f.find(h)
	if err != nil {
		return x, o, err
	}
	if x, err = o.dir.object(o.name, &o.st); err == nil {
		if o.st.id() == r.id {
			return x, o, nil
		}
		x.close()
		err = vfs.ErrStale
	}
	f.leave(o.s)
	return x, o, notNoEnt(fail("open", err))
}
