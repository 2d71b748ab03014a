package bucket

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ListOptions say which page of a listing is asked for.
type ListOptions struct {
	Prefix string // of all names
	// Dirs has the names that have a "/" behind Prefix stand as one, with that "/": Page.Dirs.
	Dirs  bool
	After string // names come behind it
	Token string // of the page before; After is the last name of that then
	Limit int    // of names and Dirs, 1 to 1000
}

// Page is a part of a listing, in order of names.
type Page struct {
	Objects []Listed
	Dirs    []string
	More    bool
	Token   string // of the next page
}

// Listed is an object of a listing.
type Listed struct {
	Name string
	Mod  time.Time
	Size int64
}

// List asks for a page of a listing, and proves it.
func (c *Client) List(ctx context.Context, o ListOptions) (*Page, error) {
	q := url.Values{"list-type": {"2"}, "encoding-type": {"url"}, "max-keys": {strconv.Itoa(o.Limit)}, "prefix": {o.Prefix}}
	if o.Dirs {
		q.Set("delimiter", "/")
	}
	switch {
	case o.Token != "":
		q.Set("continuation-token", o.Token)
	case o.After != "":
		q.Set("start-after", o.After)
	}
	a, err := c.Do(ctx, &Request{Method: http.MethodGet, Query: q, Limit: maxList})
	if err != nil {
		return nil, err
	}
	l, err := decodeList(a.Body)
	if err == nil {
		err = l.prove(c.o.Bucket, &o)
	}
	if err != nil {
		return nil, c.Foreign("the answer to a listing is none: " + c.Show(err.Error()))
	}
	return l.page(), nil
}

// listResult is the answer to ListObjectsV2, as far as it matters.
type listResult struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	Name                  string
	Prefix                string
	EncodingType          string
	IsTruncated           string
	NextContinuationToken string
	Contents              []entry
	CommonPrefixes        []struct{ Prefix string }

	truncated bool
}

type entry struct {
	Key          string
	LastModified string
	Size         string `xml:"Size"`

	mod  time.Time
	size int64
}

func (l *listResult) page() *Page {
	p := &Page{More: l.truncated, Token: l.NextContinuationToken}
	for i := range l.Contents {
		o := &l.Contents[i]
		p.Objects = append(p.Objects, Listed{o.Key, o.mod, o.size})
	}
	for i := range l.CommonPrefixes {
		p.Dirs = append(p.Dirs, l.CommonPrefixes[i].Prefix)
	}
	return p
}

// decodeList reads a listing: one document, and nothing behind it.
func decodeList(body []byte) (*listResult, error) {
	var l listResult
	if err := decode(body, &l); err != nil {
		return nil, err
	}
	return &l, l.decode()
}

// decode reads one document of XML, with nothing behind it.
func decode(body []byte, into any) error {
	d := xml.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("it is empty")
		}
		return err
	}
	for {
		switch t, err := d.Token(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		default:
			if text, ok := t.(xml.CharData); !ok || len(bytes.TrimSpace(text)) > 0 {
				return errors.New("something stands behind its end")
			}
		}
	}
}

// decode takes the escapes out, and reads numbers and times.
func (l *listResult) decode() (err error) {
	switch l.IsTruncated {
	case "true":
		l.truncated = true
	case "false":
	default:
		return errors.New("it does not say whether there is more")
	}
	plain := func(s string) (string, error) { return s, nil }
	switch l.EncodingType {
	case "url":
		plain = url.QueryUnescape
	case "":
	default:
		return errors.New("its keys are in an unknown form")
	}
	if l.Prefix, err = plain(l.Prefix); err != nil {
		return err
	}
	for i := range l.CommonPrefixes {
		p := &l.CommonPrefixes[i]
		if p.Prefix, err = plain(p.Prefix); err != nil {
			return err
		}
	}
	for i := range l.Contents {
		o := &l.Contents[i]
		if o.Key, err = plain(o.Key); err != nil {
			return err
		}
		if o.size, err = ParseSize(o.Size); err != nil {
			return errors.New("a size is no number")
		}
		if o.mod, err = time.Parse(time.RFC3339Nano, o.LastModified); err != nil {
			return errors.New("a time is none")
		}
	}
	return nil
}

// prove compares a listing with what was asked for.
func (l *listResult) prove(bucket string, o *ListOptions) error {
	n := len(l.Contents) + len(l.CommonPrefixes)
	switch {
	case l.Name != bucket:
		return fmt.Errorf("it is of the bucket %q, and %q was asked for", l.Name, bucket)
	case l.Prefix != o.Prefix:
		return fmt.Errorf("it is of the prefix %q, and %q was asked for", l.Prefix, o.Prefix)
	case n > o.Limit:
		return fmt.Errorf("it has %d objects, and %d were asked for", n, o.Limit)
	case l.truncated && l.NextContinuationToken == "":
		return errors.New("it is not the end, and does not say how to go on")
	case !o.Dirs && len(l.CommonPrefixes) > 0:
		return errors.New("it has prefixes, which were not asked for")
	}
	names := make([]string, 0, n)
	for i := range l.Contents {
		name := l.Contents[i].Key
		if o.Dirs && strings.Contains(strings.TrimPrefix(name, o.Prefix), "/") {
			return fmt.Errorf("it has %q, of which a prefix was asked for", name)
		}
		names = append(names, name)
	}
	if err := ordered(names, o); err != nil {
		return err
	}
	names = names[:0]
	for i := range l.CommonPrefixes {
		name := l.CommonPrefixes[i].Prefix
		rest := strings.TrimPrefix(name, o.Prefix)
		if strings.IndexByte(rest, '/') != len(rest)-1 || rest == "" {
			return fmt.Errorf("it has the prefix %q, which is none", name)
		}
		names = append(names, name)
	}
	return ordered(names, o)
}

// ordered returns an error unless names are in order, with the prefix and behind what was asked for.
func ordered(names []string, o *ListOptions) error {
	after := o.After
	for i, name := range names {
		if !strings.HasPrefix(name, o.Prefix) {
			return fmt.Errorf("it has %q, which does not begin with %q", name, o.Prefix)
		}
		if name <= after && (after != "" || i > 0) {
			return fmt.Errorf("it has %q behind %q", name, after)
		}
		after = name
	}
	return nil
}
