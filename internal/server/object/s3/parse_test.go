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
