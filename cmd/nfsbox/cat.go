package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/vfs"
)

type catCmd struct {
	Places []string `arg:"" place:"" name:"PLACE" help:"Files to write: paths or nfs://host/export/path, in whose last parts *, ? (as %3F) and [ stand for names."`
	Offset int64    `placeholder:"BYTES" help:"Begin at this byte; a negative one counts from the end."`
	Count  *uint64  `placeholder:"BYTES" help:"Write no more than this."`
	Head   *uint64  `placeholder:"LINES" help:"Write the first lines alone."`
	Tail   *uint64  `placeholder:"LINES" help:"Write the last lines alone."`
	clientFlags
}

func (*catCmd) Help() string {
	return `Writes the files to standard output, one after the other, byte for byte. A file that fails is
reported and the rest goes on; what has been written of it stays written.

Only what is asked for is read: the last lines of a large file cost a READ or two.

  nfsbox cat nfs://filer/export/etc/motd
  nfsbox cat --tail 20 nfs://filer/export/var/log/syslog
  nfsbox cat --offset 1048576 --count 4096 nfs://filer/export/disk.img`
}

// Validate is called by kong.
func (c *catCmd) Validate() error {
	bytes, head, tail := c.Offset != 0 || c.Count != nil, c.Head != nil, c.Tail != nil
	if bytes && (head || tail) || head && tail {
		return errors.New("give --offset and --count, or --head, or --tail")
	}
	return nil
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
		if err := c.file(e.ctx, out, p, r, buf); err != nil {
			return fmt.Errorf("%s: %w", p.Text, err)
		}
		return nil
	})
}

func (c *catCmd) file(ctx context.Context, out *output, p *place.Place, r vfs.Resolved, buf []byte) (err error) {
	f, _, err := p.FS.Open(ctx, vfs.At{H: r.Handle, Label: r.Name}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(ctx)) }()
	local := p.IsLocal()
	size := r.Attr.Size
	if local && (c.Tail != nil || c.Offset < 0) {
		if size, err = sizeOf(ctx, f, size, buf); err != nil {
			return err
		}
	}
	from, err := c.from(ctx, f, size, buf)
	if err != nil {
		return err
	}
	w := &part{w: out.w, bytes: c.Count, lines: c.Head}
	if c.Count != nil {
		buf = buf[:max(1, min(*c.Count, uint64(len(buf))))]
	}
	if local {
		r.Attr.Size = 0 // the kernel knows where a local file ends; in /sys st_size does not say
	}
	err = cat(ctx, w, p.FS, f, r, from, buf)
	if errors.Is(err, errPart) {
		return nil
	}
	return err
}

// sizeOf is the size of a local file: st_size if a byte stands before it. Else, as in /proc and
// /sys, the file is read to find its end.
func sizeOf(ctx context.Context, f vfs.File, size uint64, buf []byte) (uint64, error) {
	if size > 0 {
		n, _, err := vfs.ReadFull(ctx, f, buf[:1], size-1)
		if err != nil || n == 1 {
			return size, err
		}
	}
	for size = 0; ; {
		n, eof, err := vfs.ReadFull(ctx, f, buf, size)
		size += uint64(n)
		if err != nil || eof {
			return size, err
		}
	}
}

// from is the first byte to write of a file of the given size.
func (c *catCmd) from(ctx context.Context, f vfs.File, size uint64, buf []byte) (uint64, error) {
	switch {
	case c.Tail != nil && *c.Tail == 0:
		return size, nil
	case c.Tail != nil:
		return lastLines(ctx, f, size, *c.Tail, buf)
	case c.Offset >= 0:
		return uint64(c.Offset), nil
	}
	return size - min(size, -uint64(c.Offset)), nil
}

// tailBuffer is how much is read at once in search of the last lines, in bytes.
const tailBuffer = 64 << 10

// lastLines finds where the last lines begin, by reading backwards. A line end at the end of
// the file ends its last line.
func lastLines(ctx context.Context, f vfs.File, size, lines uint64, buf []byte) (uint64, error) {
	buf = buf[:min(tailBuffer, len(buf))]
	for end := size; end > 0; {
		start := end - min(end, uint64(len(buf)))
		block := buf[:end-start]
		n, _, err := vfs.ReadFull(ctx, f, block, start)
		if err != nil {
			return 0, err
		}
		block = block[:n] // less if it was truncated meanwhile
		if end == size {
			block = bytes.TrimSuffix(block, []byte("\n"))
		}
		for len(block) > 0 {
			at := bytes.LastIndexByte(block, '\n')
			if at < 0 {
				break
			}
			if lines--; lines == 0 {
				return start + uint64(at) + 1, nil
			}
			block = block[:at]
		}
		end = start
	}
	return 0, nil
}

// errPart says that all that was asked for has been written.
var errPart = errors.New("no more was asked for")

// part writes as many bytes, and as many lines, as were asked for.
type part struct {
	w     io.Writer
	bytes *uint64 // how many; nil: all
	lines *uint64

	didBytes, didLines uint64
}

func (p *part) Write(b []byte) (int, error) {
	n, enough := len(b), false
	if p.bytes != nil && p.didBytes+uint64(n) >= *p.bytes {
		n, enough = int(*p.bytes-p.didBytes), true
	}
	if p.lines != nil && *p.lines == 0 {
		n, enough = 0, true
	}
	for at := 0; p.lines != nil && at < n; {
		next := bytes.IndexByte(b[at:n], '\n')
		if next < 0 {
			break
		}
		at += next + 1
		if p.didLines++; p.didLines == *p.lines {
			n, enough = at, true
		}
	}
	did, err := p.w.Write(b[:n])
	p.didBytes += uint64(did)
	if err == nil && enough {
		err = errPart
	}
	return did, err
}

// cat writes a file from a byte on. If the file ends before its size, cat reads once more; if
// nothing comes, that is an error.
func cat(ctx context.Context, w io.Writer, fsys vfs.FS, f vfs.File, r vfs.Resolved, off uint64, buf []byte) error {
	early := false // the last read ended before the size
	for {
		n, eof, err := vfs.ReadFull(ctx, f, buf, off)
		if _, werr := w.Write(buf[:n]); errors.Is(werr, errPart) {
			return werr
		} else if werr != nil {
			return &outputError{werr}
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
