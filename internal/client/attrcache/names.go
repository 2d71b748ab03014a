package attrcache

import (
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

// nameKey is a name in a directory, in lower case.
type nameKey struct {
	dir    vfs.Handle
	folded string
}

// name is what a name leads to.
type name struct {
	exact string
	h     vfs.Handle // zero: there is no such name
	epoch uint64     // of the directory
	until int64
}

// keyOf is where a name is kept. The key borrows the name.
func keyOf(dir *vfs.Handle, called string) nameKey { return nameKey{*dir, strings.ToLower(called)} }

// known returns what a name leads to, if that is believed.
func (s *shared) known(dir *vfs.Handle, called string, now int64) (h vfs.Handle, known bool) {
	d := s.objects.get(dir)
	if d == nil || now >= d.namesUntil || !s.quiet(d) {
		return h, false
	}
	k := keyOf(dir, called)
	n := s.names.get(&k)
	if n == nil || n.exact != called || n.epoch != d.epoch || now >= n.until {
		return h, false
	}
	if !n.h.IsZero() {
		if o := s.objects.get(&n.h); o != nil && o.stale {
			return h, false
		}
	}
	return n.h, true
}

// lookup answers a LOOKUP by who, if what is known does. Else q is the question to the FS below.
func (s *shared) lookup(dir vfs.Handle, called, who string) (h vfs.Handle, attr, dirAttr vfs.Attr, known bool, q ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.count(known) }()
	q = s.ticket()
	if s.o.Names == NamesNone {
		return h, attr, dirAttr, false, q
	}
	if h, known = s.known(&dir, called, q.at); !known {
		return h, attr, dirAttr, false, q
	}
	d := s.objects.get(&dir)
	if granted, known := d.may(who, vfs.AccessLookup, q.at); !known || granted == 0 {
		return h, attr, dirAttr, false, q
	}
	if !h.IsZero() {
		attr = s.attrOf(s.objects.get(&h), q.at)
	}
	return h, attr, s.attrOf(d, q.at), true, q
}

// found takes over the answer to a LOOKUP by who. h is zero if there is no such name.
func (s *shared) found(dir vfs.Handle, called, who string, h vfs.Handle, attr, dirAttr *vfs.Attr, q ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(&h, attr, 0, q)
	d := s.agree(&dir, dirAttr, q)
	if d == nil {
		s.unname(&dir, called)
		return
	}
	d.permit(who, vfs.AccessLookup, vfs.AccessLookup, q)
	s.name(d, &dir, called, &h, q)
}

// name keeps that a name in d, which is dir's, leads to h, or to nothing, as was said to q.
func (s *shared) name(d *object, dir *vfs.Handle, called string, h *vfs.Handle, q ask) {
	if s.o.Names == NamesNone || h.IsZero() && s.o.Names != NamesAll || vfs.CheckName(called) != nil || q.at >= d.namesUntil {
		s.unname(dir, called)
		return
	}
	k := keyOf(dir, called)
	n := s.names.get(&k)
	if n == nil {
		k.folded = strings.Clone(k.folded) // the name may be a piece of something long
		n, _ = s.names.make(&k)
	}
	if n.exact != called {
		n.exact = strings.Clone(called)
	}
	n.h, n.epoch, n.until = *h, d.epoch, q.at+int64(s.o.Times.DirMax)
}

// unname forgets a name.
func (s *shared) unname(dir *vfs.Handle, called string) {
	k := keyOf(dir, called)
	s.names.drop(&k)
}

// listing is a listing under way.
type listing struct {
	dir   vfs.Handle
	q     ask
	epoch uint64 // of the directory's names when it began; 0: none
}

func (s *shared) list(dir vfs.Handle) listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := listing{dir: dir, q: s.ticket()}
	if d := s.objects.get(&dir); d != nil && s.quiet(d) && l.q.at < d.namesUntil {
		l.epoch = d.epoch
	}
	return l
}

// listed takes over an entry. Pages may have been asked for at any time since the listing began. The name counts if
// the directory is still of the epoch in which it began.
func (s *shared) listed(l *listing, e *vfs.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(&e.Handle, &e.Attr, 0, l.q)
	d := s.objects.get(&l.dir)
	if d != nil && l.epoch != 0 && d.epoch == l.epoch && s.orderly(d, vfs.TypeDir, l.q) {
		s.name(d, &l.dir, string(e.Name), &e.Handle, l.q)
	}
}
