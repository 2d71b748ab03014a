package bench

import (
	"context"
	"errors"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// listVerb lists the directory that the URL names, a page an operation. It is
// measured below the file system, which would hide where a page ends.
var listVerb = verb{name: "list", size: 128 << 10, count: 1000, start: startList, calls: [2][]string{{"READDIR", "READDIRPLUS"}}}

type listWork struct{ *mount }

func startList(ctx context.Context, o *Options) (work, error) {
	m, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	if t := m.target.Attr.Type; t != vfs.TypeDir {
		return nil, errors.Join(usage("%s is a %s: name a directory to list", o.URL, t), m.client.Close())
	}
	return &listWork{m}, nil
}

func (w *listWork) caller(context.Context, int) (caller, error) {
	c := &listCaller{raw: w.client.Raw(), dir: w.target.Handle}
	size := uint32(w.o.Size)
	if c.names = w.o.Names; c.names {
		c.args = &nfs3.READDIR3args{Dir: nfs3.NfsFh3{Data: c.dir.Bytes()}, Count: size}
		return c, nil
	}
	c.argsPlus = &nfs3.READDIRPLUS3args{Dir: nfs3.NfsFh3{Data: c.dir.Bytes()}, Dircount: size, Maxcount: size}
	return c, nil
}

// listCaller lists the directory from its beginning to its end, again and again.
type listCaller struct {
	plain
	raw   nfsbox.Raw
	dir   vfs.Handle
	names bool // by READDIR

	args     *nfs3.READDIR3args     // of READDIR
	argsPlus *nfs3.READDIRPLUS3args // of READDIRPLUS
	page     listPage
}

// errEmptyPage is a reply that neither ends the listing nor carries it on.
var errEmptyPage = errors.New("a page without entries that is not the last")

func (c *listCaller) op(ctx context.Context) (moved, error) {
	proc, args := nfs3.NFSPROC3_READDIRPLUS, xdr.Appender(c.argsPlus)
	if c.names {
		proc, args = nfs3.NFSPROC3_READDIR, c.args
	}
	c.page = listPage{names: c.names}
	reply, err := c.raw.RPC.Call(ctx, proc, c.raw.Auth, args, &c.page)
	reply.Release()
	switch {
	case err != nil:
	case c.page.status != nfs3.NFS3_OK:
		err = vfs.Status(c.page.status)
	case c.page.entries == 0 && !c.page.eof:
		err = errEmptyPage
	}
	// After its end, or a failure such as NFS3ERR_BAD_COOKIE, a listing begins
	// anew.
	next, verf := c.page.cookie, c.page.verf
	if err != nil || c.page.eof {
		next, verf = 0, nfs3.Cookieverf3{}
	}
	if c.names {
		c.args.Cookie, c.args.Cookieverf = next, verf
	} else {
		c.argsPlus.Cookie, c.argsPlus.Cookieverf = next, verf
	}
	return moved{entries: c.page.entries - c.page.dots}, err
}

// listPage is the result of READDIR or READDIRPLUS. Its entries are decoded, and
// no more than counted.
type listPage struct {
	names   bool // of READDIR
	status  nfs3.Nfsstat3
	verf    nfs3.Cookieverf3
	entries uint64
	dots    uint64 // of them, "." and ".."
	cookie  uint64 // of the last
	eof     bool

	attr nfs3.PostOpAttr
	name nfs3.Entry3
	plus nfs3.Entryplus3
}

// DecodeXDR decodes READDIR3res or READDIRPLUS3res.
func (p *listPage) DecodeXDR(d *xdr.Decoder) error {
	p.status = nfs3.Nfsstat3(d.Int32())
	if err := p.attr.DecodeXDR(d); err != nil || p.status != nfs3.NFS3_OK {
		return err
	}
	copy(p.verf[:], d.Fixed(len(p.verf)))
	if p.names {
		for p.name.Next(d) {
			p.count(p.name.Name, p.name.Cookie)
		}
	} else {
		for p.plus.Next(d) {
			p.count(p.plus.Name, p.plus.Cookie)
		}
	}
	p.eof = d.Bool()
	return d.Err()
}

func (p *listPage) count(name []byte, cookie uint64) {
	p.entries++
	p.cookie = cookie
	if string(name) == "." || string(name) == ".." {
		p.dots++
	}
}
