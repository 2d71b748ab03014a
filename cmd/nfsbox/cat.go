package main

import (
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/place"
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
		if err := cat(e, out, p.FS, r.Handle, buf); err != nil {
			return fmt.Errorf("%s: %w", p.Text, err)
		}
		return nil
	})
}

// cat writes one file to out.
func cat(e *env, out *output, fsys vfs.FS, h vfs.Handle, buf []byte) (err error) {
	f, _, err := fsys.Open(e.ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(e.ctx)) }()
	for off := uint64(0); ; {
		n, eof, err := vfs.ReadFull(e.ctx, f, buf, off)
		if _, werr := out.w.Write(buf[:n]); werr != nil {
			return fmt.Errorf("standard output: %w", werr)
		}
		if err != nil || eof {
			return err
		}
		off += uint64(n)
	}
}
