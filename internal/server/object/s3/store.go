package s3

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/server/object"
)

const (
	// tail ends the names of objects.
	tail = "!"
	// probePrefix begins names of objects by which Open tries a store. They are no keys, and not listed.
	probePrefix = ".nfsbox-probe-"

	metaSum = "X-Amz-Meta-Nfsbox-Sha256"
	metaPut = "X-Amz-Meta-Nfsbox-Put"
)

// Store is an object.Store in a bucket.
type Store struct {
	c     *bucket.Client
	o     Options
	fresh bool

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
}

// Open opens a store. It lists once, to see whether the bucket is there and the credentials are right; with
// o.Write it also tries whether the store is one that can be written to.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	c, err := bucket.New(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	s := &Store{c: c, o: o}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("s3: %w", err), s.Close())
	}
	return s, nil
}

func (s *Store) begin(ctx context.Context) error {
	page, err := s.c.List(ctx, bucket.ListOptions{Prefix: s.prefix(), Limit: 1})
	if err != nil {
		return err
	}
	s.fresh = len(page.Objects) == 0
	if s.o.Write {
		return s.probe(ctx)
	}
	return nil
}

// Fresh reports whether nothing was there when the store was opened.
func (s *Store) Fresh() bool { return s.fresh }

// probe tries whether a second Put of one name is refused.
func (s *Store) probe(ctx context.Context) error {
	id, err := s.number()
	if err != nil {
		return err
	}
	name := s.prefix() + probePrefix + id
	content := []byte("nfsbox tries whether this store honours If-None-Match, and removes this again.\n")
	_, err = s.upload(ctx, name, content, object.SumOf(content), true)
	if err != nil {
		return fmt.Errorf("trying to write: %w", err)
	}
	_, err = s.upload(ctx, name, content, object.SumOf(content), true)
	if gone := s.remove(ctx, name); gone != nil {
		return fmt.Errorf("trying to delete: %w", gone)
	}
	switch {
	case err == nil:
		return fmt.Errorf("%s ignores If-None-Match: two writers could each overwrite what the other has stored. "+
			"Use a store that honours conditional writes, as AWS S3 and MinIO do", s.c.Place())
	case errors.Is(err, object.ErrExist):
		return nil
	}
	return fmt.Errorf("trying If-None-Match: %w", err)
}

// number is a random number for a Put.
func (s *Store) number() (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(s.o.Rand, b[:]); err != nil {
		return "", fmt.Errorf("a random number: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// enter begins a call, and is an error if the store is closed.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return object.ErrClosed
	}
	s.calls.Add(1)
	return nil
}

// Close implements [object.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	s.c.Close()
	return nil
}

// prefix begins the names of all objects.
func (s *Store) prefix() string {
	if s.o.Prefix == "" {
		return ""
	}
	return s.o.Prefix + "/"
}

// name is that of an object in the bucket.
func (s *Store) name(key string) string { return s.prefix() + key + tail }

// Stat implements [object.Store].
func (s *Store) Stat(ctx context.Context, key string) (object.Info, error) {
	err := object.CheckKey(key)
	if err == nil {
		err = s.enter(ctx)
	}
	if err != nil {
		return object.Info{}, object.Fail("stat", key, err)
	}
	defer s.calls.Done()
	info, _, err := s.head(ctx, key)
	return info, object.Fail("stat", key, err)
}

// head is what is known of an object, and which Put made it.
func (s *Store) head(ctx context.Context, key string) (object.Info, string, error) {
	return s.look(ctx, key, s.name(key))
}

func (s *Store) look(ctx context.Context, key, name string) (object.Info, string, error) {
	a, err := s.c.Do(ctx, &bucket.Request{Method: http.MethodHead, Name: name, Header: map[string]string{"X-Amz-Checksum-Mode": "ENABLED"}})
	if err != nil {
		return object.Info{}, "", err
	}
	info, err := s.info(key, a)
	info.Size = -1
	if n, bad := bucket.ParseSize(a.Header.Get("Content-Length")); bad == nil {
		info.Size = n
	} else if err == nil {
		err = s.c.Foreign("the answer has no length")
	}
	if err != nil {
		return object.Info{}, "", err
	}
	return info, a.Header.Get(metaPut), nil
}

// info is what an answer's header says of an object, but for its size.
func (s *Store) info(key string, a *bucket.Answer) (object.Info, error) {
	if a.Header.Get("Etag") == "" {
		return object.Info{}, s.c.Foreign("the answer has no ETag")
	}
	mod, err := http.ParseTime(a.Header.Get("Last-Modified"))
	if err != nil {
		return object.Info{}, s.c.Foreign("the answer has no time of change")
	}
	meta := a.Header.Get(metaSum)
	if meta == "" {
		return object.Info{}, fmt.Errorf("%w: it has no checksum of nfsbox: another program has put it there", object.ErrCorrupted)
	}
	sum, err := object.ParseSum(meta)
	if err != nil {
		return object.Info{}, fmt.Errorf("%w: %w", object.ErrCorrupted, err)
	}
	if theirs, ok := bucket.SumOf(a.Header); ok && theirs != sum {
		return object.Info{}, fmt.Errorf("%w: the store has computed the SHA-256 %v, and %v was put", object.ErrCorrupted, theirs, sum)
	}
	return object.Info{Key: key, ModTime: mod, Sum: sum}, nil
}

// Delete implements [object.Store]. In a bucket with versions the bytes stay, as an older one.
func (s *Store) Delete(ctx context.Context, key string) error {
	err := object.CheckKey(key)
	if err == nil {
		err = s.enter(ctx)
	}
	if err != nil {
		return object.Fail("delete", key, err)
	}
	defer s.calls.Done()
	return object.Fail("delete", key, s.remove(ctx, s.name(key)))
}

func (s *Store) remove(ctx context.Context, name string) error {
	a, err := s.c.Do(ctx, &bucket.Request{Method: http.MethodDelete, Name: name, Limit: bucket.MaxError})
	if r, ok := errors.AsType[*bucket.Refusal](err); ok && r.Code == "NoSuchKey" {
		return nil
	}
	if err != nil || a.Status == http.StatusNoContent {
		return err
	}
	// Some stores answer 200, and so do portals, which have deleted nothing.
	_, _, err = s.look(ctx, name, name)
	switch {
	case errors.Is(err, object.ErrNotExist):
		return nil
	case err == nil || errors.Is(err, object.ErrCorrupted):
		return s.c.Foreign("a DELETE was answered by 200, and the object is still there")
	}
	return err
}

// modTime is when the store has sent an answer, by its clock.
func modTime(h http.Header) (time.Time, bool) {
	t, err := http.ParseTime(h.Get("Date"))
	return t, err == nil
}
