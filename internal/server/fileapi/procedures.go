package fileapi

import (
	"context"
	"errors"
	"strings"

	"connectrpc.com/connect"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

var _ pb.FileServiceHandler = service{}

func (s service) Stat(ctx context.Context, q *pb.StatRequest) (*pb.StatResponse, error) {
	if q.GetContent() != "" {
		info, err := s.statContent(ctx, q.GetContent())
		return &pb.StatResponse{Info: info}, err
	}
	p, err := s.find(ctx, q)
	if err != nil {
		return nil, err
	}
	_, attr, err := p.resolve(ctx, !q.GetNoFollow())
	if err != nil {
		return nil, err
	}
	return &pb.StatResponse{Info: infoOf(&attr)}, nil
}

// Exist implements pb.FileServiceHandler. If a part of the path is no directory, the file
// does not exist.
func (s service) Exist(ctx context.Context, q *pb.ExistRequest) (*pb.ExistResponse, error) {
	err := s.exist(ctx, q)
	if status, ok := vfs.StatusOf(err); ok && (status == vfs.ErrNoEnt || status == vfs.ErrNotDir) {
		return &pb.ExistResponse{}, nil
	}
	return &pb.ExistResponse{Exists: err == nil}, err
}

func (s service) exist(ctx context.Context, q *pb.ExistRequest) error {
	if q.GetContent() != "" {
		_, err := s.statContent(ctx, q.GetContent())
		return err
	}
	p, err := s.find(ctx, q)
	if err != nil {
		return err
	}
	_, _, err = p.resolve(ctx, true)
	return err
}

func (s service) MakeDirectory(ctx context.Context, q *pb.MakeDirectoryRequest) (*pb.MakeDirectoryResponse, error) {
	mode := uint32(0o755)
	if q.Mode != nil {
		mode = q.GetMode()
	}
	if mode&^0o7777 != 0 {
		return nil, refuse(connect.CodeInvalidArgument, "%#o is no mode", mode)
	}
	p, err := s.find(ctx, q)
	if err != nil {
		return nil, err
	}
	dir, name, err := p.parent(ctx)
	if err != nil {
		return nil, err
	}
	h, attr, _, err := p.Create(ctx, dir, name, &vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode}})
	if err == nil && !attr.Has(vfs.MaskV3) {
		attr, err = p.GetAttr(ctx, h, vfs.MaskV3)
	}
	if err != nil {
		return nil, err
	}
	return &pb.MakeDirectoryResponse{Info: infoOf(&attr)}, nil
}

