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
	a, err := c.Do(ctx, q)
	if err != nil {
		return err
	}
	var done struct {
		XMLName xml.Name `xml:"CopyObjectResult"`
		ETag    string
	}
	return c.late(q, a, &done, func() bool { return done.ETag != "" })
}

// late reads an answer of status 200 that may be an error all the same. good says whether into has what it needs.
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
