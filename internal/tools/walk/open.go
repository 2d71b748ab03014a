package walk

import "github.com/nfsbox/nfsbox/vfs"

// objectID identifies a directory.
type objectID struct {
	fsid   [2]uint64
	fileID uint64
}

// openSet counts the directories that were entered and not left, by id and by handle. Only
// if it has a directory already are the directory's ancestors compared.
type openSet struct {
	ids     map[objectID]int
	handles map[vfs.Handle]int
}

func newOpenSet() openSet {
	return openSet{ids: make(map[objectID]int), handles: make(map[vfs.Handle]int)}
}

func (s openSet) has(d *Dir) bool {
	id, ok := d.id()
	return ok && s.ids[id] > 0 || s.handles[d.Handle] > 0
}

func (s openSet) add(d *Dir) {
	if id, ok := d.id(); ok {
		s.ids[id]++
	}
	s.handles[d.Handle]++
}

func (s openSet) remove(d *Dir) {
	if id, ok := d.id(); ok {
		if s.ids[id]--; s.ids[id] == 0 {
			delete(s.ids, id)
		}
	}
	if s.handles[d.Handle]--; s.handles[d.Handle] == 0 {
		delete(s.handles, d.Handle)
	}
}
