package s3

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

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// List implements [object.Store].
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (object.Page, error) {
	limit, err := object.CheckList(prefix, after, limit)
	if err == nil {
		err = s.enter(ctx)
	}
	if err != nil {
		return object.Page{}, object.Fail("list", prefix, err)
	}
	defer s.calls.Done()
	p, err := s.list(ctx, s.prefix()+prefix, after, limit)
	return p, object.Fail("list", prefix, err)
}

func (s *Store) list(ctx context.Context, prefix, after string, limit int) (object.Page, error) {
	if after != "" {
		after = s.name(after)
	}
	token := ""
	for range maxEmpty {
		page, err := s.page(ctx, prefix, after, token, limit)
		if err != nil {
			return object.Page{}, err
		}
		p := object.Page{More: page.truncated}
		for _, o := range page.Contents {
			info, ok, err := s.listed(&o)
			if err != nil {
				return object.Page{}, err
			}
			if ok {
				p.Objects = append(p.Objects, info)
			}
		}
		if len(p.Objects) > 0 || !p.More {
			return p, nil
		}
		token = page.NextContinuationToken
	}
	return object.Page{}, s.foreign(fmt.Sprintf("%d pages of a listing have no object, and there are more", maxEmpty))
}

// listed is an object of a listing. It is false for what is not the store's and stands in nobody's way: folders
// that consoles make, and what Open has tried a store with.
func (s *Store) listed(o *entry) (object.Info, bool, error) {
	name := strings.TrimPrefix(o.Key, s.prefix())
	if strings.HasPrefix(name, probePrefix) || o.size == 0 && (name == "" || strings.HasSuffix(name, "/")) {
		return object.Info{}, false, nil
	}
	key, ok := strings.CutSuffix(name, tail)
	if !ok || object.CheckKey(key) != nil {
		return object.Info{}, false, fmt.Errorf("%w: %q in the bucket was not put there by nfsbox: move it away, or use another PREFIX",
			object.ErrForeign, s.show(o.Key))
	}
	return object.Info{Key: key, Size: o.size, ModTime: o.mod}, true, nil
}

// page asks for a page of a listing, and proves it.
func (s *Store) page(ctx context.Context, prefix, after, token string, limit int) (*listResult, error) {
	q := url.Values{"list-type": {"2"}, "encoding-type": {"url"}, "max-keys": {strconv.Itoa(limit)}, "prefix": {prefix}}
	if after != "" {
		q.Set("start-after", after)
	}
	if token != "" {
		q.Set("continuation-token", token)
	}
	a, err := s.do(ctx, &request{method: http.MethodGet, query: q, limit: maxList})
	if err != nil {
		return nil, err
	}
	page, err := decodeList(a.body)
	if err == nil {
		err = page.prove(s.o.Bucket, prefix, after, limit)
	}
	if err != nil {
		return nil, s.foreign("the answer to a listing is none: " + s.show(err.Error()))
	}
	return page, nil
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

	truncated bool
}

type entry struct {
	Key          string
	LastModified string
	Size         string `xml:"Size"`

	mod  time.Time
	size int64
}

// decodeList reads a listing: one document, and nothing behind it.
func decodeList(body []byte) (*listResult, error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	var l listResult
	if err := d.Decode(&l); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is empty")
		}
		return nil, err
	}
	for {
		switch t, err := d.Token(); {
		case errors.Is(err, io.EOF):
			return &l, l.decode()
		case err != nil:
			return nil, err
		default:
			if text, ok := t.(xml.CharData); !ok || len(bytes.TrimSpace(text)) > 0 {
				return nil, errors.New("something stands behind its end")
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
	for i := range l.Contents {
		o := &l.Contents[i]
		if o.Key, err = plain(o.Key); err != nil {
			return err
		}
		if o.size, err = parseSize(o.Size); err != nil {
			return errors.New("a size is no number")
		}
		if o.mod, err = time.Parse(time.RFC3339Nano, o.LastModified); err != nil {
			return errors.New("a time is none")
		}
	}
	return nil
}

// prove compares a listing with what was asked for.
func (l *listResult) prove(bucket, prefix, after string, limit int) error {
	switch {
	case l.Name != bucket:
		return fmt.Errorf("it is of the bucket %q, and %q was asked for", l.Name, bucket)
	case l.Prefix != prefix:
		return fmt.Errorf("it is of the prefix %q, and %q was asked for", l.Prefix, prefix)
	case len(l.Contents) > limit:
		return fmt.Errorf("it has %d objects, and %d were asked for", len(l.Contents), limit)
	case l.truncated && l.NextContinuationToken == "":
		return errors.New("it is not the end, and does not say how to go on")
	}
	for i := range l.Contents {
		name := l.Contents[i].Key
		if !strings.HasPrefix(name, prefix) {
			return fmt.Errorf("it has %q, which does not begin with %q", name, prefix)
		}
		if name <= after && (after != "" || i > 0) {
			return fmt.Errorf("it has %q behind %q", name, after)
		}
		after = name
	}
	return nil
}
