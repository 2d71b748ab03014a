package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// Readdirplus is procedure 17: a page of names with handles and attributes (RFC
// 1813, section 3.3.17). The result's entries are a slice; [FS.ReadDir] makes
// none.
func (p *Procs) Readdirplus(ctx context.Context, args *nfs3.READDIRPLUS3args, res *nfs3.READDIRPLUS3res) (oncrpc.Reply, error) {
	return p.call(ctx, nfs3.NFSPROC3_READDIRPLUS, args, res)
}

func (l *listing) readdirplus(ctx context.Context) (oncrpc.Reply, error) {
	args := nfs3.READDIRPLUS3args{
		Dir:        fh(&l.dir),
		Cookie:     l.pos.Cookie,
		Cookieverf: nfs3.Cookieverf3(l.pos.Verf),
		Dircount:   l.size,
		Maxcount:   l.size,
	}
	if l.fs.opt.DirCount != 0 {
		args.Dircount = min(args.Dircount, l.fs.opt.DirCount)
	}
	return l.fs.do(ctx, nfs3.NFSPROC3_READDIRPLUS, &args, &l.page)
}

// entriesPlus yields the entries of a READDIRPLUS; done says that the consumer
// has enough. A handle of a size that none has counts as not sent.
func (l *listing) entriesPlus(yield func(*vfs.Entry, error) bool) (n int, done bool) {
	var w nfs3.Entryplus3
	for w.Next(&l.page.list) {
		n++
		l.entry.Attr, l.entry.Handle = vfs.Attr{}, vfs.Handle{}
		if l.want&^vfs.MaskHandle != 0 && w.NameAttributes.AttributesFollow {
			w.NameAttributes.Attributes.SetVFS(&l.entry.Attr)
		}
		if l.want&vfs.MaskHandle != 0 {
			if h, err := w.NameHandle.VFS(); err == nil {
				l.entry.Handle = h
			}
		}
		if !l.yield(w.Name, w.Fileid, w.Cookie, yield) {
			return n, true
		}
	}
	return n, false
}
