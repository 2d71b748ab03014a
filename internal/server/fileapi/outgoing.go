package fileapi

import (
	"cmp"
	"context"
	"io"

	"connectrpc.com/connect"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// outgoing is a range of a file that is being read and sent.
type outgoing struct {
	info *pb.FileInfo
	size uint64 // of the range

	object io.ReadCloser // by content
	whole  bool          // the range is all of it: the store then verifies it at its end

	file   vfs.File // by path
	off    uint64   // of the next byte
	before vfs.Attr
	after  vfs.Attr
}

// downloading is a request for the bytes of a file.
type downloading interface {
	named
	GetContent() string
}

// open opens n bytes from off on of what the request names, or all the rest. The
// caller closes it.
func (s *Server) open(ctx context.Context, q downloading, off uint64, n *uint64) (*outgoing, error) {
	if content := q.GetContent(); content != "" {
		r, info, err := s.openContent(ctx, content, off, n)
		if err != nil {
			return nil, err
		}
		out := &outgoing{info: info, object: r, whole: off == 0 && (n == nil || *n >= info.GetSize())}
		out.size = rangeOf(info.GetSize(), off, n)
		return out, nil
	}
	p, err := s.find(ctx, q)
	if err != nil {
		return nil, err
	}
	_, f, attr, err := p.open(ctx, vfs.ShareRead)
	if err != nil {
		return nil, err
	}
	out := &outgoing{file: f, off: off, before: attr, after: attr}
	if off > attr.Size {
		out.close(ctx)
		return nil, refuse(connect.CodeOutOfRange, "the file has %d bytes", attr.Size)
	}
	out.info, out.size = infoOf(&out.before), rangeOf(out.before.Size, off, n)
	return out, nil
}

// rangeOf is how many bytes there are from off on, of at most *n.
func rangeOf(size, off uint64, n *uint64) uint64 {
	left := size - min(off, size)
	if n != nil {
		return min(left, *n)
	}
	return left
}

func (o *outgoing) read(ctx context.Context, p []byte) (n int, err error) {
	if o.object != nil {
		n, err = io.ReadFull(o.object, p)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = nil
		}
		return n, err
	}
	for n < len(p) {
		// Not ReadFull, which does not return the attributes.
		m, eof, err := o.file.ReadAt(ctx, p[n:], o.off, &o.after)
		if err != nil {
			return n, err
		}
		n += m
		o.off += uint64(m)
		if eof || m == 0 {
			break
		}
	}
	return n, nil
}

// end is an error if the n bytes that were read may be from two versions of the file, as
// far as its time and size tell.
func (o *outgoing) end(ctx context.Context, n int) error {
	if uint64(n) != o.size {
		return errChanged
	}
	if o.object != nil {
		if !o.whole {
			return nil
		}
		var beyond [1]byte
		if m, err := o.object.Read(beyond[:]); err != io.EOF || m != 0 {
			return cmp.Or[error](err, errChanged)
		}
		return nil
	}
	if o.after.Has(vfs.MaskMtime|vfs.MaskSize) && (o.after.Size != o.before.Size || !o.after.Mtime.Equal(o.before.Mtime)) {
		return errChanged
	}
	return nil
}

// close ends the reading. Nothing was written: its errors lose nothing.
func (o *outgoing) close(ctx context.Context) {
	if o.object != nil {
		_ = o.object.Close()
	}
	if o.file != nil {
		_ = o.file.Close(context.WithoutCancel(ctx))
	}
}
