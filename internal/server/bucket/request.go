package bucket

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

// Request is one to S3.
type Request struct {
	Method string
	Name   string // of an object in the bucket; "" is the bucket
	Query  url.Values
	Header map[string]string
	Body   []byte
	Sum    object.Sum // of Body
	Limit  int64      // bytes of an answer that is no error; more is object.ErrForeign
	Into   []byte     // holds the answer's body, if that fits and its length is known
}

// emptySum is that of a request without a body.
var emptySum = object.SumOf(nil)

// Answer is what S3 has answered, whole.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Unsure bool // an earlier try may have been executed
}

// lost is a try that had no answer, or no whole one.
type lost struct{ err error }

func (l *lost) Error() string { return l.err.Error() }
func (l *lost) Unwrap() error { return l.err }

// Do sends q until it is answered, at most maxTries times. An answer that is no success is a
// *Refusal. An error Is object.ErrUnknownOutcome if the request changes something and may have been executed.
func (c *Client) Do(ctx context.Context, q *Request) (*Answer, error) {
	unsure, moved, renewed, slowTries, begun := false, false, false, 0, time.Now()
	for try := 1; ; try++ {
		at := time.Now()
		all := patience(try, c.triesLeft(try, slowTries), headTime) + headTime - silentTime
		a, err := c.send(ctx, q, func() { c.silence.waits(c.Place(), begun, 0, all, "") })
		if err == nil {
			c.silence.answers(c.Place())
			a.Unsure = unsure
			return a, nil
		}
		if ctx.Err() != nil {
			err = ctx.Err()
			if unsure || try == 1 {
				err = q.outcome(err, true)
			}
			return nil, err
		}
		r, refused := errors.AsType[*Refusal](err)
		if refused {
			r.Unsure = unsure
		}
		switch {
		case refused && !moved && c.move(r):
			moved = true
			continue
		case refused && !renewed && r.expired():
			c.creds.Expire()
			renewed = true
			continue
		case refused && !r.passes():
			c.silence.answers(c.Place())
			return nil, err
		}
		unsure = unsure || !refused || r.Status != http.StatusServiceUnavailable
		if _, ok := errors.AsType[*slow](err); ok && q.reads() {
			slowTries++
		}
		left := c.triesLeft(try, slowTries)
		if left == 0 {
			return nil, q.outcome(c.tired(err, try), unsure)
		}
		d := pause(try)
		c.silence.waits(c.Place(), begun, d, patience(try, left, time.Since(at)), c.reason(err))
		if err := c.o.Pause(ctx, d); err != nil {
			return nil, q.outcome(err, unsure)
		}
	}
}

// triesLeft is how often a request is sent again after some tries, of which some were too slow.
func (c *Client) triesLeft(tries, slow int) int {
	left := maxTries - tries
	if slow > 0 {
		left = min(left, maxSlowTries-slow)
	}
	if !c.answered.Load() {
		left = min(left, maxFirstTries-tries)
	}
	return max(left, 0)
}

// reads reports whether q reads something, of which the answer has to get on.
func (q *Request) reads() bool { return q.Method == http.MethodGet }

// outcome is the error of a request of which it is not known whether it was executed.
func (q *Request) outcome(err error, unsure bool) error {
	if !unsure || q.Method == http.MethodGet || q.Method == http.MethodHead {
		return err
	}
	return fmt.Errorf("%w: %w", object.ErrUnknownOutcome, err)
}

// ErrSilent says that a store has not answered, or too slowly, each time that it was asked.
var ErrSilent = errors.New("no answer")

// silent is an ErrSilent, in other words.
type silent struct{ error }

func (s *silent) Unwrap() error      { return s.error }
func (*silent) Is(target error) bool { return target == ErrSilent }

// tired is the error behind the last try.
func (c *Client) tired(err error, tries int) error {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return fmt.Errorf("%w: %s, %d times: %w", object.ErrBusy, c.Place(), tries, r)
	}
	if text := err.Error(); strings.Contains(text, "server gave HTTP response to HTTPS client") {
		return fmt.Errorf("%s speaks no TLS: say endpoint=http://... if that is meant", c.Place())
	}
	if _, ok := errors.AsType[*slow](err); ok {
		return &silent{fmt.Errorf("%s answers too slowly, %d times: %w", c.Place(), tries, err)}
	}
	return &silent{fmt.Errorf("%s does not answer, after %d tries (is endpoint= right?): %w", c.Place(), tries, err)}
}

