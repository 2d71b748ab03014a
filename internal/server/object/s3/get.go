package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/server/object"
)

// Get implements [object.Store]. What it opens is in memory when it returns: so a connection that is cut in the
// middle never joins two versions of an object. More than MaxObject at once is object.ErrTooLarge.
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
	err := object.CheckKey(key)
	if err == nil {
		err = s.enter(ctx)
	}
	if err != nil {
		return nil, object.Info{}, object.Fail("get", key, err)
	}
	defer s.calls.Done()
	content, info, err := s.get(ctx, key, off, n)
	if err != nil {
		return nil, object.Info{}, object.Fail("get", key, err)
	}
	damaged := off == 0 && int64(len(content)) == info.Size && object.SumOf(content) != info.Sum
	return &reader{ctx: ctx, r: bytes.NewReader(content), key: key, damaged: damaged}, info, nil
}

func (s *Store) get(ctx context.Context, key string, off, n int64) ([]byte, object.Info, error) {
	if off < 0 || n == 0 {
		return s.nothing(ctx, key, off, n)
	}
	q := &bucket.Request{Method: http.MethodGet, Name: s.name(key), Limit: MaxObject, Header: map[string]string{}}
	if off == 0 && n < 0 {
		q.Header["X-Amz-Checksum-Mode"] = "ENABLED"
	} else {
		q.Header["Range"] = "bytes=" + strconv.FormatInt(off, 10) + "-"
		if n > 0 && off <= math.MaxInt64-n {
			q.Header["Range"] += strconv.FormatInt(off+n-1, 10)
		}
	}
	a, err := s.c.Do(ctx, q)
	if r, ok := errors.AsType[*bucket.Refusal](err); ok && r.Status == http.StatusRequestedRangeNotSatisfiable {
		return s.nothing(ctx, key, off, n) // which is behind the end, or at it
	}
	if err != nil {
		return nil, object.Info{}, err
	}
	info, err := s.info(key, a)
	if err != nil {
		return nil, object.Info{}, err
	}
	content := a.Body
	if a.Status != http.StatusPartialContent { // the whole, asked for or not
		info.Size = int64(len(content))
		if n, err = object.Range(info.Size, off, n); err != nil {
			return nil, object.Info{}, err
		}
		return content[off : off+n], info, nil
	}
	first, size, err := bucket.ParseRange(a.Header.Get("Content-Range"))
	if err != nil {
		return nil, object.Info{}, s.c.Foreign(err.Error())
	}
	info.Size = size
	want, err := object.Range(size, off, n)
	if err != nil || first != off || want != int64(len(content)) {
		return nil, object.Info{}, s.c.Foreign(fmt.Sprintf("bytes %d to %d of %d are others than asked for", first, first+int64(len(content)), size))
	}
	return content, info, nil
}

// nothing is a Get that yields no bytes, or is out of the object.
func (s *Store) nothing(ctx context.Context, key string, off, n int64) ([]byte, object.Info, error) {
	info, _, err := s.head(ctx, key)
	if err != nil {
		return nil, object.Info{}, err
	}
	n, err = object.Range(info.Size, off, n)
	if err == nil && n > 0 {
		err = fmt.Errorf("%w: the store refuses %d bytes from %d of %d", object.ErrCorrupted, n, off, info.Size)
	}
	return nil, info, err
}

// reader is what Get returns.
type reader struct {
	ctx     context.Context
	r       *bytes.Reader
	key     string
	damaged bool // the bytes are not those that were put
	closed  bool
}

func (r *reader) Read(p []byte) (int, error) {
	if r.closed {
		return 0, object.Fail("get", r.key, object.ErrClosed)
	}
	if err := r.ctx.Err(); err != nil {
		return 0, object.Fail("get", r.key, err)
	}
	n, err := r.r.Read(p)
	if errors.Is(err, io.EOF) && r.damaged {
		err = object.Fail("get", r.key, object.ErrCorrupted)
	}
	return n, err
}

func (r *reader) Close() error {
	r.closed = true
	r.r.Reset(nil)
	return nil
}
