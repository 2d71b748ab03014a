package v3

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// recover fills p with the page to continue with, after a page was refused with vfs.ErrBadCookie;
// cause is that error.
func (l *listing) recover(p *page, cause error) error {
	if l.pos.Cookie == l.before {
		return cause // no entry was delivered yet
	}
	if !l.retried && l.before != 0 {
		l.retried = true
		if ok, err := l.retry(p); ok || err != nil {
			return err
		}
	}
	return l.restart(p, cause)
}

// retry asks for the last entry once more, with the verifier that a new listing has. It returns false
// if another entry comes, or none.
func (l *listing) retry(p *page) (bool, error) {
	for range maxRetries {
		fresh := l.pager
		fresh.size, fresh.plus = min(fresh.size, smallPage), false
		if err := fresh.fetch(l.ctx, vfs.Pos{}, p); err != nil {
			return false, err
		}
		at := vfs.Pos{Cookie: l.before, Verf: p.verf}
		p.release()
		err := l.fetch(l.ctx, at, p)
		if errors.Is(err, vfs.ErrBadCookie) {
			continue // in a busy directory the verifier may have changed again
		}
		if err != nil {
			return false, err
		}
		if !l.repeated(p) {
			p.release()
			return false, nil
		}
		p.passed = 1
		l.loop = loopGuard{mark: at.Cookie}
		return true, nil
	}
	return false, nil
}

// repeated reports whether p begins with the last entry.
func (l *listing) repeated(p *page) bool {
	d := p.list // p's own stays where it is
	if p.plus {
		var w nfs3.Entryplus3
		return w.Next(&d) && w.Cookie == l.pos.Cookie && l.names.hash(w.Name) == l.hash
	}
	var w nfs3.Entry3
	return w.Next(&d) && w.Cookie == l.pos.Cookie && l.names.hash(w.Name) == l.hash
}

// still reports whether p, a page of names, ends where it should begin. So does every page but the
// first of a server whose READDIR ignores the cookie.
func (l *listing) still(p *page) bool {
	return !p.plus && !p.eof && p.entries > 0 && p.last == l.pos.Cookie && !l.fs.noPlus.Load()
}

// plusInstead fills p by READDIRPLUS: a server whose READDIR runs in circles may list correctly by the
// procedure that its author's own client uses.
func (l *listing) plusInstead(p *page) error {
	cause := &ReplyError{Proc: p.proc(), Err: errLoop}
	p.release()
	l.plus = true
	if err := l.restart(p, cause); err != nil || p.plus {
		return err
	}
	p.release()
	return cause // there is no READDIRPLUS
}

// restart goes back to the beginning of the directory.
func (l *listing) restart(p *page, cause error) error {
	if l.barren++; l.barren > maxBarren {
		return fmt.Errorf("the listing has begun again %d times and got no further: %w", maxBarren, cause)
	}
	if l.replay = l.names.replay(l.whole); l.replay == nil {
		return fmt.Errorf("of a listing that did not begin at the beginning, only %d entries are known: %w", l.names.n, cause)
	}
	l.pos, l.before, l.loop = vfs.Pos{}, 0, loopGuard{}
	if l.barren > 1 {
		l.size = min(2*l.size, l.most) // the larger the pages, the fewer cookies are needed
	}
	return l.fetch(l.ctx, l.pos, p)
}

// replay recognises, in a listing that began again, what was delivered before.
type replay struct {
	all []uint64 // the hashes of all names that were delivered, ascending; or

	place map[uint64]int // of landmarks: their positions
	tail  int            // from this position on, they are the last names delivered
	last  int            // the position that was met last
	met   int
	found bool // from here on, unknown names are new
}

// replay prepares for a listing's second beginning. It returns nil if too little is known. whole says
// that everything before the last name was delivered.
func (m *memory) replay(whole bool) *replay {
	if all, ok := m.all(); ok && whole {
		return &replay{all: all}
	}
	marks, tail := m.landmarks()
	if len(marks) < minOrder {
		return nil
	}
	r := &replay{place: make(map[uint64]int, len(marks)), tail: tail}
	for i, hash := range marks {
		r.place[hash] = i
	}
	return r
}

// known reports whether a name was delivered before, and is to be left out.
func (r *replay) known(hash uint64) (bool, error) {
	if r.place == nil {
		_, known := slices.BinarySearch(r.all, hash)
		return known, nil
	}
	at, ok := r.place[hash]
	if !ok {
		return !r.found, nil
	}
	if at < r.last {
		return false, fmt.Errorf("the listing began again, and the server has changed its order: %w", vfs.ErrBadCookie)
	}
	r.last = at
	if r.met++; at >= r.tail && r.met >= minOrder {
		r.found = true
	}
	return true, nil
}

// end returns an error if the directory ended before the position up to which entries were delivered.
// A nil replay returns none.
func (r *replay) end() error {
	if r == nil || r.place == nil || r.found {
		return nil
	}
	return fmt.Errorf("the listing began again, and none of the last %d names is there: %w", maxRing, vfs.ErrBadCookie)
}
