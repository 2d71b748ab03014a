package fakes3

import (
	"encoding/xml"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

func isList(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Query().Has("list-type")
}

type listed struct {
	Key, LastModified, ETag string
	Size                    int
}

type common struct{ Prefix string }

// list is ListObjectsV2; a continuation token is the last key of the page before.
func (s *Server) list(q url.Values, f *Faults) reply {
	var out struct {
		XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
		Name, Prefix          string
		KeyCount, MaxKeys     int
		EncodingType          string `xml:",omitempty"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Delimiter             string `xml:",omitempty"`
		Contents              []listed
		CommonPrefixes        []common
	}
	encode := func(s string) string { return s }
	if out.EncodingType = q.Get("encoding-type"); out.EncodingType == "url" {
		encode = func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "%2F", "/") }
	}
	prefix, after := q.Get("prefix"), max(q.Get("start-after"), q.Get("continuation-token"))
	out.Name, out.Prefix, out.MaxKeys = Bucket, encode(prefix), pageSize
	if n, err := strconv.Atoi(q.Get("max-keys")); err == nil {
		out.MaxKeys = min(n, pageSize)
	}
	if f.Page > 0 {
		out.MaxKeys = min(out.MaxKeys, f.Page)
	}
	out.Delimiter = encode(q.Get("delimiter"))
	last := ""
	if s.names == nil {
		s.names = slices.Sorted(maps.Keys(s.objects))
	}
	start, _ := slices.BinarySearch(s.names, max(prefix, after))
	for _, name := range s.names[start:] {
		if !strings.HasPrefix(name, prefix) {
			break
		}
		if name <= after && after != "" {
			continue
		}
		dir := ""
		if before, _, ok := strings.Cut(name[len(prefix):], "/"); ok && out.Delimiter != "" {
			if dir = prefix + before + "/"; dir == last || strings.HasPrefix(after, dir) {
				continue
			}
		}
		if len(out.Contents)+len(out.CommonPrefixes) == out.MaxKeys {
			out.IsTruncated = true
			break
		}
		if dir != "" {
			last = dir
			out.CommonPrefixes = append(out.CommonPrefixes, common{encode(dir)})
			out.NextContinuationToken = dir
			continue
		}
		o := s.objects[name]
		out.Contents = append(out.Contents, listed{encode(name), o.mod.UTC().Format("2006-01-02T15:04:05.000Z"), o.etag(), len(o.content)})
		out.NextContinuationToken = name
	}
	if !out.IsTruncated {
		out.NextContinuationToken = ""
	}
	out.KeyCount = len(out.Contents) + len(out.CommonPrefixes)
	return document(http.StatusOK, out)
}
