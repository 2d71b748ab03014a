package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/vfs"
)

type catCmd struct {
	Places []string `arg:"" name:"PLACE" help:"Files to write: paths or nfs://host/export/path."`
	clientFlags
}

func (*catCmd) Help() string {
	return `Writes the files to standard output, one after the other, byte for byte. A file that fails is
reported and the rest goes on; what has been written of it stays written.

  nfsbox cat nfs://filer/export/etc/motd`
}

// catBuffer is how much cat reads at once, in bytes.
const catBuffer = 1 << 20

func (c *catCmd) Run(e *env) error {
	po, err := c.place(true)
	if err != nil {
		return err
	}
	defer c.print(e)
	buf := make([]byte, catBuffer)
	return eachPlace(e, c.Places, false, po, func(out *output, p *place.Place) error {
		defer c.count(p)
		r, err := p.Resolve(e.ctx, true)
		if err != nil {
			return err
		}
		if r.Attr.Type != vfs.TypeReg {
			return fmt.Errorf("%s is a %s, not a file", p.Text, r.Attr.Type)
		}
		if !place.IsURL(p.Text) {
			r.Attr.Size = 0 // the kernel knows where a local file ends; in /sys st_size does not say
		}
		if err := cat(e.ctx, out, p.FS, r, buf); err != nil {
			return fmt.Errorf("%s: %w", p.Text, err)
		}
		return nil
	})
}

// cat writes one file to out. If the file ends before its size, cat reads once more; if nothing
// comes, that is an error.
func cat(ctx context.Context, out *output, fsys vfs.FS, r vfs.Resolved, buf []byte) (err error) {
	f, _, err := fsys.Open(ctx, vfs.At{H: r.Handle}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(ctx)) }()
	early := false // the last read ended before the size
	for off := uint64(0); ; {
		n, eof, err := vfs.ReadFull(ctx, f, buf, off)
		if _, werr := out.w.Write(buf[:n]); werr != nil {
			return fmt.Errorf("standard output: %w", werr)
		}
		off += uint64(n)
		if err != nil || eof && off >= r.Attr.Size {
			return err
		}
		if !eof {
			early = false
			continue
		}
		// It was truncated meanwhile, or the server does not send all of it.
		a, err := fsys.GetAttr(ctx, r.Handle, vfs.MaskSize)
		switch {
		case err != nil:
			return err
		case a.Size <= off:
			return nil
		case early && n == 0:
			return fmt.Errorf("it ends at %d, and its size is %d: %w", off, a.Size, io.ErrUnexpectedEOF)
		}
		r.Attr.Size, early = a.Size, true
	}
}
