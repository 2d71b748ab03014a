package nfsserver_test

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/vfs"
)

// notes is a file system of one directory that nobody changes: names, and their texts.
// The handle of the directory is 0, and of the notes 1, 2, 3.
type notes struct {
	vfs.ReadOnly
	names, texts []string
}

func (n *notes) attr(ctx context.Context, h vfs.Handle) (i int, a vfs.Attr, err error) {
	b := h.Bytes()
	if len(b) != 1 || int(b[0]) > len(n.names) {
		return 0, a, vfs.ErrBadHandle
	}
	a = vfs.Attr{Valid: vfs.MaskV3, Type: vfs.TypeDir, Mode: 0o555, Nlink: 2, FileID: uint64(b[0]) + 1}
	if i = int(b[0]); i > 0 {
		a.Type, a.Mode, a.Nlink, a.Size = vfs.TypeReg, 0o444, 1, uint64(len(n.texts[i-1]))
	}
	return i, a, ctx.Err()
}

func (n *notes) As(*vfs.Caller) vfs.FS { return n } // the same for all

func (n *notes) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	h, _ := vfs.MakeHandle([]byte{0}) // one byte always fits
	_, a, err := n.attr(ctx, h)
	return h, a, err
}

func (n *notes) GetAttr(ctx context.Context, h vfs.Handle, _ vfs.Mask) (vfs.Attr, error) {
	_, a, err := n.attr(ctx, h)
	return a, err
}

func (n *notes) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, d vfs.Attr, err error) {
	i, d, err := n.attr(ctx, dir)
	found := slices.Index(n.names, name) + 1 // ".." is the directory itself
	switch {
	case err == nil && i != 0:
		err = vfs.ErrNotDir
	case err == nil && found == 0 && name != "..":
		err = vfs.ErrNoEnt
	case err == nil:
		h, err = vfs.MakeHandle([]byte{byte(found)})
		_, a, _ = n.attr(ctx, h)
	}
	return h, a, d, err
}

func (n *notes) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	o, err := vfs.Readable(ctx, n, at, how)
	if err != nil {
		return nil, o, err
	}
	text := n.texts[o.Attr.FileID-2]
	return vfs.ReaderFile(strings.NewReader(text), o.Attr), o, nil
}

func (n *notes) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, _ vfs.Mask, _ uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		if i, _, err := n.attr(ctx, dir); err != nil || i != 0 {
			yield(nil, cmp.Or(err, error(vfs.ErrNotDir)))
			return
		}
		for i, more := from.Cookie+1, true; more && i <= uint64(len(n.names)); i++ {
			more = yield(&vfs.Entry{Name: []byte(n.names[i-1]), FileID: i + 1, Next: vfs.Pos{Cookie: i}}, nil)
		}
	}
}

// Serve a file system of one's own.
func ExampleServe_ownFileSystem() {
	tree := &notes{names: []string{"ants", "bees"}, texts: []string{"They walk.\n", "They fly.\n"}}
	read(export.Export{Path: "/", FS: tree}, "bees")
	// Output: They fly.
}
