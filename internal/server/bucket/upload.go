package bucket

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

const (
	// MaxParts is how many parts an upload can have (S3).
	MaxParts = 10_000
	// MinPart is how long a part is at least, in bytes, but for the last (S3).
	MinPart = 5 << 20
	// maxUploadID bounds the name that S3 gives to an upload, in bytes. A longer one is object.ErrForeign.
	maxUploadID = 1024
	// maxPartList bounds the body of a page of a list of parts, in bytes: a thousand of them. More is object.ErrForeign.
	maxPartList = 1 << 20
	// maxPartPages bounds the pages of such a list. More are object.ErrForeign.
	maxPartPages = 100
)

// Part is a part of an upload.
type Part struct {
	Number int // from 1
	Size   int64
	ETag   string
	Sum    object.Sum
	Summed bool // Sum is known
}

// BeginUpload begins an object that is put in parts. header is what the object is to have. If the answer is lost, and the request sent again, the
// first upload stays behind: nobody knows its id.
func (c *Client) BeginUpload(ctx context.Context, name string, header map[string]string) (id string, err error) {
	q := &Request{Method: http.MethodPost, Name: name, Query: url.Values{"uploads": {""}}, Limit: MaxError, Header: map[string]string{"X-Amz-Checksum-Algorithm": "SHA256"}}
	for k, v := range header {
		q.Header[k] = v
	}
	a, err := c.Do(ctx, q)
	if err != nil {
		return "", err
	}
	var begun struct {
		XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
		Bucket   string
		UploadId string
	}
	if err := decode(a.Body, &begun); err != nil {
		return "", c.Foreign("an upload was begun, and the answer is none: " + c.Show(err.Error()))
	}
	if !CheckUpload(begun.UploadId) || begun.Bucket != "" && begun.Bucket != c.o.Bucket {
		return "", c.Foreign("an upload was begun, and has no name, or is of another bucket")
	}
	return begun.UploadId, nil
}

// CheckUpload reports whether id can be that of an upload.
func CheckUpload(id string) bool {
	return id != "" && len(id) <= maxUploadID && strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// PutPart puts a part, and proves that it is what was sent.
func (c *Client) PutPart(ctx context.Context, name, id string, number int, content []byte, sum object.Sum) (Part, error) {
	q := &Request{
		Method: http.MethodPut, Name: name, Query: url.Values{"partNumber": {strconv.Itoa(number)}, "uploadId": {id}},
		Body: content, Sum: sum, Limit: MaxError, Header: map[string]string{SumHeader: FormatSum(sum)},
	}
	a, err := c.Do(ctx, q)
	if err != nil {
		return Part{}, err
	}
	if theirs, ok := SumOf(a.Header); ok && theirs != sum {
		return Part{}, fmt.Errorf("%w: the store has computed the SHA-256 %v, and %v was put", object.ErrCorrupted, theirs, sum)
	}
	p := Part{Number: number, Size: int64(len(content)), ETag: a.Header.Get("Etag"), Sum: sum, Summed: true}
	if p.ETag == "" {
		return Part{}, c.Foreign("a part was put, and the answer has no ETag")
	}
	return p, nil
}

// Parts are those of an upload that are there, by their numbers. object.ErrNotExist says that the upload is not there any more.
func (c *Client) Parts(ctx context.Context, name, id string) (map[int]Part, error) {
	all := make(map[int]Part)
	after := 0
	for range maxPartPages {
		q := url.Values{"uploadId": {id}, "part-number-marker": {strconv.Itoa(after)}}
		a, err := c.Do(ctx, &Request{Method: http.MethodGet, Name: name, Query: q, Limit: maxPartList})
		if err != nil {
			return nil, err
		}
		var l partList
		if err = decode(a.Body, &l); err == nil {
			after, err = l.read(id, after, all)
		}
		if err != nil {
			return nil, c.Foreign("the answer to a list of parts is none: " + c.Show(err.Error()))
		}
		if l.IsTruncated != "true" {
			return all, nil
		}
	}
	return nil, c.Foreign("a list of parts does not end")
}

type partList struct {
	XMLName     xml.Name `xml:"ListPartsResult"`
	UploadId    string
	IsTruncated string
	Part        []struct {
		PartNumber, Size     string
		ETag, ChecksumSHA256 string
	}
}

// read takes a page of a list of parts, and returns the last number in it.
func (l *partList) read(id string, after int, into map[int]Part) (last int, err error) {
	if l.UploadId != id {
		return 0, errors.New("it is of another upload")
	}
	for _, p := range l.Part {
		n, err := strconv.Atoi(p.PartNumber)
		if err != nil || n <= after || n > MaxParts {
			return 0, errors.New("its numbers are not in order")
		}
		size, err := ParseSize(p.Size)
		if err != nil || p.ETag == "" {
			return 0, errors.New("a part has no size, or no ETag")
		}
		sum, ok := ParseSum(p.ChecksumSHA256)
		into[n], after = Part{n, size, p.ETag, sum, ok}, n
	}
	if l.IsTruncated == "true" && len(l.Part) == 0 {
		return 0, errors.New("a page of it is empty, and there is more")
	}
	return after, nil
}

// EndUpload makes an object of its parts, which are in order. object.ErrNotExist may be the answer to a request that was sent again, by
// this package or by a proxy: whether the object is there, only a look at it can tell.
func (c *Client) EndUpload(ctx context.Context, name, id string, parts []Part) error {
	type part struct {
		PartNumber     int
		ETag           string
		ChecksumSHA256 string `xml:",omitempty"`
	}
	var all struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUpload"`
		Part    []part
	}
	for _, p := range parts {
		one := part{p.Number, p.ETag, ""}
		if p.Summed {
			one.ChecksumSHA256 = FormatSum(p.Sum)
		}
		all.Part = append(all.Part, one)
	}
	body, err := xml.Marshal(all)
	if err != nil {
		return err
	}
	q := &Request{
		Method: http.MethodPost, Name: name, Query: url.Values{"uploadId": {id}}, Body: body, Sum: object.SumOf(body), Limit: MaxError,
		Header: map[string]string{"Content-Type": "application/xml"},
	}
	var done struct {
		XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
		ETag    string
	}
	return c.doLate(ctx, q, &done, func() bool { return done.ETag != "" })
}

// AbortUpload removes an upload and its parts, if it is there.
func (c *Client) AbortUpload(ctx context.Context, name, id string) error {
	_, err := c.Do(ctx, &Request{Method: http.MethodDelete, Name: name, Query: url.Values{"uploadId": {id}}, Limit: MaxError})
	if errors.Is(err, object.ErrNotExist) {
		return nil
	}
	return err
}
