package bucketfs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/vfs"
)

// Open implements vfs.FS, for reading: a file is made by Make.
func (f *FS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	var o vfs.Opened
	if err := ctx.Err(); err != nil {
		return nil, o, err
	}
	switch o.H = at.H; {
	case how.Create != nil, how.Access&vfs.ShareWrite != 0, how.Trunc, how.Deny != 0:
		return nil, o, fmt.Errorf("files of a bucket are put whole, and not written to: %w", vfs.ErrNotSupp)
	case how.Access == 0:
		return nil, o, vfs.ErrInval
	case at.Name != "":
		h, a, _, err := f.Lookup(ctx, at.Dir, at.Name)
		if err != nil {
			return nil, o, err
		}
		o.H, o.Attr = h, a
	}
	key, err := f.key(&o.H)
	switch {
	case err != nil:
		return nil, o, err
	case kindOf(key) == isDir:
		return nil, o, vfs.ErrIsDir
	case kindOf(key) != isFile:
		return nil, o, vfs.ErrInval
	}
	return &file{f: f, key: key}, o, nil
}

// file is an object that is read. All its bytes are of one version: that which the first read has met.
type file struct {
	f   *FS
	key string

	mu     sync.Mutex
	etag   string // of the version; "": nothing was read yet
	closed bool
}

// use is the version to ask for, or the error of a call that comes too late.
func (o *file) use(ctx context.Context) (etag string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return "", vfs.ErrInval
	}
	return o.etag, ctx.Err()
}

// isOf reports whether an answer is of the version that was met first.
func (o *file) isOf(h http.Header) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.etag == "" {
		o.etag = h.Get("Etag")
	}
	return o.etag == h.Get("Etag")
}

// ReadAt implements vfs.File. If the object is replaced meanwhile, that is vfs.ErrStale.
func (o *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	etag, err := o.use(ctx)
	if err != nil || len(p) == 0 {
		return 0, false, err
	}
	if off > maxFile {
		return 0, true, nil
	}
	p = p[:min(len(p), maxRead)]
	q := &bucket.Request{
		Method: http.MethodGet, Name: o.f.root + o.key, Limit: int64(len(p)), Into: p,
		Header: map[string]string{"Range": "bytes=" + strconv.FormatUint(off, 10) + "-" + strconv.FormatUint(off+uint64(len(p))-1, 10)},
	}
	if etag != "" {
		q.Header["If-Match"] = etag
	}
	a, err := o.f.c.Do(ctx, q)
	if r, ok := errors.AsType[*bucket.Refusal](err); ok {
		switch r.Status {
		case http.StatusRequestedRangeNotSatisfiable:
			return o.end(ctx, off, post)
		case http.StatusPreconditionFailed:
			return 0, false, vfs.ErrStale
		}
	}
	if err != nil {
		return 0, false, told(err, vfs.ErrStale)
	}
	size, err := o.span(a, int64(off), int64(len(p)))
	if err != nil {
		return 0, false, err
	}
	attr, err := o.f.described(o.key, a.Header, strconv.FormatInt(size, 10))
	if err != nil {
		return 0, false, err
	}
	if !o.isOf(a.Header) {
		return 0, false, vfs.ErrStale
	}
	if post != nil {
		*post = attr
	}
	content := a.Body
	if a.Status != http.StatusPartialContent {
		content = content[min(int64(off), size):]
	}
	n = copy(p, content)
	return n, int64(off)+int64(n) >= size, nil
}

// span is the size of the object of which an answer has what was asked for.
func (o *file) span(a *bucket.Answer, off, n int64) (size int64, err error) {
	if a.Status != http.StatusPartialContent { // the whole of a small one
		return int64(len(a.Body)), nil
	}
	first, size, err := bucket.ParseRange(a.Header.Get("Content-Range"))
	if err != nil {
		return 0, told(o.f.c.Foreign(err.Error()), vfs.ErrStale)
	}
	if first != off || int64(len(a.Body)) != min(n, size-off) {
		return 0, told(o.f.c.Foreign(fmt.Sprintf("bytes %d to %d of %d are others than asked for", first, first+int64(len(a.Body)), size)), vfs.ErrStale)
	}
	return size, nil
}

// end is a read that begins at the end of the object, or behind it.
func (o *file) end(ctx context.Context, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	h, ok, err := o.f.head(ctx, o.key)
	if err != nil {
		return 0, false, err
	}
	if !ok {
		return 0, false, vfs.ErrStale
	}
	a, err := o.f.described(o.key, h, h.Get("Content-Length"))
	switch {
	case err != nil:
		return 0, false, err
	case !o.isOf(h):
		return 0, false, vfs.ErrStale
	case off < a.Size:
		return 0, false, told(o.f.c.Foreign(fmt.Sprintf("bytes from %d of %d are refused", off, a.Size)), vfs.ErrStale)
	}
	if post != nil {
		*post = a
	}
	return 0, true, nil
}

// WriteAt is vfs.ErrNotSupp, as every change of a file that is there.
func (o *file) WriteAt(ctx context.Context, _ []byte, _ uint64, _ vfs.Stability, _ *vfs.Written) (int, error) {
	return 0, o.refuse(ctx)
}

// Commit is vfs.ErrNotSupp.
func (o *file) Commit(ctx context.Context, _, _ uint64, _ *vfs.Written) error { return o.refuse(ctx) }

// Truncate is vfs.ErrNotSupp.
func (o *file) Truncate(ctx context.Context, _ uint64) (vfs.WCC, error) {
	return vfs.WCC{}, o.refuse(ctx)
}

func (o *file) refuse(ctx context.Context) error {
	if _, err := o.use(ctx); err != nil {
		return err
	}
	return vfs.ErrNotSupp
}

// Close implements vfs.File.
func (o *file) Close(context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return vfs.ErrInval
	}
	o.closed = true
	return nil
}
