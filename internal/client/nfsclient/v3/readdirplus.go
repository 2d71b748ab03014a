package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

func (g *pager) readdirplus(ctx context.Context, pos vfs.Pos, p *page) (oncrpc.Reply, error) {
	args := nfs3.READDIRPLUS3args{
		Dir:        fh(&g.dir),
		Cookie:     pos.Cookie,
		Cookieverf: nfs3.Cookieverf3(pos.Verf),
		Dircount:   g.size,
		Maxcount:   g.size,
	}
	if g.fs.opt.DirCount != 0 {
		args.Dircount = min(args.Dircount, g.fs.opt.DirCount)
	}
	return g.fs.doWaiting(ctx, nfs3.NFSPROC3_READDIRPLUS, &args, p, wait{most: plusBusy})
}

// entriesPlus delivers the entries of a READDIRPLUS, as entries does. A handle of an invalid size
// counts as not sent.
func (l *listing) entriesPlus(p *page) bool {
	attrs, handles := l.want&^vfs.MaskHandle != 0, l.want&vfs.MaskHandle != 0
	var w nfs3.Entryplus3
	for i := 0; w.Next(&p.list); i++ {
		if !l.reached(p, i, w.Name, w.Cookie) {
			continue
		}
		e := &l.entry
		if attrs && w.NameAttributes.AttributesFollow {
			w.NameAttributes.Attributes.SetVFS(&e.Attr)
		} else {
			e.Attr = vfs.Attr{}
		}
		if handles && w.NameHandle.HandleFollows {
			setHandle(&e.Handle, w.NameHandle.Handle.Data)
		} else {
			e.Handle = vfs.Handle{}
		}
		if !l.deliver(p, w.Name, w.Fileid) {
			return false
		}
	}
	return l.err == nil
}

// setHandle sets h to the handle with these bytes, or to zero if their number is invalid. The handles
// in a directory mostly have one length; then only that much is copied.
func setHandle(h *vfs.Handle, b []byte) {
	if old := h.Bytes(); len(b) > 0 && len(old) == len(b) {
		copy(old, b)
		return
	}
	*h, _ = vfs.MakeHandle(b) // zero after an error
}
