package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/server/object"
)

// readChunk is how many bytes of a reader are read at a time, between looks at the context.
const readChunk = 1 << 20

// Put implements [object.Store]. It holds the content in memory.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	info, err := s.put(ctx, key, r, o)
	return info, object.Fail("put", key, err)
}

func (s *Store) put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	if err := object.CheckKey(key); err != nil {
		return object.Info{}, err
	}
	if o.Size > MaxObject {
		return object.Info{}, tooLarge()
	}
	if err := s.enter(ctx); err != nil {
		return object.Info{}, err
	}
	defer s.calls.Done()
	content, err := readContent(ctx, r, o.Size)
	info := object.Info{Key: key, Size: int64(len(content)), Sum: object.SumOf(content)}
	if err == nil {
		err = o.Check(info.Size, info.Sum)
	}
	if o.IfAbsent && errors.Is(err, object.ErrMismatch) {
		// The object that is there decides, whatever the content: a store asks for it last.
		if _, _, there := s.head(ctx, key); there == nil {
			err = object.ErrExist
		}
	}
	if err != nil {
		return object.Info{}, err
	}
	info.ModTime, err = s.upload(ctx, s.name(key), content, info.Sum, o.IfAbsent)
	if err != nil {
		return object.Info{}, err
	}
	return info, nil
}

func tooLarge() error {
	return fmt.Errorf("%w: more than %d MiB", object.ErrTooLarge, MaxObject>>20)
}

// readContent reads r to its end, or to one byte beyond what it may return.
func readContent(ctx context.Context, r io.Reader, size int64) ([]byte, error) {
	limit, short := int64(MaxObject), tooLarge()
	if size >= 0 {
		limit, short = size, fmt.Errorf("%w: more than %d bytes came", object.ErrMismatch, size)
	}
	var all bytes.Buffer
	all.Grow(int(max(size, 0)) + bytes.MinRead)
	for part := (&io.LimitedReader{R: r}); ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		part.N = readChunk
		n, err := all.ReadFrom(part)
		switch {
		case err != nil:
			return nil, err
		case int64(all.Len()) > limit:
			return nil, short
		case n < readChunk:
			return all.Bytes(), ctx.Err()
		}
	}
}

// upload puts an object, and returns when that was by the store's clock.
func (s *Store) upload(ctx context.Context, name string, content []byte, sum object.Sum, ifAbsent bool) (time.Time, error) {
	id, err := s.number()
	if err != nil {
		return time.Time{}, err
	}
	q := &bucket.Request{Method: http.MethodPut, Name: name, Body: content, Sum: sum, Limit: bucket.MaxError, Header: map[string]string{
		bucket.SumHeader: bucket.FormatSum(sum),
		metaSum:          sum.String(),
		metaPut:          id,
		"Content-Type":   "application/octet-stream",
	}}
	if ifAbsent {
		q.Header["If-None-Match"] = "*"
	}
	a, err := s.c.Do(ctx, q)
	if r, ok := errors.AsType[*bucket.Refusal](err); ok && r.Status == http.StatusPreconditionFailed {
		// A try whose answer was lost may have been the one that was first, and so may one that a proxy has repeated.
		return s.settle(ctx, name, sum, id, object.ErrExist)
	}
	if err != nil {
		return time.Time{}, err
	}
	if theirs, ok := bucket.SumOf(a.Header); ok && theirs != sum {
		return time.Time{}, fmt.Errorf("%w: the store has computed the SHA-256 %v, and %v was put", object.ErrCorrupted, theirs, sum)
	}
	if t, ok := modTime(a.Header); ok && a.Header.Get("Etag") != "" {
		return t, nil
	}
	return s.settle(ctx, name, sum, id, s.c.Foreign("a PUT was answered by 200, and the object is not there"))
}

// settle looks whether the Put of that number has been made. If another object is there the error is other.
func (s *Store) settle(ctx context.Context, name string, sum object.Sum, id string, other error) (time.Time, error) {
	info, by, err := s.look(ctx, name, name)
	switch {
	case err == nil && by == id && info.Sum == sum:
		return info.ModTime, nil
	case err == nil || errors.Is(err, object.ErrCorrupted):
		return time.Time{}, other
	case errors.Is(err, object.ErrNotExist) && !errors.Is(other, object.ErrExist):
		return time.Time{}, other
	case errors.Is(err, object.ErrNotExist):
		// It was there, and has been deleted meanwhile.
		return time.Time{}, fmt.Errorf("%w: the object was there, and has gone", object.ErrBusy)
	}
	return time.Time{}, fmt.Errorf("%w: %w", object.ErrUnknownOutcome, err)
}
