package fileapi

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/vfs"
)

// maxRanges bounds the ranges of one request. With more the whole file is sent, as if
// there were none (RFC 9110, section 14.2): each costs a read and a header.
const maxRanges = 32

// filePolicy keeps a browser from running what a file holds: a page has no scripts, no
// forms and no origin. pagePolicy is for what the server itself writes.
const (
	filePolicy = "default-src 'none'; img-src 'self' data:; media-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; frame-ancestors 'none'; sandbox"
	// pdfPolicy leaves out sandbox, with which browsers show no PDF. Their viewers run
	// nothing of it in this server's origin.
	pdfPolicy  = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"
	pagePolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// getPath answers GET and HEAD.
func (s service) getPath(ctx context.Context, w *pacedWriter, r *http.Request, name string) error {
	p, err := s.find(ctx, pathName(name))
	if errors.Is(err, vfs.ErrNoEnt) { // no export has the path, but some may be below it
		return s.listExports(ctx, w, r, name)
	}
	if err != nil {
		return err
	}
	h, attr, err := p.resolve(ctx, true)
	if err != nil {
		return err
	}
	switch attr.Type {
	case vfs.TypeReg:
		return s.send(ctx, w, r, p, h, &attr)
	case vfs.TypeDir:
		return s.directory(ctx, w, r, name)
	}
	return withStatus(http.StatusForbidden, connect.CodeFailedPrecondition, "not a regular file")
}

// send answers with a regular file, or its ranges.
func (s service) send(ctx context.Context, w *pacedWriter, r *http.Request, p *place, h vfs.Handle, attr *vfs.Attr) error {
	c := &content{ctx: ctx, before: *attr}
	var err error
	if r.Method == http.MethodHead {
		err = p.mayRead(ctx, h)
	} else {
		c.file, err = p.openToRead(ctx, h)
	}
	if err != nil {
		return err
	}
	if c.file != nil {
		defer c.close()
	}
	if !ranged(r.Header.Get("Range")) {
		r.Header.Del("Range")
	}
	header := w.Header()
	header.Set("Content-Type", typeOf(p.rest))
	header.Set("Content-Security-Policy", policyOf(header.Get("Content-Type")))
	if tag := tagOf(h, attr); tag != "" {
		if s.recent(attr) {
			tag = "W/" + tag
		}
		header.Set("Etag", tag)
	}
	buf, err := requestOf(ctx).room(r, int(min(attr.Size, chunk)))
	if err != nil {
		return err
	}
	http.ServeContent(&bulkWriter{w, buf}, r, "", attr.Mtime, c)
	return c.end()
}

// ranged reports whether ranges are looked at. Those in other units are not, nor the last no
// bytes, which http.ServeContent would answer with a range that ends before it begins.
func ranged(ranges string) bool {
	list, ok := strings.CutPrefix(ranges, "bytes=")
	last, suffix := strings.CutPrefix(list, "-")
	return ok && strings.Count(list, ",") < maxRanges && !(suffix && strings.Trim(last, "0") == "")
}

// room is a buffer for so many bytes. HTTP/2 may still read it after the call: there it is
// not lent again.
func (q *request) room(r *http.Request, n int) ([]byte, error) {
	if r.Method == http.MethodHead {
		return nil, nil
	}
	n = max(n, 1)
	if err := q.call.hold(n); err != nil {
		return nil, err
	}
	if r.ProtoMajor > 1 {
		return make([]byte, n), nil
	}
	return q.call.lend(n), nil
}

// typeOf is the media type of a name. What has no known one is bytes, which no browser
// guesses at.
func typeOf(name string) string {
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

func policyOf(kind string) string {
	if kind == "application/pdf" {
		return pdfPolicy
	}
	return filePolicy
}

// content is the bytes of a file for http.ServeContent. All of them are of one version of
// the file, as far as its time and size tell: otherwise Read fails. For several ranges
// ServeContent reads in a goroutine, which it may leave behind.
type content struct {
	ctx    context.Context
	before vfs.Attr

	mu   sync.Mutex
	file vfs.File // guarded by mu; nil: closed, or not opened
	off  int64    // guarded by mu
	err  error    // guarded by mu; of the first Read that failed
}

func (c *content) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil || c.off >= int64(c.before.Size) {
		return 0, io.EOF
	}
	after := c.before
	n, eof, err := c.file.ReadAt(c.ctx, p, uint64(c.off), &after)
	c.off += int64(n)
	changed := after.Has(vfs.MaskMtime|vfs.MaskSize) && (after.Size != c.before.Size || !after.Mtime.Equal(c.before.Mtime))
	if err == nil && (changed || eof && c.off < int64(c.before.Size)) {
		err = errChanged
	}
	if err != nil {
		c.err = err
		return 0, err
	}
	return n, nil
}

// end returns the error of the first Read that failed.
func (c *content) end() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *content) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Nothing was written: its errors lose nothing.
	_ = c.file.Close(context.WithoutCancel(c.ctx))
	c.file = nil
}

// Seek is asked by http.ServeContent alone, which goes nowhere else.
func (c *content) Seek(off int64, whence int) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		off += c.off
	case io.SeekEnd:
		off += int64(c.before.Size)
	}
	c.off = off
	return off, nil
}

// bulkWriter copies by the request's own buffer. Its first error is the request's.
type bulkWriter struct {
	*pacedWriter
	buf []byte
}

// ReadFrom implements io.ReaderFrom, which io.Copy asks for.
func (w *bulkWriter) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w.pacedWriter}, r, w.buf)
}
