// Command ours drives nfsbox as a program would use it: Dial, FS, File.
package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/compare/clients/drive"
	"github.com/nfsbox/nfsbox/vfs"
)

type client struct {
	ctx  context.Context
	c    *nfsbox.Client
	fs   vfs.FS
	h    vfs.Handle
	attr vfs.Attr
	file vfs.File
}

func main() { drive.Main(dial) }

func dial(t *drive.Task) (drive.Client, error) {
	ctx, cancel := context.WithCancel(context.Background()) // as a real caller's: it can end
	_ = cancel
	c, err := nfsbox.Dial(ctx, t.URL, nfsbox.WithLocalIO(nfsbox.LocalIOOff))
	if err != nil {
		return nil, err
	}
	o := &client{ctx: ctx, c: c, fs: c.FS()}
	root, _, err := o.fs.Root(ctx)
	if err != nil {
		return nil, err
	}
	if o.h, o.attr, _, err = o.fs.Lookup(ctx, root, strings.Trim(t.Name, "/")); err != nil {
		return nil, err
	}
	if t.Op == "read" {
		o.file, _, err = o.fs.Open(ctx, vfs.At{H: o.h}, &vfs.OpenHow{Access: vfs.ShareRead})
	}
	return o, err
}

func (o *client) Size() int64 { return int64(o.attr.Size) }

func (o *client) Getattr() error {
	_, err := o.fs.GetAttr(o.ctx, o.h, vfs.MaskV3)
	return err
}

func (o *client) Read(p []byte, off int64) error {
	n, _, err := vfs.ReadFull(o.ctx, o.file, p, uint64(off))
	if err == nil && n < len(p) {
		err = fmt.Errorf("%d of %d bytes read", n, len(p))
	}
	return err
}

func (o *client) List() (n int, err error) {
	for _, err := range o.fs.ReadDir(o.ctx, o.h, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (o *client) Close() error {
	if o.file != nil {
		if err := o.file.Close(o.ctx); err != nil {
			return err
		}
	}
	return o.c.Close()
}
