package v3

import (
	"context"
	"iter"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// ReadDir lists by READDIRPLUS (section 3.3.17) if handles or attributes are wanted, else by READDIR
// (section 3.3.16). It lists page by page, and decodes entries in place: an Entry is part of the
// reply. The next page is asked for when the consumer asks for a page's second entry. So a listing of
// any size takes the memory of two pages and of some names (see below), a directory of one page costs
// one call, and a caller that only wants to know whether there is an entry pays for one page. When the
// iteration has ended, in whatever way, no page is in flight.
//
// A page is never so small that it could hold no entry, whatever maxBytes is. Otherwise it is as large
// as the server is quick, up to maxBytes. A malformed page is a ReplyError before any entry of it is
// delivered.
//
// Names come as the server sent them. One that vfs.CheckName refuses, such as "../x", is delivered like
// any other, so that it does not hide later ones; a caller that uses names calls CheckName first. Only
// "." and ".." are left out. A server without READDIRPLUS gives names and file numbers alone, and so
// does one that cannot make a READDIRPLUS of this directory (finally TOOSMALL, JUKEBOX or
// SERVERFAULT).
//
// # Refused cookies
//
// A server may forget what its cookies mean (NFS3ERR_BAD_COOKIE). Before the first entry, the
// error is vfs.ErrBadCookie: only the caller knows what it has had before. Later the listing
// recovers:
//
//   - It asks for the last entry again, by the cookie before it and the verifier that a new
//     listing has now. If the entry comes first, with its old cookie, only the verifier had
//     changed, and the listing goes on. (Trying the last cookie itself would not do: a server
//     that counts entries accepts every number, and may mean another place by it.)
//   - Otherwise it begins again, and leaves out what was delivered. It remembers up to about a
//     million names (2^20) by 64-bit hashes. The order of the new listing does not matter then,
//     and the odds are better than a million to one that no entry is left out by mistake.
//   - Of more names, and in an iteration that did not begin at the zero Pos, it remembers some
//     landmarks, and the last 4096. It leaves out everything up to the last landmark, and the
//     names that it remembers after that. This needs a server that keeps its order, as servers
//     do that list by hash or by place on disk. It is checked: unless at least 16 landmarks are
//     met, all in the old order, the iteration ends with vfs.ErrBadCookie.
//
// So entries that exist throughout are delivered exactly once, or there is an error. A caller
// that continues from an Entry's Next in another iteration has this only if the server keeps its
// order. A server that refuses its own cookies repeatedly, without progress of the listing, is
// finally ErrBadCookie. The memory is 8 bytes a name, of all pages but the last, up to 8 MiB
// (twice that in a listing that had to begin again), and 64 KiB for more than 2^20 names.
func (f *FS) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		if err := checkHandle(&dir); err != nil {
			yield(nil, err)
			return
		}
		l := &listing{
			pager: newPager(f, dir, want, maxBytes), ctx: ctx, want: want, yield: yield,
			pos: from, before: from.Cookie, whole: from == vfs.Pos{}, loop: loopGuard{mark: from.Cookie},
		}
		defer l.stop()
		if err := l.run(); err != nil {
			yield(nil, err)
		}
	}
}

// listing is a running ReadDir. It belongs to the goroutine of the iteration. While the goroutine
// that fetches ahead runs, the pager and the page being fetched belong to that.
type listing struct {
	pager
	ahead ahead
	pages [2]page

	ctx   context.Context
	want  vfs.Mask
	yield func(*vfs.Entry, error) bool
	entry vfs.Entry
	err   error // found within a page

	pos    vfs.Pos // after the current entry
	before uint64  // the cookie before it
	whole  bool    // the listing began at the zero Pos
	empty  int     // pages in a row without an entry
	loop   loopGuard

	names   memory  // of delivered names
	hash    uint64  // of the current entry's name, except on the last page
	replay  *replay // not nil: the listing began again
	retried bool    // the last entry was asked for again, and none came after it
	barren  int     // restarts since the last delivered entry
}

// run delivers page by page until the directory ends or the consumer stops.
func (l *listing) run() error {
	for {
		p, err := l.next()
		if err != nil {
			return err
		}
		if err := l.progress(p); err != nil {
			p.release()
			return err
		}
		eof := p.eof // p is released below
		if more := l.page(p); !more || l.err != nil {
			return l.err
		}
		if eof {
			return l.replay.end()
		}
	}
}

// progress returns an error if the listing would be, after p, where it was before.
func (l *listing) progress(p *page) error {
	switch {
	case p.eof:
	case p.entries > 0:
		if l.empty = 0; l.loop.back(p.last) {
			return &ReplyError{Proc: p.proc(), Err: errLoop}
		}
	default:
		if l.empty++; l.empty > maxEmptyPages {
			return &ReplyError{Proc: p.proc(), Err: errEmpty}
		}
		l.grow()
	}
	return nil
}

// page delivers the entries of p and releases it. It returns false if the consumer has stopped, or
// after an error, which is l.err.
func (l *listing) page(p *page) bool {
	defer p.release()
	if p.entries > 0 {
		l.pos.Verf = p.verf
	}
	if p.plus {
		return l.entriesPlus(p)
	}
	return l.entries(p)
}

func (l *listing) entries(p *page) bool {
	var w nfs3.Entry3
	for i := 0; w.Next(&p.list); i++ {
		if !l.reached(p, i, w.Name, w.Cookie) {
			continue
		}
		l.entry.Attr, l.entry.Handle = vfs.Attr{}, vfs.Handle{}
		if !l.deliver(p, w.Name, w.Fileid) {
			return false
		}
	}
	return l.err == nil
}

// reached moves the listing to after the i'th entry of p and reports whether the entry is to be
// delivered.
func (l *listing) reached(p *page, i int, name []byte, cookie uint64) bool {
	if i < p.passed || l.err != nil {
		return false
	}
	if i == p.passed && l.replay != nil {
		l.lookAhead(p) // most of it will not be delivered
	}
	l.before, l.pos.Cookie = l.pos.Cookie, cookie
	l.retried = false
	if !p.eof || l.replay != nil {
		l.hash = l.names.hash(name)
	}
	if string(name) == "." || string(name) == ".." {
		return false
	}
	if l.replay != nil {
		var known bool
		if known, l.err = l.replay.known(l.hash); known || l.err != nil {
			return false
		}
	}
	if l.barren = 0; !p.eof {
		l.names.add(l.hash)
	}
	return true
}

// deliver yields the entry, whose attributes and handle are set, and looks ahead.
func (l *listing) deliver(p *page, name []byte, fileid uint64) bool {
	e := &l.entry
	e.Name, e.FileID, e.Next = name, fileid, l.pos
	if e.Attr.Valid == 0 && l.want&vfs.MaskFileID != 0 {
		e.Attr.Valid, e.Attr.FileID = vfs.MaskFileID, fileid
	}
	if !l.yield(e, nil) {
		return false
	}
	// A consumer that takes one entry (never "." or "..") and comes back for more will want
	// the next page.
	l.lookAhead(p)
	return true
}
