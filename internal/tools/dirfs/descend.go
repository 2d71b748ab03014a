package dirfs

import (
	"errors"

	"github.com/nfsbox/nfsbox/vfs"
)

// pin opens the directory s, which the caller holds, and keeps it open until unpin.
func (f *FS) pin(s *slot) (*hostDir, error) {
	t := &f.slots
	if d := t.pinOpen(s); d != nil {
		return d, nil
	}
	t.tree.RLock()
	defer t.tree.RUnlock()
	return f.pinIn(s)
}

// pinIn is pin for a caller that has locked tree for reading.
func (f *FS) pinIn(s *slot) (*hostDir, error) {
	t := &f.slots
	if d := t.pinOpen(s); d != nil {
		return d, nil
	}
	if d := t.fromBelow(s); d != nil {
		return d, nil
	}
	chain := t.chain(s)
	at := chain[len(chain)-1]
	for i := len(chain) - 2; i >= 0; i-- {
		next := chain[i]
		d, err := at.dir.sub(next.name)
		if err == nil {
			err = next.is(d)
		}
		if err != nil {
			t.unpin(at)
			return nil, notNoEnt(fail("open", err))
		}
		t.install(next, d)
		t.unpin(at)
		at = next
	}
	return at.dir, nil
}

// is checks that d is the directory s. If not, it closes d.
func (s *slot) is(d *hostDir) error {
	var st stat
	err := d.self(&st)
	if err == nil && st.id() != s.id {
		err = vfs.ErrStale
	}
	if err != nil {
		d.close()
	}
	return err
}

// notNoEnt makes ErrStale of an error that says that the directory is missing, so that it is
// not taken for a missing name in it.
func notNoEnt(err error) error {
	if errors.Is(err, vfs.ErrNoEnt) || errors.Is(err, vfs.ErrNotDir) || errors.Is(err, vfs.ErrInval) {
		return vfs.ErrStale
	}
	return err
}

// pinOpen pins s if it is open.
func (t *slots) pinOpen(s *slot) *hostDir {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pinLocked(s)
}

func (t *slots) pinLocked(s *slot) *hostDir {
	if s.dir == nil {
		return nil
	}
	s.pins++
	if s.idle != nil {
		t.open.Remove(s.idle)
		s.idle = nil
	}
	return s.dir
}

// fromBelow opens s through ".." of an open directory in it: on the way up out of a deep tree
// nothing else may be open. It returns nil if ".." is another directory.
func (t *slots) fromBelow(s *slot) *hostDir {
	t.mu.Lock()
	below := s.below
	if below == nil || t.pinLocked(below) == nil {
		t.mu.Unlock()
		return nil
	}
	t.mu.Unlock()
	defer t.unpin(below)
	d, err := below.dir.up()
	if err != nil || s.is(d) != nil {
		return nil
	}
	t.install(s, d)
	return s.dir
}

// chain returns s and the directories above it, up to the first open one, which it pins. The
// caller has locked tree.
func (t *slots) chain(s *slot) []*slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	chain := []*slot{s}
	for t.pinLocked(s) == nil {
		s = s.parent
		chain = append(chain, s)
	}
	return chain
}

// install makes d the open directory of s, and pins it.
func (t *slots) install(s *slot, d *hostDir) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opens++
	if s.dir != nil { // another call was first
		d.close()
	} else {
		s.dir = d
	}
	t.pinLocked(s)
	if s.parent != nil && !s.lost {
		s.parent.below = s
	}
}

// unpin ends the use of an open directory.
func (t *slots) unpin(s *slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.pins--; s.pins > 0 || s.dir == nil {
		return
	}
	s.idle = t.open.PushBack(s)
	if s.lost {
		t.closeIdle(s)
	}
	for t.open.Len() > t.maxIdle {
		t.closeIdle(t.open.Front().Value.(*slot))
	}
}

// leave ends the work in a directory that is held and pinned.
func (f *FS) leave(s *slot) {
	f.slots.unpin(s)
	f.slots.drop(s)
}

// enter opens the directory of handle h for a call. leave ends its use.
func (f *FS) enter(h vfs.Handle) (*slot, *hostDir, error) {
	r, err := parse(h)
	if err != nil {
		return nil, nil, err
	}
	s, err := f.dirSlot(&r)
	if err != nil {
		return nil, nil, err
	}
	d, err := f.pin(s)
	if err != nil {
		f.slots.drop(s)
		return nil, nil, err
	}
	return s, d, nil
}

// dirSlot returns the slot of r's directory, held.
func (f *FS) dirSlot(r *ref) (*slot, error) {
	t := &f.slots
	if r.kind != vfs.TypeDir {
		o, err := f.object(r)
		if err != nil {
			return nil, err // gone
		}
		f.leave(o.s)
		return nil, vfs.ErrNotDir
	}
	if s := t.find(r); s != nil {
		return s, nil
	}
	// It may have been moved away from where the handle says. While tree is locked it stays
	// put, and once its slot is known a rename updates that.
	t.tree.RLock()
	defer t.tree.RUnlock()
	o, err := f.objectIn(r)
	if err != nil {
		return nil, err
	}
	defer f.leave(o.s)
	s, made, err := t.add(r, o.s, o.name)
	if made && f.o.OneFileSystem && r.id.mount != o.s.id.mount {
		s.empty = true
		f.mounts.Add(1)
	}
	return s, err
}
