package place

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/dirfs"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// Above yields the attributes of the directories above the root of FS, from the nearest up, as far
// as they can be looked at; after Follow, of those above what that has opened. The FS itself does not
// show them: its root is its own "..". A snapshot has none.
func (p *Place) Above(ctx context.Context) iter.Seq[vfs.Attr] {
	switch {
	case p.snap != nil:
		return func(func(vfs.Attr) bool) {}
	case p.bucket != nil:
		return func(yield func(vfs.Attr) bool) { p.bucket.Above(yield) }
	case p.nfs != nil:
		return func(yield func(vfs.Attr) bool) { aboveMounted(ctx, p.nfs, yield) }
	case p.far != nil:
		p = p.far
	}
	return func(yield func(vfs.Attr) bool) { aboveLocal(ctx, p.dir, yield) }
}

// aboveLocal yields the directories above dir by their names: links are resolved first.
func aboveLocal(ctx context.Context, dir string, yield func(vfs.Attr) bool) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return
	}
	for up := filepath.Dir(dir); up != dir; dir, up = up, filepath.Dir(up) {
		a, err := attrOf(ctx, up)
		if err != nil || !yield(a) {
			return
		}
	}
}

func attrOf(ctx context.Context, dir string) (vfs.Attr, error) {
	f, err := dirfs.New(dir, dirfs.Options{})
	if err != nil {
		return vfs.Attr{}, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	_, a, err := f.Root(ctx)
	return a, err
}

// aboveMounted yields the directories above the mounted one, until the server's export ends: there
// it answers with an error, or with the same directory. The caller ends a climb without an end.
func aboveMounted(ctx context.Context, c *nfsbox.Client, yield func(vfs.Attr) bool) {
	raw := c.Raw()
	for h := raw.Root; ; {
		up, err := lookUp(ctx, &raw, h)
		if err != nil || up == h {
			return
		}
		a, err := c.FS().GetAttr(ctx, up, vfs.MaskV3)
		if err != nil || !yield(a) {
			return
		}
		h = up
	}
}

// lookUp is LOOKUP of "..", which the client's own Lookup does not send for its root.
func lookUp(ctx context.Context, raw *nfsbox.Raw, dir vfs.Handle) (up vfs.Handle, err error) {
	args := nfs3.LOOKUP3args{What: nfs3.Diropargs3{Dir: nfs3.NfsFh3{Data: dir.Bytes()}, Name: []byte("..")}}
	var res nfs3.LOOKUP3res
	reply, err := raw.RPC.Call(ctx, nfs3.NFSPROC3_LOOKUP, raw.Auth, &args, &res)
	if err != nil {
		return up, err
	}
	defer reply.Release()
	if res.Status != nfs3.NFS3_OK {
		return up, fmt.Errorf("lookup of \"..\": %v", res.Status)
	}
	return res.Resok.Object.VFS()
}
