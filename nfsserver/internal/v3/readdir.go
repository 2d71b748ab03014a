package v3

import (
	"context"
	"fmt"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// readdir is procedure 16 (RFC 1813, section 3.3.16). The count bounds the whole
// result.
func readdir(ctx context.Context, q *request, a *nfs3.READDIR3args, p *page) error {
	h, err := a.Dir.VFS()
	if err != nil {
		return err
	}
	return q.list(ctx, &listing{
		dir: h, cookie: a.Cookie, verf: vfs.Verifier(a.Cookieverf), most: a.Count, nameBytes: a.Count,
	}, p)
}

// cookieError is a place in a listing that cannot be put into a cookie.
type cookieError struct{ cookie uint64 }

func (e *cookieError) Error() string {
	return fmt.Sprintf("cookie %#x of a listing cannot be sent", e.cookie)
}

// readdirplus is procedure 17 (RFC 1813, section 3.3.17). dircount bounds the
// names, fileids and cookies, maxcount the whole result.
func readdirplus(ctx context.Context, q *request, a *nfs3.READDIRPLUS3args, p *page) error {
	h, err := a.Dir.VFS()
	if err != nil {
		return err
	}
	p.plus = true
	return q.list(ctx, &listing{
		dir: h, cookie: a.Cookie, verf: vfs.Verifier(a.Cookieverf), most: a.Maxcount, nameBytes: a.Dircount,
	}, p)
}
