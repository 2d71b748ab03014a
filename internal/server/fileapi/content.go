package fileapi

import (
	"context"
	"io"
	"math"
	"strings"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/server/object"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// byContent is the store, and the key's checksum that a request names.
func (s *Server) byContent(content string) (object.Store, object.Sum, error) {
	if s.o.Store == nil {
		return nil, object.Sum{}, refuse(connect.CodeUnimplemented, "this server has no store of content")
	}
	algorithm, value, _ := strings.Cut(content, ":")
	sum, err := object.ParseSum(value)
	if algorithm != pb.SHA256 || err != nil {
		return nil, object.Sum{}, refuse(connect.CodeInvalidArgument, `content is named by "sha256:" and 64 lower-case hexadecimal digits`)
	}
	return s.o.Store, sum, nil
}

func (s *Server) statContent(ctx context.Context, content string) (*pb.FileInfo, error) {
	store, sum, err := s.byContent(content)
	if err != nil {
		return nil, err
	}
	info, err := store.Stat(ctx, object.ContentKey(sum))
	if err != nil {
		return nil, err
	}
	return infoOfObject(&info), nil
}

func (s *Server) openContent(ctx context.Context, content string, off uint64, n *uint64) (io.ReadCloser, *pb.FileInfo, error) {
	store, sum, err := s.byContent(content)
	if err != nil {
		return nil, nil, err
	}
	length := int64(-1)
	if n != nil && *n <= math.MaxInt64 {
		length = int64(*n)
	}
	if off > math.MaxInt64 {
		return nil, nil, object.ErrRange
	}
	r, info, err := store.Get(ctx, object.ContentKey(sum), int64(off), length)
	if err != nil {
		return nil, nil, err
	}
	return r, infoOfObject(&info), nil
}

// storeContent stores the incoming bytes, unless the store has them already.
func (s *Server) storeContent(ctx context.Context, in *incoming) (*stored, error) {
	store, sum, err := s.byContent(in.head.GetContent())
	if err != nil {
		return nil, err
	}
	size := int64(-1)
	if in.head.Size != nil && in.head.GetSize() <= math.MaxInt64 {
		size = int64(in.head.GetSize())
	}
	info, isNew, err := object.PutContent(ctx, store, sum, size, in)
	if in.err != nil && !in.complete {
		return nil, in.err // it says why the bytes have ended
	}
	if err != nil {
		return nil, err
	}
	// If the content was there already, its bytes have not been read. The client sends
	// them anyway, and expects their checksum.
	if _, err := io.Copy(io.Discard, in); err != nil {
		return nil, err
	}
	return &stored{info: infoOfObject(&info), checksum: in.checksum, existed: !isNew}, nil
}
