package v3

import (
	"bytes"
	"context"
	"log/slog"
	"math"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// Cookies on the wire. RFC 1813 leaves them to the server but for 0, the start;
// vfs does not list "." and "..", and its cookies may have any other value.
// Since neither Linux nor other clients make up the two entries by themselves
// (and programs that look for them exist), the server sends them first, under
// the cookies 1 and 2, and what the file system calls c goes out as c+2.
const (
	cookieStart  = 0
	cookieDot    = 1
	cookieDotDot = 2

	// maxCookie is the largest cookie of a file system that can be sent. An entry above
	// it ends the listing with an error: no listing could go on from it.
	maxCookie = math.MaxUint64 - cookieDotDot
)

// page is the result of READDIR and of READDIRPLUS, which differ in their
// entries alone. The generated results are lists of decoded entries; this one
// is encoded entry by entry, straight into the buffer from which it is sent.
type page struct {
	status  nfs3.Nfsstat3
	dir     nfs3.PostOpAttr
	verf    vfs.Verifier
	entries []byte
	eof     bool

	plus      bool
	found     bool // an entry of the file system is in entries
	room      int  // for entries
	nameBytes int  // for what READDIRPLUS counts as information on names

	entry     nfs3.Entry3
	entryPlus nfs3.Entryplus3
}

// Sizes of a result, in bytes: what stands around the entries if all of it is
// there (status, attributes with their flag, verifier, end of the list, eof)
// and what of an entry is information on its name, beside the name itself
// (fileid, length, cookie).
const (
	pageFrame = 4 + 4 + 84 + 8 + 4 + 4
	nameFrame = 8 + 4 + 8
)

func (p *page) Stat() *nfs3.Nfsstat3 { return &p.status }

func (p *page) AppendXDR(b []byte) ([]byte, error) {
	b, err := p.AppendHead(b)
	if err != nil || p.status != nfs3.NFS3_OK {
		return b, err
	}
	return p.AppendTail(append(b, p.entries...))
}

// AppendHead appends what stands before the entries: all of it, if the call
// failed.
func (p *page) AppendHead(b []byte) ([]byte, error) {
	b, err := p.dir.AppendXDR(xdr.AppendUint32(b, uint32(p.status)))
	if err != nil || p.status != nfs3.NFS3_OK {
		return b, err
	}
	return xdr.AppendFixed(b, p.verf[:]), nil
}

// Bulk is the entries, encoded. Their sizes are multiples of four.
func (p *page) Bulk() []byte { return p.entries }

// AppendTail appends the end of the list and whether it is that of the
// directory.
func (p *page) AppendTail(b []byte) ([]byte, error) {
	return xdr.AppendBool(xdr.AppendBool(b, false), p.eof), nil
}

// add appends an entry if there is room. The first one is added whatever it
// holds of information on names: a page without an entry would say that the
// client's limit is too small for any.
func (p *page) add(name []byte, cookie uint64, fileID uint64, attr *vfs.Attr, h *vfs.Handle) (bool, error) {
	before := len(p.entries)
	names := nameFrame + len(name) + xdr.Pad(len(name))
	if p.plus && before > 0 && names > p.nameBytes {
		return false, nil
	}
	b, err := p.encode(name, cookie, fileID, attr, h)
	if err != nil || len(b) > p.room {
		p.entries = p.entries[:before]
		return false, err
	}
	p.entries = b
	p.nameBytes -= names
	return true, nil
}

func (p *page) encode(name []byte, cookie uint64, fileID uint64, attr *vfs.Attr, h *vfs.Handle) ([]byte, error) {
	if !p.plus {
		p.entry.Fileid, p.entry.Name, p.entry.Cookie = fileID, name, cookie
		return p.entry.AppendNext(p.entries)
	}
	e := &p.entryPlus
	e.Fileid, e.Name, e.Cookie = fileID, name, cookie
	e.NameAttributes.SetAttr(attr)
	e.NameHandle.SetHandle(h)
	return e.AppendNext(p.entries)
}

// listing is what a client asks of READDIR or READDIRPLUS.
type listing struct {
	dir       vfs.Handle
	cookie    uint64
	verf      vfs.Verifier
	most      uint32 // bytes of the result
	nameBytes uint32 // bytes of information on names
}

func (q *request) list(ctx context.Context, l *listing, p *page) error {
	if l.most <= pageFrame {
		return vfs.ErrTooSmall
	}
	p.room = int(min(l.most, maxPage)) - pageFrame
	p.nameBytes = int(min(l.nameBytes, maxPage))
	// The attributes are from before the listing: while they do not change, a client
	// trusts its cached listing. Later ones would do so although a name was made too
	// late to be listed.
	attr, err := q.fs.GetAttr(ctx, l.dir, vfs.MaskV3)
	if err != nil {
		return err
	}
	p.dir.SetAttr(&attr)
	buf, err := q.lend(ctx, p.room+maxEntry)
	if err != nil {
		return err
	}
	p.entries = buf[:0]
	p.verf = l.verf
	if attr.Type == vfs.TypeDir {
		full, err := q.dots(ctx, l, p, &attr)
		if full || err != nil {
			return err
		}
	}
	if err := q.fill(ctx, l, p); err != nil {
		return err
	}
	if len(p.entries) == 0 && !p.eof {
		return vfs.ErrTooSmall
	}
	return nil
}

// dots adds "." and ".." to a page that begins before them.
func (q *request) dots(ctx context.Context, l *listing, p *page, attr *vfs.Attr) (full bool, err error) {
	if l.cookie == cookieStart {
		if ok, err := p.add([]byte("."), cookieDot, attr.FileID, attr, &l.dir); err != nil || !ok {
			return true, orTooSmall(err)
		}
	}
	if l.cookie > cookieDot {
		return false, nil
	}
	up, upAttr, _, err := q.fs.Lookup(ctx, l.dir, "..")
	if err != nil {
		// The caller may list but not look up. The number is then a guess that does
		// no harm, and the client asks for the rest.
		up, upAttr = vfs.Handle{}, vfs.Attr{FileID: attr.FileID}
	}
	ok, err := p.add([]byte(".."), cookieDotDot, upAttr.FileID, &upAttr, &up)
	if err == nil && !ok && len(p.entries) == 0 {
		err = vfs.ErrTooSmall
	}
	return !ok, err
}

func orTooSmall(err error) error {
	if err == nil {
		return vfs.ErrTooSmall
	}
	return err
}

// fill adds what the file system lists until the page is full or the directory
// ends. An error after the first entry only ends the page; the client gets it at the
// start of the next.
func (q *request) fill(ctx context.Context, l *listing, p *page) error {
	var from vfs.Pos
	if l.cookie > cookieDotDot {
		from = vfs.Pos{Cookie: l.cookie - cookieDotDot, Verf: l.verf}
	}
	var want vfs.Mask
	if p.plus {
		want = vfs.MaskV3 | vfs.MaskHandle
	}
	ask := uint32(max(min(p.room, p.nameBytes), minFill))
	for e, err := range q.fs.ReadDir(ctx, l.dir, from, want, ask) {
		if err == nil {
			var more bool
			if more, err = q.addEntry(p, e); err == nil && !more {
				return nil
			}
		}
		if err != nil {
			if p.found {
				return nil
			}
			return err
		}
	}
	p.eof = true
	return nil
}

// addEntry adds one entry and reports whether another may follow.
func (q *request) addEntry(p *page, e *vfs.Entry) (bool, error) {
	if len(e.Name) == 0 || len(e.Name) > vfs.MaxName || bytes.IndexByte(e.Name, '/') >= 0 || bytes.IndexByte(e.Name, 0) >= 0 {
		// No client could use the name, and it must not end the listing of others.
		q.srv.log.Warn("an entry that cannot be named is left out of a listing", slog.String("name", string(e.Name)))
		return true, nil
	}
	if e.Next.Cookie == 0 || e.Next.Cookie > maxCookie {
		return false, &cookieError{e.Next.Cookie}
	}
	if p.found && e.Next.Verf != p.verf {
		// One verifier goes with all cookies of a page.
		return false, nil
	}
	ok, err := p.add(e.Name, e.Next.Cookie+cookieDotDot, e.FileID, &e.Attr, &e.Handle)
	if ok {
		p.verf, p.found = e.Next.Verf, true
	}
	return ok, err
}
