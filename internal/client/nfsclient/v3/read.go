package v3

import (
	"context"
	"io"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

type readCall struct {
	args nfs3.READ3args
	res  nfs3.READ3res
}

// ReadAt is one READ (section 3.3.6), straight into p. An end of file that contradicts the size in the
// same reply is ignored: the caller goes on, and the next READ decides.
func (o *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	if err := o.use(vfs.ShareRead); err != nil {
		return 0, false, err
	}
	limits, err := o.fs.fsinfo(ctx)
	if err != nil {
		return 0, false, err
	}
	if p = p[:min(len(p), int(limits.ReadMax))]; len(p) == 0 {
		return 0, false, nil
	}
	c := o.fs.reads.get()
	defer o.fs.reads.put(c)
	c.args = nfs3.READ3args{File: fh(&o.h), Offset: off, Count: uint32(len(p))}
	c.res.Resok.Data = p
	reply, err := o.fs.do(ctx, nfs3.NFSPROC3_READ, &c.args, &c.res)
	defer reply.Release()
	if err != nil {
		setPost(post, &c.res.Resfail.FileAttributes)
		return 0, false, err
	}
	setPost(post, &c.res.Resok.FileAttributes)
	return checkRead(&c.res.Resok, len(p), off)
}

func checkRead(ok *nfs3.READ3resok, asked int, off uint64) (n int, eof bool, err error) {
	n = len(ok.Data)
	switch {
	case n > asked || uint64(ok.Count) != uint64(n):
		return 0, false, untrue(nfs3.NFSPROC3_READ, "count %d with %d bytes of data, and %d were asked for", ok.Count, n, asked)
	case n == 0 && !ok.Eof:
		return 0, false, &ReplyError{Proc: nfs3.NFSPROC3_READ, Err: io.ErrNoProgress}
	}
	a := &ok.FileAttributes
	more := a.AttributesFollow && n > 0 && a.Attributes.Size > off+uint64(n)
	return n, ok.Eof && !more, nil
}

// setPost sets *post to the attributes that came, unless post is nil.
func setPost(post *vfs.Attr, came *nfs3.PostOpAttr) {
	if post != nil {
		*post = came.VFS()
	}
}
