package fileapi

import (
	"context"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// part is how much of a file one message of an upload carries, in bytes. A smaller file
// is sent by Put.
const part = 128 << 10

// UploadOptions say how to store a file. The zero value is the safest.
type UploadOptions struct {
	// Checksum is an algorithm (sha256, blake3, crc32c), or the checksum that the bytes
	// must have, as "sha256:...". "": sha256.
	Checksum string
	// NoSync does not wait for the disk: after a crash of the server's host the old file
	// may be there, or the new one with some or all of its bytes missing.
	NoSync bool
	// Mode is the file's, where Chmod is true. Otherwise it is that of the file that is
	// replaced, or 0644.
	Mode  uint32
	Chmod bool
}

// Stored says what the server has.
type Stored struct {
	Info     *pb.FileInfo
	Checksum string // of the bytes that were sent; both sides have computed it
	Existed  bool   // of an upload by content: the store had it already
}

// Upload stores all that r returns under the name, and replaces any file of that name. If
// r fails, nothing changes.
func (c *Client) Upload(ctx context.Context, name string, r io.Reader, o UploadOptions) (*Stored, error) {
	buf := make([]byte, part)
	n, end, err := fill(r, buf)
	if err != nil {
		return nil, failed("upload", name, err)
	}
	if end {
		return c.Put(ctx, name, buf[:n], o)
	}
	sum, err := newSum(name, o.Checksum)
	if err != nil {
		return nil, failed("upload", name, err)
	}
	head := &pb.UploadHeader{Checksum: o.Checksum, Sync: !o.NoSync}
	if o.Chmod {
		head.Mode = &o.Mode
	}
	if err := setName(head, name); err != nil {
		return nil, failed("upload", name, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // an upload that fails must be cut off, not ended as if complete
	stream, err := c.rpc.Upload(ctx)
	if err != nil {
		return nil, changing("upload", name, err)
	}
	up := uploading{r: r, stream: stream, sum: sum}
	if err := up.send(head, buf, n); err != nil {
		return nil, failed("upload", name, err)
	}
	answer, err := stream.CloseAndReceive()
	if err != nil {
		return nil, changing("upload", name, err)
	}
	if err := agree(sum, answer.GetChecksum()); err != nil {
		return nil, failed("upload", name, err)
	}
	return &Stored{Info: answer.GetInfo(), Checksum: answer.GetChecksum(), Existed: answer.GetExisted()}, nil
}

// uploading is an upload in progress.
type uploading struct {
	r      io.Reader
	stream *connect.ClientStreamForClientSimple[pb.UploadRequest, pb.UploadResponse]
	sum    *pb.Checksum
}

// send sends everything. It is no error here if the server answers before all was sent:
// the answer has the reason.
func (u *uploading) send(head *pb.UploadHeader, buf []byte, n int) error {
	err := u.stream.Send(&pb.UploadRequest{Part: &pb.UploadRequest_Header{Header: head}})
	size := uint64(0)
	for end := false; err == nil; {
		size += uint64(n)
		_, _ = u.sum.Write(buf[:n]) // a hash.Hash never fails to write
		err = u.stream.Send(&pb.UploadRequest{Part: &pb.UploadRequest_Data{Data: buf[:n]}})
		if err != nil || end {
			break
		}
		var read error
		if n, end, read = fill(u.r, buf); read != nil {
			return fmt.Errorf("reading what is to be uploaded: %w", read)
		}
	}
	if err == nil {
		trailer := &pb.UploadTrailer{Size: size, Checksum: u.sum.String()}
		err = u.stream.Send(&pb.UploadRequest{Part: &pb.UploadRequest_Trailer{Trailer: trailer}})
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// maxEmptyReads bounds how often in a row a reader may return no bytes; once more is
// io.ErrNoProgress.
const maxEmptyReads = 100

// fill reads until buf is full or r ends. io.ReadFull would report both the end of r and
// an error of r by io.ErrUnexpectedEOF.
func fill(r io.Reader, buf []byte) (n int, end bool, err error) {
	for empty := 0; n < len(buf); empty++ {
		m, err := r.Read(buf[n:])
		if n += m; err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
		if m > 0 {
			empty = -1
		} else if empty == maxEmptyReads {
			return n, false, io.ErrNoProgress
		}
	}
	return n, false, nil
}

// Put is Upload of data, in one message.
func (c *Client) Put(ctx context.Context, name string, data []byte, o UploadOptions) (*Stored, error) {
	q := &pb.PutRequest{Sync: !o.NoSync, Data: data}
	if o.Chmod {
		q.Mode = &o.Mode
	}
	return c.put(ctx, name, q, o.Checksum)
}

// PutRange writes data into the file that has the name, from off on, in place. The
// bytes are written when all of them have come, but a crash of the server may leave a
// part of them written.
func (c *Client) PutRange(ctx context.Context, name string, data []byte, off uint64, o UploadOptions) (*Stored, error) {
	return c.put(ctx, name, &pb.PutRequest{Sync: !o.NoSync, Data: data, Offset: &off}, o.Checksum)
}

func (c *Client) put(ctx context.Context, name string, q *pb.PutRequest, checksum string) (*Stored, error) {
	sum, err := newSum(name, checksum)
	if err == nil {
		err = setName(q, name)
	}
	if err == nil && len(q.GetData()) > MaxMessage {
		err = fmt.Errorf("%d bytes do not fit one message of %d", len(q.GetData()), MaxMessage)
	}
	if err == nil {
		_, _ = sum.Write(q.GetData()) // a hash.Hash never fails to write
		q.Checksum, err = sum.Check("")
	}
	if err != nil {
		return nil, failed("put", name, err)
	}
	answer, err := c.rpc.Put(ctx, q)
	if err != nil {
		return nil, changing("put", name, err)
	}
	if err := agree(sum, answer.GetChecksum()); err != nil {
		return nil, failed("put", name, err)
	}
	return &Stored{Info: answer.GetInfo(), Checksum: answer.GetChecksum(), Existed: answer.GetExisted()}, nil
}

// UploadContent stores all that r returns in the server's store, under its SHA-256, which
// it returns as the name. r is read once to compute that, and again only if the server
// does not have the content yet.
func (c *Client) UploadContent(ctx context.Context, r io.ReadSeeker) (*Stored, error) {
	sum, err := pb.NewChecksum(pb.SHA256)
	if err == nil {
		_, err = io.Copy(sum, r)
	}
	if err != nil {
		return nil, failed("upload", "", err)
	}
	name := sum.String()
	if info, err := c.Stat(ctx, name); err == nil {
		return &Stored{Info: info, Checksum: name, Existed: true}, nil
	}
	// Any other error will show again at the upload.
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, failed("upload", name, err)
	}
	return c.Upload(ctx, name, r, UploadOptions{Checksum: name})
}

// Range is the part of a file to get. The zero value is all of it.
type Range struct {
	Off uint64
	Len uint64 // 0: to the end
	// Checksum is the algorithm. "": sha256.
	Checksum string
}

// Get returns at most MaxMessage bytes of a file, in one message. More, in r or, where
// r.Len is 0, to the end, is an error: see Download.
func (c *Client) Get(ctx context.Context, name string, r Range) ([]byte, *pb.FileInfo, error) {
	q := &pb.GetRequest{Offset: r.Off, Checksum: r.Checksum}
	if r.Len > 0 {
		q.Length = &r.Len
	}
	sum, err := newSum("", r.Checksum)
	if err == nil {
		err = setName(q, name)
	}
	if err != nil {
		return nil, nil, failed("get", name, err)
	}
	answer, err := c.rpc.Get(ctx, q)
	if err != nil {
		return nil, nil, failed("get", name, err)
	}
	_, _ = sum.Write(answer.GetData()) // a hash.Hash never fails to write
	if err := agree(sum, answer.GetChecksum()); err != nil {
		return nil, nil, failed("get", name, err)
	}
	return answer.GetData(), answer.GetInfo(), nil
}

// Downloaded says what has come.
type Downloaded struct {
	Info     *pb.FileInfo // of the file
	Size     uint64       // bytes
	Checksum string       // of them, as both sides have computed it
}

// Download writes a file, or a range of it, to w.
func (c *Client) Download(ctx context.Context, name string, w io.Writer, r Range) (*Downloaded, error) {
	q := &pb.DownloadRequest{Offset: r.Off, Checksum: r.Checksum}
	if r.Len > 0 {
		q.Length = &r.Len
	}
	sum, err := newSum("", r.Checksum)
	if err == nil {
		err = setName(q, name)
	}
	if err != nil {
		return nil, failed("download", name, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a download that fails is not read to its end
	stream, err := c.rpc.Download(ctx, q)
	if err != nil {
		return nil, failed("download", name, err)
	}
	d, err := receive(stream, sum, w)
	if err == nil {
		err = stream.Close()
	}
	if err != nil {
		cancel()
		return nil, failed("download", name, err)
	}
	return d, nil
}

// receive writes what comes to w, and compares it with the trailer.
func receive(stream *connect.ServerStreamForClient[pb.DownloadResponse], sum *pb.Checksum, w io.Writer) (*Downloaded, error) {
	d := &Downloaded{}
	for stream.Receive() {
		switch p := stream.Msg().GetPart().(type) {
		case *pb.DownloadResponse_Info:
			d.Info = p.Info
		case *pb.DownloadResponse_Data:
			d.Size += uint64(len(p.Data))
			_, _ = sum.Write(p.Data) // a hash.Hash never fails to write
			if _, err := w.Write(p.Data); err != nil {
				return nil, err
			}
		case *pb.DownloadResponse_Trailer:
			if p.Trailer.GetSize() != d.Size {
				return nil, ErrCorrupted
			}
			d.Checksum = p.Trailer.GetChecksum()
			return d, agree(sum, d.Checksum)
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return nil, io.ErrUnexpectedEOF
}

// newSum begins the checksum of a file. If its name is its content, that is SHA-256.
func newSum(name, checksum string) (*pb.Checksum, error) {
	if checksum == "" && len(name) > 0 && name[0] != '/' {
		checksum = name
	}
	return pb.NewChecksum(checksum)
}

func agree(sum *pb.Checksum, theirs string) error {
	if sum.String() != theirs {
		return fmt.Errorf("%w: the server has %.100s, and we have %s", ErrCorrupted, theirs, sum)
	}
	return nil
}
