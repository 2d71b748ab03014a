package attrcache

import (
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// ask is a question, or a change: its ticket, and when it began.
type ask struct {
	seq uint64
	at  int64
}

// object is what is kept of an object.
type object struct {
	attr   vfs.Attr
	asked  ask      // for attr; zero: never
	wanted vfs.Mask // what was asked for then
	until  int64    // attr is believed until then
	life   int64    // how long attributes are believed now
	grown  int64    // when life last became longer, or the least

	changed  uint64 // what was asked for before this ticket is not entered
	changing int    // calls under way that change it
	stale    bool
	rights   []right
	hid      *vfs.Handle // the directory from which this client has removed it; nil: none

	// Of a directory.
	epoch      uint64
	namesUntil int64 // the names of the epoch are believed until then
	broken     bool  // the client's own changes hide those of others: the epoch is not extended
}

// right is what the server has told a caller of its rights.
type right struct {
	who            string
	asked, granted vfs.Access
	until          int64
}

// floors are tickets before which nothing is believed, since an object has changed that is not known.
type floors struct {
	files, dirs uint64
	hidden      uint64 // the last removal of an object that is not known
}

func (f *floors) of(t vfs.Type) uint64 {
	if t == vfs.TypeDir {
		return f.dirs
	}
	return f.files
}

// needed is what attributes must have to be kept.
const needed = vfs.MaskType | vfs.MaskMode | vfs.MaskNlink | vfs.MaskUID | vfs.MaskGID | vfs.MaskSize | vfs.MaskFileID |
	vfs.MaskMtime | vfs.MaskCtime

// same reports whether attributes are of one version of an object.
func same(a, b *vfs.Attr) bool {
	if a.Has(vfs.MaskChange) && b.Has(vfs.MaskChange) && a.Change != b.Change {
		return false
	}
	return a.Type == b.Type && a.Mode == b.Mode && a.Nlink == b.Nlink && a.UID == b.UID && a.GID == b.GID && a.Size == b.Size &&
		a.FileID == b.FileID && a.Mtime.Equal(b.Mtime) && a.Ctime.Equal(b.Ctime)
}

// precedes reports whether an object with attributes a is what an operation found.
func precedes(a *vfs.Attr, w *vfs.WCC) bool {
	b := &w.Before
	switch {
	case !w.Atomic:
		return false
	case b.Valid&vfs.MaskChange != 0 && a.Has(vfs.MaskChange):
		return a.Change == b.Change
	}
	const all = vfs.MaskSize | vfs.MaskMtime | vfs.MaskCtime
	return b.Valid&all == all && a.Size == b.Size && a.Mtime.Equal(b.Mtime) && a.Ctime.Equal(b.Ctime)
}

// now is the time since the FS was made.
func (s *shared) now() int64 { return int64(time.Since(s.base)) }

// ticket begins a question, or a change.
func (s *shared) ticket() ask {
	s.seq++
	return ask{s.seq, s.now()}
}

// object returns what is kept of h. If that is nothing, it may have been forgotten.
func (s *shared) object(h *vfs.Handle) *object {
	o, fresh := s.objects.make(h)
	if fresh {
		o.changed = s.evicted
	}
	return o
}

// least and most bound how long attributes are believed.
func (s *shared) least(t vfs.Type) int64 {
	if t == vfs.TypeDir {
		return int64(s.o.Times.DirMin)
	}
	return int64(s.o.Times.FileMin)
}

func (s *shared) most(t vfs.Type) int64 {
	if t == vfs.TypeDir {
		return int64(s.o.Times.DirMax)
	}
	return int64(s.o.Times.FileMax)
}

// quiet reports whether nothing that is going on, or was forgotten, speaks against what is kept of o.
func (s *shared) quiet(o *object) bool {
	return o.changing == 0 && !o.stale && o.asked.seq > s.floors.of(o.attr.Type)
}

// believed reports whether o's attributes are.
func (s *shared) believed(o *object, now int64) bool { return now < o.until && s.quiet(o) }

// attrOf are o's attributes, as far as they are believed.
func (s *shared) attrOf(o *object, now int64) (a vfs.Attr) {
	if o != nil && s.believed(o, now) {
		a = o.attr
	}
	return a
}

// orderly reports whether the answer to q, for an object of type t, may be entered: since q nothing has changed o
// here.
func (s *shared) orderly(o *object, t vfs.Type, q ask) bool {
	return o.changing == 0 && o.changed <= q.seq && s.floors.of(t) <= q.seq
}

// enter takes over attributes that came for q. It returns nil if they are not complete, or no news.
func (s *shared) enter(h *vfs.Handle, a *vfs.Attr, wanted vfs.Mask, q ask) *object {
	if !a.Has(needed) || h.IsZero() {
		return nil
	}
	o := s.object(h)
	if !s.orderly(o, a.Type, q) || o.asked.seq > q.seq {
		return nil
	}
	unchanged := o.asked.seq != 0 && same(&o.attr, a)
	switch {
	case !unchanged:
		o.life, o.grown = s.least(a.Type), q.at
		if !o.attr.Ctime.Equal(a.Ctime) {
			o.rights = nil
		}
	case q.at-o.grown >= o.life:
		o.life, o.grown = min(2*o.life, s.most(a.Type)), q.at
	}
	o.attr, o.asked, o.wanted, o.stale = *a, q, wanted, false
	o.until = q.at + o.life
	switch {
	case !unchanged || o.broken && q.at >= o.namesUntil:
		s.newEpoch(o)
	case !o.broken:
		o.namesUntil = max(o.namesUntil, o.until)
	}
	return o
}

// newEpoch forgets the names in o, and begins anew with the attributes that it has.
func (s *shared) newEpoch(o *object) {
	s.epochs++
	o.epoch, o.namesUntil, o.broken = s.epochs, o.until, false
}

// agree returns the object of h if what came with a, as an answer to q, is no older than what is kept.
func (s *shared) agree(h *vfs.Handle, a *vfs.Attr, q ask) *object {
	if o := s.enter(h, a, 0, q); o != nil {
		return o
	}
	o := s.objects.get(h)
	if o == nil || !a.Has(needed) || !s.orderly(o, a.Type, q) || !same(&o.attr, a) {
		return nil
	}
	return o
}

// forget has nothing believed of o, and nothing entered that was asked for before now.
func (s *shared) forget(o *object) {
	s.seq++
	o.changed, o.until, o.rights = s.seq, 0, nil
	s.newEpoch(o)
}

// renew has nothing believed of h that was asked for before q, but its names.
func (s *shared) renew(h *vfs.Handle, q ask) {
	o := s.object(h)
	o.changed, o.rights = max(o.changed, q.seq), nil
	if o.asked.seq < q.seq {
		o.until = 0
	}
}

// gone is called when the server says that h is stale.
func (s *shared) gone(h *vfs.Handle) {
	o := s.object(h)
	s.forget(o)
	o.stale = true
}

// permit takes note of rights on o that who was told as an answer to q.
func (o *object) permit(who string, asked, granted vfs.Access, q ask) {
	until := q.at + o.life
	old := -1
	for i := range o.rights {
		switch r := &o.rights[i]; {
		case r.who == who && q.at < r.until && r.asked&^asked != 0: // it says more than this answer
			r.granted = r.granted&^asked | granted&asked
			r.asked |= asked
			r.until = min(r.until, until)
			return
		case r.who == who:
			*r = right{who, asked, granted, until}
			return
		case old < 0 || r.until < o.rights[old].until:
			old = i
		}
	}
	if len(o.rights) < maxRights {
		o.rights = append(o.rights, right{who, asked, granted, until})
		return
	}
	o.rights[old] = right{who, asked, granted, until}
}

// may returns those of the rights in want that the caller has, if they are known.
func (o *object) may(who string, want vfs.Access, now int64) (granted vfs.Access, known bool) {
	for i := range o.rights {
		if r := &o.rights[i]; r.who == who {
			return r.granted & want, want&^r.asked == 0 && now < r.until
		}
	}
	return 0, false
}
