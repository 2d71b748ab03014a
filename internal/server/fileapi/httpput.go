package fileapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// The header fields of a PUT that HTTP has no name for: the file's mode, in octal digits,
// and whether the answer may come before the file is on the disk ("false").
const (
	modeField = "Nfsbox-Mode"
	syncField = "Nfsbox-Sync"
)

// putPath stores the request's body under the name: whole, and checked, or not at all.
func (s service) putPath(ctx context.Context, w *pacedWriter, r *http.Request, path string) error {
	head, err := putHead(r, path)
	if err != nil {
		return err
	}
	sums, err := digestsOf(r.Header, r.Trailer)
	if err != nil {
		return err
	}
	cond := conditionsOf(r.Header)
	if err := cond.malformed(); err != nil {
		return err
	}
	if head.GetSize() > s.o.Limits.FileSize {
		return tooLarge()
	}
	b := &body{r: r, call: requestOf(ctx).call}
	in := &incoming{head: head, part: b.part, limit: s.o.Limits.FileSize, sum: sums, cond: cond}
	// A client that waits to be told to go on is told so when its rights are known: after
	// the temporary was made.
	in.inOne = head.Size != nil && head.GetSize() <= onTrust && r.Header.Get("Expect") == ""
	done, err := s.store(ctx, in)
	if err != nil {
		return err
	}
	if done.tag != "" {
		w.Header().Set("Etag", done.tag)
	}
	if done.existed {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusCreated)
	return nil
}

// putHead is what the header of a PUT says of the file.
func putHead(r *http.Request, path string) (*pb.UploadHeader, error) {
	h := r.Header
	head := &pb.UploadHeader{File: &pb.UploadHeader_RawPath{RawPath: []byte(path)}}
	switch sync := h.Get(syncField); sync {
	case "", "true", "false":
		head.Sync = sync != "false"
	default:
		return nil, refuse(connect.CodeInvalidArgument, "%s: want true or false", syncField)
	}
	if mode := h.Get(modeField); mode != "" {
		n, err := strconv.ParseUint(mode, 8, 32)
		if err != nil || n&^0o7777 != 0 {
			return nil, refuse(connect.CodeInvalidArgument, "%s: %.40q is no mode: want octal digits, such as 0640", modeField, mode)
		}
		head.Mode = new(uint32(n))
	}
	if r.ContentLength >= 0 {
		head.Size = new(uint64(r.ContentLength))
	}
	switch {
	case r.ContentLength == 0 && h.Get("Content-Length") == "":
		// RFC 9112, section 6.3, has it that there is no body, but who puts a file and does not
		// say so has left something out. Without this it would be replaced by an empty one.
		return nil, withStatus(http.StatusLengthRequired, connect.CodeInvalidArgument, "a PUT says how long its body is: by Content-Length, which is 0 for an empty file, or by chunks")
	case h.Get("Content-Range") != "": // RFC 9110, section 14.5
		return nil, refuse(connect.CodeInvalidArgument, "a file is put whole: Content-Range is not taken")
	case h.Get("Content-Encoding") != "" && !strings.EqualFold(h.Get("Content-Encoding"), "identity"):
		return nil, withStatus(http.StatusUnsupportedMediaType, connect.CodeUnimplemented, "files are stored as they come: Content-Encoding is not taken")
	}
	return head, nil
}

// onTrust is the memory that a request's body gets before any of it has come, in bytes. When
// that is full the rest is read by chunks.
const onTrust = 64 << 10

// body reads the parts of a request's body, by memory that is lent to its call.
type body struct {
	r    *http.Request
	call *call
	buf  []byte
	n    uint64 // bytes that have come
	end  bool
}

func (b *body) part() ([]byte, *pb.UploadTrailer, error) {
	if b.end {
		return nil, &pb.UploadTrailer{Size: b.n}, nil
	}
	if err := b.grow(); err != nil {
		return nil, nil, err
	}
	// Not io.ReadFull, which reports a body that ends, and one that is cut off, by the same
	// error.
	n, err := 0, error(nil)
	for n < len(b.buf) && err == nil {
		var m int
		m, err = b.r.Body.Read(b.buf[n:])
		n += m
	}
	b.n += uint64(n)
	if errors.Is(err, io.EOF) {
		b.end, err = true, nil
	}
	if err != nil && connect.CodeOf(err) == connect.CodeUnknown {
		err = refuse(connect.CodeInvalidArgument, "the body: %w", err)
	}
	return b.buf[:n], nil, err
}

// grow makes room for the next part.
func (b *body) grow() error {
	size := 0
	switch {
	case b.buf == nil:
		size = onTrust
		if b.r.ContentLength >= 0 {
			size = int(min(onTrust, max(b.r.ContentLength, 1)))
		}
	case len(b.buf) == onTrust:
		size = chunk
	default:
		return nil
	}
	if err := b.call.hold(size); err != nil {
		return err
	}
	b.buf = b.call.lend(size)
	return nil
}

// deletePath answers DELETE: of a file, or, if the path ends in a slash, an empty directory.
func (s service) deletePath(ctx context.Context, w *pacedWriter, r *http.Request, path string) error {
	name := strings.TrimRight(path, "/")
	p, err := s.find(ctx, pathName(name))
	if err != nil {
		return err
	}
	dir, last, err := p.parent(ctx)
	if err != nil {
		return err
	}
	cond := conditionsOf(r.Header)
	if err := cond.malformed(); err != nil {
		return err
	}
	defer s.names.lock(dir, last, !cond.none())()
	if !cond.none() {
		if _, err := p.meets(ctx, dir, last, cond); err != nil {
			return err
		}
	}
	if _, err := p.Remove(ctx, dir, last, name != path); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// meets looks at what has a name, and reports whether anything has. It is errCondition if
// that is not as the conditions want it.
func (p *place) meets(ctx context.Context, dir vfs.Handle, name string, cond *conditions) (bool, error) {
	h, attr, _, err := p.Lookup(ctx, dir, name)
	if err == nil && !attr.Has(vfs.MaskV3) {
		attr, err = p.GetAttr(ctx, h, vfs.MaskV3)
	}
	switch {
	case errors.Is(err, vfs.ErrNoEnt):
		return false, cond.check(h, nil)
	case err != nil:
		return false, err
	}
	return true, cond.check(h, &attr)
}
