package bucket

import (
	"context"
	"encoding/xml"
	"errors"
	"net/http"
)

// Source is an object as a request to copy it names it (x-amz-copy-source).
func (c *Client) Source(name string) string { return escape(c.o.Bucket + "/" + name) }

// Copy sends a request to copy an object. Its answer begins before it is known whether the copy succeeds, so that an error may stand
// in one of status 200.
func (c *Client) Copy(ctx context.Context, q *Request) error {
	var done struct {
		XMLName xml.Name `xml:"CopyObjectResult"`
		ETag    string
	}
	return c.doLate(ctx, q, &done, func() bool { return done.ETag != "" })
}

// doLate sends a request of which an answer of status 200 may be an error all the same. If that passes, it is sent again.
func (c *Client) doLate(ctx context.Context, q *Request, into any, good func() bool) error {
	for try := 1; ; try++ {
		a, err := c.Do(ctx, q)
		if err != nil {
			return err
		}
		err = c.late(q, a, into, good)
		if r, refused := errors.AsType[*Refusal](err); !refused || !r.passes() || try == maxLate {
			return err
		}
		if err := c.o.Pause(ctx, pause(try)); err != nil {
			return q.outcome(err, true)
		}
	}
}

// late reads an answer of status 200. good says whether into has what it needs.
func (c *Client) late(q *Request, a *Answer, into any, good func() bool) error {
	err := decode(a.Body, into)
	if err == nil && good() {
		return nil
	}
	var e struct {
		XMLName xml.Name `xml:"Error"`
	}
	if decode(a.Body, &e) == nil {
		r := c.refuse(q, &Answer{Status: http.StatusInternalServerError, Header: a.Header, Body: a.Body})
		r.Unsure = a.Unsure
		return r
	}
	if err == nil {
		err = errors.New("it lacks an ETag")
	}
	return c.Foreign("the answer is none: " + c.Show(err.Error()))
}
