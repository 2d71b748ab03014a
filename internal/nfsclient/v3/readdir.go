package v3

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// Readdir is procedure 16: a page of names (RFC 1813, section 3.3.16). The
// result's entries are a slice; [FS.ReadDir] makes none.
func (p *Procs) Readdir(ctx context.Context, args *nfs3.READDIR3args, res *nfs3.READDIR3res) (oncrpc.Reply, error) {
	return p.call(ctx, nfs3.NFSPROC3_READDIR, args, res)
}

// ReadDir asks for one page at a time, by READDIRPLUS if handles or attributes
// are wanted, else by READDIR, and decodes it in place: an Entry is part of the
// reply, and a listing of any size costs the memory of one page. maxBytes is the
// size of a page, but a page is never so small that it could hold no entry at
// all.
//
// Names come as the server sent them. One that vfs.CheckName refuses, such as
// "../x", is delivered like any other, so that it hides nothing that stands
// behind it; whoever uses names asks CheckName first. Only "." and ".." are left
// out. A server without READDIRPLUS gives names and file numbers alone.
func (f *FS) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		if err := checkHandle(&dir); err != nil {
			yield(nil, err)
			return
		}
		l := &listing{fs: f, dir: dir, pos: from, want: want, fixed: maxBytes != 0}
		l.plus = want&^vfs.MaskFileID != 0
		l.size = min(max(cmp.Or(maxBytes, f.opt.MaxCount, DefaultPage), minPage), maxPage)
		l.loop.mark = from.Cookie
		for more := true; more; {
			reply, err := l.fetch(ctx)
			if err == nil {
				more, err = l.deliver(reply, yield)
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// listing is a ReadDir under way.
type listing struct {
	fs    *FS
	dir   vfs.Handle
	pos   vfs.Pos // behind the last entry
	want  vfs.Mask
	plus  bool   // by READDIRPLUS
	size  uint32 // of a page
	fixed bool   // size is the caller's
	empty int    // pages in a row without an entry
	loop  loopGuard
	page  page
	entry vfs.Entry
}

func (l *listing) proc() *xdr.Proc {
	if l.plus {
		return nfs3.NFSPROC3_READDIRPLUS
	}
	return nfs3.NFSPROC3_READDIR
}

// page is the result of READDIR and READDIRPLUS, up to where they differ: the
// entries, which are decoded one by one.
type page struct {
	status nfs3.Nfsstat3
	verf   vfs.Verifier
	list   xdr.Decoder
}

// Stat is the status of the result.
func (p *page) Stat() *nfs3.Nfsstat3 { return &p.status }

// DecodeXDR takes the whole rest of the record for the entries; deliver finds
// out whether it is.
func (p *page) DecodeXDR(d *xdr.Decoder) error {
	p.status = nfs3.Nfsstat3(d.Int32())
	var dirAttr nfs3.PostOpAttr
	if err := dirAttr.DecodeXDR(d); err != nil || p.status != nfs3.NFS3_OK {
		return err
	}
	copy(p.verf[:], d.Fixed(len(p.verf)))
	p.list.Reset(d.Block(d.Len()))
	return d.Err()
}

// fetch gets the page behind pos.
func (l *listing) fetch(ctx context.Context) (oncrpc.Reply, error) {
	for {
		if l.plus && l.fs.noPlus.Load() {
			l.plus = false
		}
		reply, err := l.request(ctx)
		if err == nil {
			return reply, nil
		}
		reply.Release()
		switch {
		case l.plus && lacking(err):
			l.fs.noPlus.Store(true)
		case errors.Is(err, vfs.ErrTooSmall) && l.grow():
		default:
			return oncrpc.Reply{}, err
		}
	}
}

func (l *listing) request(ctx context.Context) (oncrpc.Reply, error) {
	if l.plus {
		return l.readdirplus(ctx)
	}
	args := nfs3.READDIR3args{
		Dir:        fh(&l.dir),
		Cookie:     l.pos.Cookie,
		Cookieverf: nfs3.Cookieverf3(l.pos.Verf),
		Count:      l.size,
	}
	return l.fs.do(ctx, nfs3.NFSPROC3_READDIR, &args, &l.page)
}

// lacking reports whether err says that the server does not have a procedure.
func lacking(err error) bool {
	if a, ok := errors.AsType[*oncrpc.AcceptError](err); ok {
		return a.Stat == oncrpc.ProcUnavail
	}
	return errors.Is(err, vfs.ErrNotSupp)
}

// grow makes the next page larger, if that is allowed.
func (l *listing) grow() bool {
	if l.fixed || l.size >= maxPage {
		return false
	}
	l.size = min(2*l.size, maxPage)
	return true
}

// deliver yields the entries of the page and gives the reply back. more says
// that another page follows.
func (l *listing) deliver(reply oncrpc.Reply, yield func(*vfs.Entry, error) bool) (more bool, err error) {
	defer reply.Release()
	n, done := 0, false
	if l.plus {
		n, done = l.entriesPlus(yield)
	} else {
		n, done = l.entries(yield)
	}
	if done {
		return false, nil
	}
	eof := l.page.list.Bool()
	if err := l.page.list.Finish(); err != nil {
		return false, &ReplyError{Proc: l.proc(), Err: err}
	}
	if eof {
		return false, nil
	}
	return true, l.progress(n)
}

// progress is an error if the listing, after a page of n entries, is where it
// was before.
func (l *listing) progress(n int) error {
	if n > 0 {
		l.empty = 0
		if l.loop.back(l.pos.Cookie) {
			return &ReplyError{Proc: l.proc(), Err: errLoop}
		}
		return nil
	}
	if l.empty++; l.empty > maxEmptyPages {
		return &ReplyError{Proc: l.proc(), Err: errEmpty}
	}
	l.grow()
	return nil
}

// entries yields the entries of a READDIR; done says that the consumer has
// enough.
func (l *listing) entries(yield func(*vfs.Entry, error) bool) (n int, done bool) {
	var w nfs3.Entry3
	for w.Next(&l.page.list) {
		n++
		l.entry.Attr, l.entry.Handle = vfs.Attr{}, vfs.Handle{}
		if !l.yield(w.Name, w.Fileid, w.Cookie, yield) {
			return n, true
		}
	}
	return n, false
}

// yield completes and delivers the entry.
func (l *listing) yield(name []byte, fileid, cookie uint64, yield func(*vfs.Entry, error) bool) bool {
	l.pos = vfs.Pos{Cookie: cookie, Verf: l.page.verf}
	if string(name) == "." || string(name) == ".." {
		return true
	}
	e := &l.entry
	e.Name, e.FileID, e.Next = name, fileid, l.pos
	if e.Attr.Valid == 0 && l.want&vfs.MaskFileID != 0 {
		e.Attr.Valid, e.Attr.FileID = vfs.MaskFileID, fileid
	}
	return yield(e, nil)
}

// loopGuard notices that a listing runs in circles, of whatever size, in
// constant memory: it remembers one place, and a later one after twice as many
// steps each time (R. P. Brent, "An improved Monte Carlo factorization
// algorithm", 1980).
type loopGuard struct {
	mark         uint64
	steps, limit uint64
}

// back reports whether the cookie, that of a page's last entry, is the one
// remembered.
func (g *loopGuard) back(cookie uint64) bool {
	if cookie == g.mark {
		return true
	}
	if g.steps++; g.steps > g.limit {
		g.mark, g.steps, g.limit = cookie, 0, 2*g.limit+1
	}
	return false
}
