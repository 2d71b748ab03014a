package fakes3

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// minPart is how long a part is at least, but for the last (S3).
const minPart = 5 << 20

// upload is an object that is put in parts.
type upload struct {
	name  string
	meta  http.Header
	parts map[int]*stored
}

// Uploads is how many are neither complete nor aborted.
func (s *Server) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}

// copy is CopyObject. s.mu is held.
func (s *Server) copy(r *http.Request, name string, f *Faults) reply {
	from, err := url.PathUnescape(r.Header.Get("X-Amz-Copy-Source"))
	o := s.objects[from[min(len(from), len(Bucket)+1):]]
	if err != nil || o == nil {
		return failure(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	}
	if match := r.Header.Get("X-Amz-Copy-Source-If-Match"); match != "" && match != o.etag() {
		return failure(http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
	}
	made := *o
	made.mod = time.Now().Add(f.Skew)
	if r.Header.Get("X-Amz-Metadata-Directive") == "REPLACE" {
		made.meta = described(r)
	}
	s.keep(name, &made)
	return document(http.StatusOK, struct {
		XMLName xml.Name `xml:"CopyObjectResult"`
		ETag    string
	}{ETag: made.etag()})
}

// inParts answers the requests of an upload in parts. s.mu is held.
func (s *Server) inParts(r *http.Request, name string, body []byte, f *Faults) reply {
	q := r.URL.Query()
	if q.Has("uploads") {
		return s.beginUpload(r, name)
	}
	u := s.uploads[q.Get("uploadId")]
	if u == nil || u.name != name {
		return failure(http.StatusNotFound, "NoSuchUpload", "The specified multipart upload does not exist.")
	}
	switch r.Method {
	case http.MethodPut:
		return u.put(r, body, f)
	case http.MethodGet:
		return s.listParts(u, q)
	case http.MethodDelete:
		delete(s.uploads, q.Get("uploadId"))
		return reply{http.StatusNoContent, http.Header{}, nil}
	}
	return s.complete(u, q.Get("uploadId"), body, f)
}

func (s *Server) beginUpload(r *http.Request, name string) reply {
	id := fmt.Sprintf("upload-%x", s.rng.Uint64())
	s.uploads[id] = &upload{name, described(r), make(map[int]*stored)}
	return document(http.StatusOK, struct {
		XMLName               xml.Name `xml:"InitiateMultipartUploadResult"`
		Bucket, Key, UploadId string
	}{Bucket: Bucket, Key: name, UploadId: id})
}

// put is UploadPart.
func (u *upload) put(r *http.Request, body []byte, f *Faults) reply {
	n, err := strconv.Atoi(r.URL.Query().Get("partNumber"))
	if err != nil || n < 1 || n > 10_000 {
		return failure(http.StatusBadRequest, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive")
	}
	sum := sha256.Sum256(body)
	text := base64.StdEncoding.EncodeToString(sum[:])
	if sent := r.Header.Get("X-Amz-Checksum-Sha256"); sent != "" && sent != text {
		return failure(http.StatusBadRequest, "BadDigest", "The SHA256 you specified did not match the calculated checksum.")
	}
	o := &stored{content: body, sum: text, mod: time.Now().Add(f.Skew)}
	u.parts[n] = o
	h := http.Header{"Etag": {o.etag()}}
	o.checksum(h, f)
	return reply{http.StatusOK, h, nil}
}

type listedPart struct {
	PartNumber     int
	ETag           string
	Size           int
	ChecksumSHA256 string
}

// listParts is ListParts.
func (s *Server) listParts(u *upload, q url.Values) reply {
	var out struct {
		XMLName              xml.Name `xml:"ListPartsResult"`
		Bucket, Key          string
		UploadId             string
		NextPartNumberMarker int
		MaxParts             int
		IsTruncated          bool
		Part                 []listedPart
	}
	out.Bucket, out.Key, out.UploadId, out.MaxParts = Bucket, u.name, q.Get("uploadId"), pageSize
	after, _ := strconv.Atoi(q.Get("part-number-marker")) // 0: all
	for _, n := range slices.Sorted(maps.Keys(u.parts)) {
		if n <= after {
			continue
		}
		if len(out.Part) == pageSize {
			out.IsTruncated = true
			break
		}
		o := u.parts[n]
		out.Part = append(out.Part, listedPart{n, o.etag(), len(o.content), o.sum})
		out.NextPartNumberMarker = n
	}
	return document(http.StatusOK, out)
}

// complete is CompleteMultipartUpload.
func (s *Server) complete(u *upload, id string, body []byte, f *Faults) reply {
	var in struct {
		Part []struct {
			PartNumber           int
			ETag, ChecksumSHA256 string
		}
	}
	if err := xml.Unmarshal(body, &in); err != nil || len(in.Part) == 0 {
		return failure(http.StatusBadRequest, "MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema.")
	}
	o := &stored{meta: u.meta, mod: time.Now().Add(f.Skew)}
	all, sums := sha256.New(), sha256.New()
	for i, p := range in.Part {
		have := u.parts[p.PartNumber]
		switch {
		case have == nil, have.etag() != p.ETag, p.ChecksumSHA256 != "" && p.ChecksumSHA256 != have.sum:
			return failure(http.StatusBadRequest, "InvalidPart", "One or more of the specified parts could not be found.")
		case i > 0 && in.Part[i-1].PartNumber >= p.PartNumber:
			return failure(http.StatusBadRequest, "InvalidPartOrder", "The list of parts was not in ascending order.")
		case i < len(in.Part)-1 && len(have.content) < minPart:
			return failure(http.StatusBadRequest, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed object size.")
		}
		o.content = append(o.content, have.content...)
		_, _ = all.Write([]byte(have.etag())) // a hash takes all
		sum, err := base64.StdEncoding.DecodeString(have.sum)
		if err != nil {
			panic(err) // of what put has encoded
		}
		_, _ = sums.Write(sum) // the same
	}
	o.sum = fmt.Sprintf("%s-%d", base64.StdEncoding.EncodeToString(sums.Sum(nil)), len(in.Part))
	o.tag = fmt.Sprintf(`"%s-%d"`, hex.EncodeToString(all.Sum(nil)[:16]), len(in.Part))
	s.keep(u.name, o)
	delete(s.uploads, id)
	return document(http.StatusOK, struct {
		XMLName           xml.Name `xml:"CompleteMultipartUploadResult"`
		Bucket, Key, ETag string
	}{Bucket: Bucket, Key: u.name, ETag: o.etag()})
}
