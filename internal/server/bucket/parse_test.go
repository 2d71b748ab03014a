package bucket

import (
	"strings"
	"testing"
)

// TestAt: the bucket is in the host's name for AWS, unless its own name has dots.
func TestAt(t *testing.T) {
	for text, want := range map[string]string{
		"s3://bucket":                                   "https://bucket.s3.us-east-1.amazonaws.com",
		"s3://bucket?region=eu-west-1":                  "https://bucket.s3.eu-west-1.amazonaws.com",
		"s3://b.dots":                                   "https://s3.us-east-1.amazonaws.com/b.dots",
		"s3://bucket?path-style=true":                   "https://s3.us-east-1.amazonaws.com/bucket",
		"s3://bucket?endpoint=host:9":                   "https://host:9/bucket",
		"s3://bucket?endpoint=http://host&path-style=0": "http://bucket.host",
	} {
		o, _, err := ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		endpoint, err := parseEndpoint(o.Endpoint)
		if err != nil {
			t.Fatal(err)
		}
		c := &Client{o: o, endpoint: endpoint, region: o.Region}
		if u, _ := c.at(); u.String() != want {
			t.Errorf("%s: %s, want %s", text, u.String(), want)
		}
	}
}

func FuzzDecodeList(f *testing.F) {
	f.Add([]byte(`<ListBucketResult><Name>bucket</Name><Prefix>p%2F</Prefix><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>`+
		`<Contents><Key>p/b</Key><LastModified>2026-11-29T05:00:00.000Z</LastModified><Size>1</Size></Contents>`+
		`<CommonPrefixes><Prefix>p/c/</Prefix></CommonPrefixes></ListBucketResult>`), true)
	f.Add([]byte("<html></html>"), false)
	f.Fuzz(func(t *testing.T, body []byte, dirs bool) {
		l, err := decodeList(body)
		if err != nil || l.prove("bucket", &ListOptions{Prefix: "p/", Dirs: dirs, After: "p/a!", Limit: 1000}) != nil {
			return
		}
		last := "p/a!"
		for _, o := range l.Contents {
			if o.Key <= last || !strings.HasPrefix(o.Key, "p/") || o.size < 0 {
				t.Fatalf("%+v is let through", o)
			}
			last = o.Key
		}
		last = "p/a!"
		for _, p := range l.CommonPrefixes {
			if p.Prefix <= last || !strings.HasPrefix(p.Prefix, "p/") || !strings.HasSuffix(p.Prefix, "/") || !dirs {
				t.Fatalf("%+v is let through", p)
			}
			last = p.Prefix
		}
	})
}

// FuzzDecodeParts: a list of parts that is let through has numbers in order, and sizes.
func FuzzDecodeParts(f *testing.F) {
	f.Add([]byte(`<ListPartsResult><UploadId>id</UploadId><IsTruncated>false</IsTruncated><Part><PartNumber>1</PartNumber><Size>5</Size><ETag>e</ETag></Part></ListPartsResult>`))
	f.Add([]byte(`<html/>`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var l partList
		all := make(map[int]Part)
		if decode(body, &l) != nil {
			return
		}
		last, err := l.read("id", 0, all)
		if err != nil {
			return
		}
		for n, p := range all {
			if n < 1 || n > last || n > MaxParts || p.Number != n || p.Size < 0 || p.ETag == "" {
				t.Fatalf("%d: %+v is let through", n, p)
			}
		}
	})
}
