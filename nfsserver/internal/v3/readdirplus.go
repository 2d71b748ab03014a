package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// readdirplus is procedure 17 (RFC 1813, section 3.3.17). dircount bounds the
// names, fileids and cookies, maxcount the whole result.
func readdirplus(ctx context.Context, q *request, a *nfs3.READDIRPLUS3args, p *page) error {
	h, err := a.Dir.VFS()
	if err != nil {
		return err
	}
	p.plus = true
	return q.list(ctx, &listing{
		dir: h, cookie: a.Cookie, verf: vfs.Verifier(a.Cookieverf), most: a.Maxcount, names: a.Dircount,
	}, p)
}
