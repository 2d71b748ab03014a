package s3

import (
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	o, err := ParseURL("s3://my.bucket-1/a/B_c/?endpoint=http://127.0.0.1:9000&region=eu-central-1&path-style=false")
	if err != nil || o.Bucket != "my.bucket-1" || o.Prefix != "a/B_c" || o.Endpoint != "http://127.0.0.1:9000" || o.Region != "eu-central-1" || o.PathStyle == nil || *o.PathStyle {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err = ParseURL("s3://bucket"); err != nil || o.Prefix != "" || o.PathStyle != nil {
		t.Errorf("%+v, %v", o, err)
	}
	for text, want := range map[string]string{
		"/local":                                        "begins with s3://",
		"s3://":                                         "no bucket",
		"s3://UPPER":                                    "no bucket",
		"s3://AKID:SECRET@bucket/p":                     "AWS_ACCESS_KEY_ID",
		"s3://bucket/a@SECRET":                          "AWS_ACCESS_KEY_ID",
		"s3://AKID:SECRET/p":                            "no bucket",
		"s3://bucket/a//b":                              "prefix",
		"s3://bucket/../b":                              "prefix",
		"s3://bucket/a%20b":                             "prefix",
		"s3://bucket?endpint=x":                         "did you mean endpoint=?",
		"s3://bucket?secret-key=SECRET":                 "secret-key is not known",
		"s3://bucket?SECRET/+x=1":                       "one of its arguments is not known",
		"s3://bucket?region=a&region=b":                 "twice",
		"s3://bucket?region=a/b":                        "eu-central-1",
		"s3://bucket?path-style=maybe":                  "true or false",
		"s3://bucket?endpoint=https://AKID:SECRET@host": "AWS_ACCESS_KEY_ID",
		"s3://bucket?endpoint=ftp://host":               "http://HOST",
		"s3://bucket?endpoint=https://host/SECRET":      "no path",
		"s3://bucket?endpoint=%zzSECRET":                "%-escape",
		"s3://bucket/" + strings.Repeat("a", 501):       "longer than 500",
	} {
		o, err := ParseURL(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %q", text, o, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "AKID") || strings.Contains(strings.ReplaceAll(err.Error(), "AWS_SECRET", ""), "SECRET")) {
			t.Errorf("%s: the error has the secret: %v", text, err)
		}
	}
}

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
		o, err := ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		endpoint, err := parseEndpoint(o.Endpoint)
		if err != nil {
			t.Fatal(err)
		}
		s := &Store{o: o, endpoint: endpoint, region: o.Region}
		if u, _ := s.at(); u.String() != want {
			t.Errorf("%s: %s, want %s", text, u.String(), want)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{"s3://bucket/p?endpoint=http://h:1&region=r&path-style=true", "s3://a:b@c", "s3://bucket?endpoint=%", "s3:///"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := ParseURL(text)
		if err != nil {
			if len(err.Error()) > 500 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if o.check() != nil || strings.ContainsAny(o.Bucket+o.Prefix+o.Region, "@:?&% \x00") {
			t.Fatalf("%q is let through: %+v", text, o)
		}
	})
}

func FuzzDecodeList(f *testing.F) {
	f.Add([]byte(listing("bucket", "p%2F", "<EncodingType>url</EncodingType>"+end+contents("p/a!"))))
	f.Add([]byte("<html></html>"))
	f.Fuzz(func(t *testing.T, body []byte) {
		l, err := decodeList(body)
		if err != nil || l.prove("bucket", "p/", "p/a!", 1000) != nil {
			return
		}
		last := "p/a!"
		for _, o := range l.Contents {
			if o.Key <= last || !strings.HasPrefix(o.Key, "p/") || o.size < 0 {
				t.Fatalf("%+v is let through", o)
			}
			last = o.Key
		}
	})
}