// pause is how long to wait behind a try.
func pause(try int) time.Duration {
	d := longest(try)
	return d/2 + rand.N(d/2)
}

// longest bounds the pause behind a try.
func longest(try int) time.Duration { return min(firstPause<<(try-1), maxPause) }

// send sends q once. It calls silent if no answer begins for silentTime, and as long as the body may take.
func (c *Client) send(ctx context.Context, q *Request, silent func()) (*Answer, error) {
	ctx, cancel := tryTime(ctx, int64(len(q.Body))+q.Limit)
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	req, err := c.sign(ctx, q)
	if err != nil {
		return nil, err
	}
	timer := time.AfterFunc(silentTime+bodyTime(int64(len(q.Body))), silent)
	resp, err := c.client.Do(req)
	timer.Stop()
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // all that matters has been read
	c.answered.Store(true)
	limit := q.Limit
	if resp.StatusCode/100 != 2 {
		limit = MaxError
	}
	var from io.Reader = resp.Body
	if q.reads() {
		p := pace(from, giveUp)
		defer p.timer.Stop()
		from = p
	}
	body, err := readBody(resp, from, limit, q.Into)
	a := &Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}
	switch {
	case a.Status/100 != 2:
		return nil, c.refuse(q, a)
	case errors.Is(err, errEndless):
		return nil, &Refusal{op: q.Method, place: c.Place(), Status: a.Status, foreign: err.Error()}
	case err != nil:
		return nil, c.lost(ctx, err)
	}
	return a, nil
}

// lost is the error of a try, whose context is ctx: why that was given up, if it was.
func (c *Client) lost(ctx context.Context, err error) error {
	if s, ok := errors.AsType[*slow](context.Cause(ctx)); ok {
		return &lost{s}
	}
	return &lost{c.clean(err)}
}

// errEndless is that of an answer with too much in it.
var errEndless = errors.New("it is longer than any answer to that")

// readBody reads an answer from body, into into if it fits, and not more than limit.
func readBody(resp *http.Response, body io.Reader, limit int64, into []byte) ([]byte, error) {
	n := resp.ContentLength
	if resp.Request.Method == http.MethodHead {
		return nil, nil
	}
	if n > limit {
		return nil, errEndless
	}
	if n >= 0 {
		b := into
		if n > int64(len(b)) {
			b = make([]byte, n)
		}
		b = b[:n]
		_, err := io.ReadFull(body, b)
		return b, err
	}
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	if int64(len(b)) > limit {
		return nil, errEndless
	}
	return b, err
}

// sign makes a request of HTTP, with a signature.
func (c *Client) sign(ctx context.Context, q *Request) (*http.Request, error) {
	base, region := c.at()
	u := url.URL{Scheme: base.Scheme, Host: base.Host, Path: base.Path + "/" + q.Name}
	u.RawPath = escape(u.Path)
	u.RawQuery = strings.ReplaceAll(q.Query.Encode(), "+", "%20") // as signatures have it
	req, err := http.NewRequestWithContext(ctx, q.Method, u.String(), bytes.NewReader(q.Body))
	if err != nil {
		return nil, c.clean(err)
	}
	for name, value := range q.Header {
		req.Header.Set(name, value)
	}
	sum := q.Sum
	if len(q.Body) == 0 {
		req.Body, req.GetBody, sum = http.NoBody, nil, emptySum
	}
	req.Header.Set("X-Amz-Content-Sha256", sum.String())
	req.Header.Set("User-Agent", "nfsbox")
	v, err := c.creds.GetWithContext(&credentials.CredContext{Client: c.client, Context: ctx})
	if err != nil || v.AccessKeyID == "" || v.SecretAccessKey == "" {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, errors.New("the credentials cannot be renewed: " + WhereCredentials)
	}
	c.keys.Store(&v)
	return signer.SignV4(*req, v.AccessKeyID, v.SecretAccessKey, v.SessionToken, region), nil
}

// escape is a path as signatures have it: all but the unreserved bytes of RFC 3986, and slashes, is escaped.
func escape(path string) string {
	var b strings.Builder
	for i := range len(path) {
		switch c := path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.~/", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
