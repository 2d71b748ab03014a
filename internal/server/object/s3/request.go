package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// request is one to S3.
type request struct {
	method string
	name   string // of an object in the bucket; "" is the bucket
	query  url.Values
	header map[string]string
	body   []byte
	sum    object.Sum // of body
	limit  int64      // bytes of an answer that is no error; more is object.ErrForeign
}

// emptySum is that of a request without a body.
var emptySum = object.SumOf(nil)

// answer is what S3 has answered, whole.
type answer struct {
	status int
	header http.Header
	body   []byte
	unsure bool // an earlier try may have been executed
}

// lost is a try that had no answer, or no whole one.
type lost struct{ err error }

func (l *lost) Error() string { return l.err.Error() }
func (l *lost) Unwrap() error { return l.err }

// do sends q until it is answered, at most maxTries times. An answer that is no success is a
// *refusal. An error Is object.ErrUnknownOutcome if the request changes something and may have been executed.
func (s *Store) do(ctx context.Context, q *request) (*answer, error) {
	unsure, moved, renewed := false, false, false
	for try := 1; ; try++ {
		a, err := s.send(ctx, q)
		if err == nil {
			a.unsure = unsure
			return a, nil
		}
		if ctx.Err() != nil {
			err = ctx.Err()
			if unsure || try == 1 {
				err = q.outcome(err, true)
			}
			return nil, err
		}
		r, refused := errors.AsType[*refusal](err)
		if refused {
			r.unsure = unsure
		}
		switch {
		case refused && !moved && s.move(r):
			moved = true
			continue
		case refused && !renewed && r.expired():
			s.creds.Expire()
			renewed = true
			continue
		case refused && !r.passes():
			return nil, err
		}
		unsure = unsure || !refused || r.status != http.StatusServiceUnavailable
		if try == maxTries || try == maxFirstTries && !s.answered.Load() {
			return nil, q.outcome(s.tired(err, try), unsure)
		}
		if err := s.o.Pause(ctx, pause(try)); err != nil {
			return nil, q.outcome(err, unsure)
		}
	}
}

// outcome is the error of a request of which it is not known whether it was executed.
func (q *request) outcome(err error, unsure bool) error {
	if !unsure || q.method == http.MethodGet || q.method == http.MethodHead {
		return err
	}
	return fmt.Errorf("%w: %w", object.ErrUnknownOutcome, err)
}

// tired is the error behind the last try.
func (s *Store) tired(err error, tries int) error {
	if r, ok := errors.AsType[*refusal](err); ok {
		return fmt.Errorf("%w: %s, %d times: %w", object.ErrBusy, s.place(), tries, r)
	}
	if text := err.Error(); strings.Contains(text, "server gave HTTP response to HTTPS client") {
		return fmt.Errorf("%s speaks no TLS: say endpoint=http://... if that is meant", s.place())
	}
	return fmt.Errorf("%s does not answer, after %d tries (is endpoint= right?): %w", s.place(), tries, err)
}

// pause is how long to wait behind a try.
func pause(try int) time.Duration {
	d := min(firstPause<<(try-1), maxPause)
	return d/2 + rand.N(d/2)
}

// wait waits by the clock.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send sends q once.
func (s *Store) send(ctx context.Context, q *request) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, baseTime+time.Duration(int64(len(q.body))+q.limit)*time.Second/slowRate)
	defer cancel()
	req, err := s.sign(ctx, q)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, &lost{s.clean(err)}
	}
	defer func() { _ = resp.Body.Close() }() // all that matters has been read
	s.answered.Store(true)
	limit := q.limit
	if resp.StatusCode/100 != 2 {
		limit = maxError
	}
	body, err := readBody(resp, limit)
	a := &answer{status: resp.StatusCode, header: resp.Header, body: body}
	switch {
	case a.status/100 != 2:
		return nil, s.refuse(q, a)
	case errors.Is(err, errEndless):
		return nil, &refusal{op: q.method, place: s.place(), status: a.status, foreign: err.Error()}
	case err != nil:
		return nil, &lost{s.clean(err)}
	}
	return a, nil
}

// errEndless is that of an answer with too much in it.
var errEndless = errors.New("it is longer than any answer to that")

// readBody reads an answer, and not more than limit.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	n := resp.ContentLength
	if resp.Request.Method == http.MethodHead {
		return nil, nil
	}
	if n > limit {
		return nil, errEndless
	}
	if n >= 0 {
		b := make([]byte, n)
		_, err := io.ReadFull(resp.Body, b)
		return b, err
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if int64(len(b)) > limit {
		return nil, errEndless
	}
	return b, err
}

// sign makes a request of HTTP, with a signature.
func (s *Store) sign(ctx context.Context, q *request) (*http.Request, error) {
	base, region := s.at()
	u := url.URL{Scheme: base.Scheme, Host: base.Host, Path: base.Path + "/" + q.name}
	u.RawQuery = strings.ReplaceAll(q.query.Encode(), "+", "%20") // as signatures have it
	req, err := http.NewRequestWithContext(ctx, q.method, u.String(), bytes.NewReader(q.body))
	if err != nil {
		return nil, s.clean(err)
	}
	for name, value := range q.header {
		req.Header.Set(name, value)
	}
	sum := q.sum
	if len(q.body) == 0 {
		req.Body, req.GetBody, sum = http.NoBody, nil, emptySum
	}
	req.Header.Set("X-Amz-Content-Sha256", sum.String())
	req.Header.Set("User-Agent", "nfsbox")
	v, err := s.creds.GetWithContext(&credentials.CredContext{Client: s.client, Context: ctx})
	if err != nil || v.AccessKeyID == "" || v.SecretAccessKey == "" {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, errors.New("the credentials cannot be renewed: " + whereCredentials)
	}
	s.keys.Store(&v)
	return signer.SignV4(*req, v.AccessKeyID, v.SecretAccessKey, v.SessionToken, region), nil
}
