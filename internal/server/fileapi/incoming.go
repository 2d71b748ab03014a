package fileapi

import (
	"cmp"
	"io"

	"connectrpc.com/connect"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// incoming is the bytes of an upload. They are all there, and the right ones, only if
// complete is true at io.EOF; else they must be discarded.
type incoming struct {
	head *pb.UploadHeader
	// part returns the next bytes, or the trailer at the end, or an error.
	part  func() ([]byte, *pb.UploadTrailer, error)
	limit uint64
	sum   verifier
	inOne bool        // all bytes come in one part, if there are any
	cond  *conditions // of a request for a path; nil: a call

	size     uint64 // so far
	complete bool   // all of them have come, and are the right ones
	checksum string // of them
	rest     []byte // of a part, for Read
	again    []byte // bytes that next returns once more, before the end
	err      error
}

func newIncoming(head *pb.UploadHeader, limit uint64, part func() ([]byte, *pb.UploadTrailer, error)) (*incoming, error) {
	if head.GetSize() > limit {
		return nil, tooLarge()
	}
	asked := head.GetChecksum()
	if content := head.GetContent(); content != "" {
		if asked != "" && asked != pb.SHA256 && asked != content {
			return nil, refuse(connect.CodeInvalidArgument, "content has its name for a checksum, and no other")
		}
		asked = content
	}
	sum, err := pb.NewChecksum(asked)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return &incoming{head: head, part: part, limit: limit, sum: sum}, nil
}

// next returns the next bytes, at least one, or io.EOF.
func (in *incoming) next() ([]byte, error) {
	if data := in.again; len(data) > 0 {
		in.again = nil
		return data, nil
	}
	for in.err == nil {
		data, trailer, err := in.part()
		switch {
		case err != nil:
			in.err = err
		case trailer != nil:
			in.err = in.end(trailer)
		case len(data) > MaxData:
			in.err = oversize("%d bytes in one message, of at most %d", len(data), MaxData)
		case uint64(len(data)) > in.limit-in.size:
			in.err = tooLarge()
		case in.head.Size != nil && uint64(len(data)) > in.head.GetSize()-in.size:
			in.err = refuse(connect.CodeInvalidArgument, "more bytes have come than the %d of the header", in.head.GetSize())
		case len(data) > 0:
			in.size += uint64(len(data))
			_, in.err = in.sum.Write(data) // a hash.Hash never fails to write
			return data, in.err
		}
	}
	return nil, in.err
}

// whole returns all bytes of an upload that has at most one part with bytes, after it has
// checked them.
func (in *incoming) whole() ([]byte, error) {
	data, err := in.next()
	if err == nil {
		_, err = in.next()
	}
	if !in.complete {
		return nil, cmp.Or[error](err, refuse(connect.CodeInvalidArgument, "a range comes in one part"))
	}
	return data, nil
}

// end compares what came with the client's trailer.
func (in *incoming) end(t *pb.UploadTrailer) error {
	if in.size != t.GetSize() || in.head.Size != nil && in.size != in.head.GetSize() {
		return refuse(connect.CodeDataLoss, "%d bytes have come, and not as many as were sent", in.size)
	}
	sum, err := in.sum.Check(t.GetChecksum())
	if err != nil {
		return connect.NewError(connect.CodeDataLoss, err)
	}
	in.checksum, in.complete = sum, true
	return io.EOF
}

func (in *incoming) Read(p []byte) (int, error) {
	if len(in.rest) == 0 {
		data, err := in.next()
		if err != nil {
			return 0, err
		}
		in.rest = data
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

func tooLarge() error {
	return detailed(connect.CodeOutOfRange, &denial{TooLarge, "the upload is larger than this server takes"}, vfs.ErrFBig, false)
}
