package s3

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

const (
	// awsRegion is where signatures say they are if nothing else is known.
	awsRegion = "us-east-1"
	awsHost   = "amazonaws.com"

	// tail ends the names of objects.
	tail = "!"
	// probePrefix begins names of objects by which Open tries a store. They are no keys, and not listed.
	probePrefix = ".nfsbox-probe-"

	metaSum = "X-Amz-Meta-Nfsbox-Sha256"
	metaPut = "X-Amz-Meta-Nfsbox-Put"
	amzSum  = "X-Amz-Checksum-Sha256"
)

// Store is an object.Store in a bucket.
type Store struct {
	o        Options
	endpoint *url.URL // nil: AWS
	client   *http.Client
	creds    *credentials.Credentials
	keys     atomic.Pointer[credentials.Value] // that were used last, which no message shows
	answered atomic.Bool                       // the store has answered something
	fresh    bool

	mu     sync.Mutex
	region string // as options, environment or the store said; "" is not known
	closed bool
	calls  sync.WaitGroup
}

// Open opens a store. It lists once, to see whether the bucket is there and the credentials are right; with
// o.Write it also tries whether the store is one that can be written to.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	for _, name := range []string{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"} {
		if o.Endpoint == "" {
			o.Endpoint = os.Getenv(name)
		}
	}
	endpoint, err := parseEndpoint(o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("s3: AWS_ENDPOINT_URL: %w", err)
	}
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if o.Region == "" {
			o.Region = os.Getenv(name)
		}
	}
	if err := checkRegion(o.Region); err != nil {
		return nil, fmt.Errorf("s3: AWS_REGION: %w", err)
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Pause == nil {
		o.Pause = wait
	}
	s := &Store{o: o, endpoint: endpoint, region: o.Region, creds: o.creds, client: newClient()}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("s3: %w", err), s.Close())
	}
	return s, nil
}

func newClient() *http.Client {
	return &http.Client{
		// A redirect would take signed requests to a place that was not named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: dialTime}).DialContext,
			TLSHandshakeTimeout:   dialTime,
			ResponseHeaderTimeout: headTime,
			MaxConnsPerHost:       maxConns,
			MaxIdleConnsPerHost:   maxIdle,
			IdleConnTimeout:       idleTime,
			DisableCompression:    true, // an object is what it is
		},
	}
}

func (s *Store) begin(ctx context.Context) (err error) {
	if s.creds == nil {
		if s.creds, err = findCredentials(ctx, s.client); err != nil {
			return err
		}
	}
	page, err := s.page(ctx, s.prefix(), "", "", 1)
	if err != nil {
		return err
	}
	s.fresh = len(page.Contents) == 0
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
			"Use a store that honours conditional writes, as AWS S3 and MinIO do", s.place())
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
	s.client.CloseIdleConnections()
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

// at is where requests go, with the bucket if it stands in the path, and the region.
func (s *Store) at() (url.URL, string) {
	s.mu.Lock()
	region := s.region
	s.mu.Unlock()
	if region == "" {
		region = awsRegion
	}
	u := url.URL{Scheme: "https", Host: "s3." + region + "." + awsHost}
	inPath := strings.Contains(s.o.Bucket, ".") // no certificate has a host's name with more dots
	if s.endpoint != nil {
		u, inPath = *s.endpoint, true
	}
	if s.o.PathStyle != nil {
		inPath = *s.o.PathStyle
	}
	if inPath {
		u.Path = "/" + s.o.Bucket
	} else {
		u.Host = s.o.Bucket + "." + u.Host
	}
	return u, region
}

// place is the store, for messages.
func (s *Store) place() string {
	u, _ := s.at()
	return u.Host
}

// move takes over the region that an answer says, unless one was given. It is false if that is nothing new.
func (s *Store) move(r *refusal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Region != "" || r.region == "" || r.region == s.region || r.status < 300 || r.status == http.StatusNotFound {
		return false
	}
	s.region = r.region
	return true
}

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
	a, err := s.do(ctx, &request{method: http.MethodHead, name: name, header: map[string]string{"X-Amz-Checksum-Mode": "ENABLED"}})
	if err != nil {
		return object.Info{}, "", err
	}
	info, err := s.info(key, a)
	info.Size = -1
	if n, bad := parseSize(a.header.Get("Content-Length")); bad == nil {
		info.Size = n
	} else if err == nil {
		err = s.foreign("the answer has no length")
	}
	if err != nil {
		return object.Info{}, "", err
	}
	return info, a.header.Get(metaPut), nil
}

// info is what an answer's header says of an object, but for its size.
func (s *Store) info(key string, a *answer) (object.Info, error) {
	if a.header.Get("Etag") == "" {
		return object.Info{}, s.foreign("the answer has no ETag")
	}
	mod, err := http.ParseTime(a.header.Get("Last-Modified"))
	if err != nil {
		return object.Info{}, s.foreign("the answer has no time of change")
	}
	meta := a.header.Get(metaSum)
	if meta == "" {
		return object.Info{}, fmt.Errorf("%w: it has no checksum of nfsbox: another program has put it there", object.ErrCorrupted)
	}
	sum, err := object.ParseSum(meta)
	if err != nil {
		return object.Info{}, fmt.Errorf("%w: %w", object.ErrCorrupted, err)
	}
	if theirs, ok := storeSum(a.header); ok && theirs != sum {
		return object.Info{}, fmt.Errorf("%w: the store has computed the SHA-256 %v, and %v was put", object.ErrCorrupted, theirs, sum)
	}
	return object.Info{Key: key, ModTime: mod, Sum: sum}, nil
}

// storeSum is the checksum that the store has computed. One of parts ("...-2") is none.
func storeSum(h http.Header) (sum object.Sum, ok bool) {
	b, err := base64.StdEncoding.DecodeString(h.Get(amzSum))
	if err != nil || len(b) != len(sum) {
		return sum, false
	}
	return object.Sum(b), true
}

// foreign is the error of an answer that is not S3's.
func (s *Store) foreign(why string) error {
	return fmt.Errorf("%w: what answers at %s is not S3: correct endpoint=, or sign in at the network's portal or proxy: %s",
		object.ErrForeign, s.place(), why)
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
	a, err := s.do(ctx, &request{method: http.MethodDelete, name: name, limit: maxError})
	if r, ok := errors.AsType[*refusal](err); ok && r.code == "NoSuchKey" {
		return nil
	}
	if err != nil || a.status == http.StatusNoContent {
		return err
	}
	// Some stores answer 200, and so do portals, which have deleted nothing.
	_, _, err = s.look(ctx, name, name)
	switch {
	case errors.Is(err, object.ErrNotExist):
		return nil
	case err == nil || errors.Is(err, object.ErrCorrupted):
		return s.foreign("a DELETE was answered by 200, and the object is still there")
	}
	return err
}

// modTime is when the store has sent an answer, by its clock.
func modTime(h http.Header) (time.Time, bool) {
	t, err := http.ParseTime(h.Get("Date"))
	return t, err == nil
}