func (s service) Delete(ctx context.Context, q *pb.DeleteRequest) (*pb.DeleteResponse, error) {
	p, err := s.find(ctx, q)
	if err != nil {
		return nil, err
	}
	dir, name, err := p.parent(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := p.Remove(ctx, dir, name, q.GetDirectory()); err != nil {
		return nil, err
	}
	return &pb.DeleteResponse{}, nil
}

func (s service) Get(ctx context.Context, q *pb.GetRequest) (*pb.GetResponse, error) {
	sum, err := algorithmOf(q.GetChecksum())
	if err != nil {
		return nil, err
	}
	out, err := s.open(ctx, q, q.GetOffset(), q.Length)
	if err != nil {
		return nil, err
	}
	defer out.close(ctx)
	if out.size > MaxData {
		return nil, oversize("%d bytes do not fit a message of %d: Download them, or Get them in ranges", out.size, MaxData)
	}
	c := requestOf(ctx).call
	if err := c.hold(int(out.size) * costPerByte); err != nil {
		return nil, err
	}
	data := c.lend(int(out.size))
	n, err := out.read(ctx, data)
	if err != nil {
		return nil, err
	}
	if err := out.end(ctx, n); err != nil {
		return nil, err
	}
	_, _ = sum.Write(data) // a hash.Hash never fails to write
	return &pb.GetResponse{Info: out.info, Data: data, Checksum: sum.String()}, nil
}

func (s service) Download(ctx context.Context, q *pb.DownloadRequest, stream *connect.ServerStream[pb.DownloadResponse]) error {
	sum, err := algorithmOf(q.GetChecksum())
	if err != nil {
		return err
	}
	out, err := s.open(ctx, q, q.GetOffset(), q.Length)
	if err != nil {
		return err
	}
	defer out.close(ctx)
	if err := stream.Send(&pb.DownloadResponse{Part: &pb.DownloadResponse_Info{Info: out.info}}); err != nil {
		return err
	}
	c, room := requestOf(ctx).call, int(min(out.size, chunk))
	if err := c.hold(room * costPerByte); err != nil {
		return err
	}
	buf := c.lend(room)
	part := &pb.DownloadResponse_Data{}
	message := &pb.DownloadResponse{Part: part}
	for sent := uint64(0); sent < out.size; {
		n, err := out.read(ctx, buf[:min(out.size-sent, chunk)])
		if err != nil {
			return err
		}
		if n == 0 {
			return errChanged
		}
		part.Data = buf[:n]
		_, _ = sum.Write(part.Data) // a hash.Hash never fails to write
		// Send has encoded the message when it returns, and does not need the bytes after.
		if err := stream.Send(message); err != nil {
			return err
		}
		sent += uint64(n)
	}
	if err := out.end(ctx, int(out.size)); err != nil {
		return err
	}
	return stream.Send(&pb.DownloadResponse{Part: &pb.DownloadResponse_Trailer{
		Trailer: &pb.DownloadTrailer{Size: out.size, Checksum: sum.String()},
	}})
}

func algorithmOf(name string) (*pb.Checksum, error) {
	sum, err := pb.NewChecksum(name)
	if err != nil || strings.Contains(name, ":") {
		return nil, refuse(connect.CodeInvalidArgument, "%.40q is no algorithm: want sha256, blake3 or crc32c", name)
	}
	return sum, nil
}

func (s service) Put(ctx context.Context, q *pb.PutRequest) (*pb.PutResponse, error) {
	head := &pb.UploadHeader{Checksum: q.GetChecksum(), Sync: q.GetSync(), Mode: q.Mode, Size: new(uint64(len(q.GetData())))}
	switch f := q.GetFile().(type) {
	case *pb.PutRequest_Path:
		head.File = &pb.UploadHeader_Path{Path: f.Path}
	case *pb.PutRequest_RawPath:
		head.File = &pb.UploadHeader_RawPath{RawPath: f.RawPath}
	case *pb.PutRequest_Content:
		head.File = &pb.UploadHeader_Content{Content: f.Content}
	}
	data := q.GetData()
	in, err := newIncoming(head, s.o.Limits.FileSize, func() ([]byte, *pb.UploadTrailer, error) {
		if part := data; len(part) > 0 {
			data = nil
			return part, nil, nil
		}
		return nil, &pb.UploadTrailer{Size: head.GetSize()}, nil
	})
	if err != nil {
		return nil, err
	}
	in.inOne = true
	var done *stored
	if q.Offset != nil {
		done, err = s.change(ctx, in, q.GetOffset())
	} else {
		done, err = s.store(ctx, in)
	}
	if err != nil {
		return nil, err
	}
	return &pb.PutResponse{Info: done.info, Checksum: done.checksum, Existed: done.existed}, nil
}

func (s service) Upload(ctx context.Context, stream *connect.ClientStream[pb.UploadRequest]) (*pb.UploadResponse, error) {
	call := requestOf(ctx).call
	next := func() (*pb.UploadRequest, error) {
		call.letGo() // of the message before
		if stream.Receive() {
			return stream.Msg(), nil
		}
		if err := stream.Err(); err != nil {
			return nil, err
		}
		return nil, refuse(connect.CodeInvalidArgument, "the stream has ended before its trailer")
	}
	first, err := next()
	if err != nil {
		return nil, err
	}
	if first.GetHeader() == nil {
		return nil, refuse(connect.CodeInvalidArgument, "the first message of an upload is its header")
	}
	in, err := newIncoming(first.GetHeader(), s.o.Limits.FileSize, func() ([]byte, *pb.UploadTrailer, error) {
		m, err := next()
		if err != nil {
			return nil, nil, err
		}
		switch part := m.GetPart().(type) {
		case *pb.UploadRequest_Data:
			return part.Data, nil, nil
		case *pb.UploadRequest_Trailer:
			if stream.Receive() {
				return nil, nil, refuse(connect.CodeInvalidArgument, "the trailer is the last message of an upload")
			}
			return nil, part.Trailer, stream.Err()
		}
		return nil, nil, refuse(connect.CodeInvalidArgument, "a message of an upload is data, or its trailer")
	})
	if err != nil {
		return nil, err
	}
	done, err := s.store(ctx, in)
	if err != nil {
		return nil, err
	}
	return &pb.UploadResponse{Info: done.info, Checksum: done.checksum, Existed: done.existed}, nil
}

func (s service) Echo(_ context.Context, q *pb.EchoRequest) (*pb.EchoResponse, error) {
	if len(q.GetData()) > maxEcho {
		return nil, oversize("%d bytes to echo, of at most %d", len(q.GetData()), maxEcho)
	}
	return &pb.EchoResponse{Data: q.GetData()}, nil
}

// errChanged says that the bytes sent may be from two versions of the file.
var errChanged = connect.NewError(connect.CodeAborted, errors.New("the file was changed while it was read"))
