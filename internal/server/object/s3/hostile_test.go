package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/testkit/fakes3"
)

// listing is a page of a listing, as S3 has it.
func listing(bucket, prefix, inside string) string {
	return fmt.Sprintf(`<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>%s</Name><Prefix>%s</Prefix>%s</ListBucketResult>`,
		bucket, prefix, inside)
}

func contents(key string) string {
	return "<Contents><Key>" + key + "</Key><LastModified>2026-11-29T05:00:00.000Z</LastModified><Size>1</Size></Contents>"
}

const end = "<IsTruncated>false</IsTruncated>"

// TestListingsAreProved: whatever is no listing of what was asked for is an error, and never an empty one.
func TestListingsAreProved(t *testing.T) {
	f := fakes3.Start(t, 1, fakes3.Faults{})
	s := open(t, over(f, "p"))
	for name, hook := range map[string]fakes3.Hook{
		"a page":                fakes3.HTML,
		"endless":               fakes3.Endless,
		"nothing":               fakes3.Answer(200, ""),
		"an error with 200":     fakes3.Fail(200, "InternalError", "later"),
		"no content":            fakes3.Answer(204, ""),
		"cut off":               fakes3.Answer(200, listing(fakes3.Bucket, "p/", end)[:150]),
		"another bucket":        fakes3.Answer(200, listing("other", "p/", end)),
		"another prefix":        fakes3.Answer(200, listing(fakes3.Bucket, "q/", end)),
		"no end":                fakes3.Answer(200, listing(fakes3.Bucket, "p/", "")),
		"more, and no way":      fakes3.Answer(200, listing(fakes3.Bucket, "p/", "<IsTruncated>true</IsTruncated>")),
		"more without end":      fakes3.Answer(200, listing(fakes3.Bucket, "p/", "<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>")),
		"outside":               fakes3.Answer(200, listing(fakes3.Bucket, "p/", end+contents("q/a!"))),
		"twice":                 fakes3.Answer(200, listing(fakes3.Bucket, "p/", end+contents("p/a!")+contents("p/a!"))),
		"out of order":          fakes3.Answer(200, listing(fakes3.Bucket, "p/", end+contents("p/b!")+contents("p/a!"))),
		"another program's":     fakes3.Answer(200, listing(fakes3.Bucket, "p/", end+contents("p/README.md"))),
		"no key":                fakes3.Answer(200, listing(fakes3.Bucket, "p/", end+contents("p/../a!"))),
		"no size":               fakes3.Answer(200, listing(fakes3.Bucket, "p/", end+strings.Replace(contents("p/a!"), ">1<", ">-1<", 1))),
		"something behind":      fakes3.Answer(200, listing(fakes3.Bucket, "p/", end)+"<html/>"),
		"a page that is no 404": fakes3.Answer(404, "<html>not found</html>"),
	} {
		f.Set(fakes3.Faults{Hook: fakes3.On("LIST", hook)})
		if page, err := s.List(t.Context(), "", "", 0); !errors.Is(err, object.ErrForeign) {
			t.Errorf("%s: %+v, %v", name, page, err)
		}
	}
	f.Set(fakes3.Faults{})
	f.Plant("p/snapshots/", nil) // as consoles do
	if page, err := s.List(t.Context(), "", "", 0); err != nil || len(page.Objects) > 0 || page.More {
		t.Errorf("an empty store: %+v, %v", page, err)
	}
}

// TestPortal: a page that answers everything with 200 is not taken for success.
func TestPortal(t *testing.T) {
	f := fakes3.Start(t, 1, fakes3.Faults{})
	s := open(t, over(f, ""))
	put := func(ifAbsent bool) error {
		_, err := s.Put(t.Context(), "k", strings.NewReader("x"), object.PutOptions{Size: -1, IfAbsent: ifAbsent})
		return err
	}
	f.Set(fakes3.Faults{Hook: fakes3.HTML})
	for what, err := range map[string]error{"put": put(false), "put if absent": put(true), "delete": s.Delete(t.Context(), "k")} {
		if err == nil || !strings.Contains(err.Error(), "is not S3") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := s.Stat(t.Context(), "k"); !errors.Is(err, object.ErrForeign) {
		t.Errorf("stat: %v", err)
	}
	if _, _, err := s.Get(t.Context(), "k", 0, -1); !errors.Is(err, object.ErrForeign) {
		t.Errorf("get: %v", err)
	}
	f.Set(fakes3.Faults{Hook: fakes3.On(http.MethodPut, fakes3.HTML)})
	if err := put(true); !errors.Is(err, object.ErrForeign) {
		t.Errorf("a put: %v", err)
	}
	f.Set(fakes3.Faults{})
	if err := put(false); err != nil {
		t.Fatal(err)
	}
	f.Set(fakes3.Faults{Hook: fakes3.On(http.MethodDelete, fakes3.HTML)})
	if err := s.Delete(t.Context(), "k"); !errors.Is(err, object.ErrForeign) {
		t.Errorf("a delete: %v", err)
	}
	f.Set(fakes3.Faults{Hook: fakes3.On(http.MethodGet, fakes3.Endless)})
	if _, _, err := s.Get(t.Context(), "k", 0, -1); err == nil {
		t.Error("an endless object has an end")
	}
	tls := over(f, "")
	tls.Endpoint = "https" + strings.TrimPrefix(f.URL, "http")
	if _, err := Open(t.Context(), tls); err == nil || !strings.Contains(err.Error(), "endpoint=http://") {
		t.Errorf("TLS where there is none: %v", err)
	}
}

// TestLies: a checksum that is another one is found at a Put, and at a Stat.
func TestLies(t *testing.T) {
	f := fakes3.Start(t, 1, fakes3.Faults{})
	s := open(t, over(f, ""))
	f.Set(fakes3.Faults{LieSum: true})
	if _, err := s.Put(t.Context(), "k", strings.NewReader("x"), object.PutOptions{Size: -1}); !errors.Is(err, object.ErrCorrupted) {
		t.Errorf("put: %v", err)
	}
	if _, err := s.Stat(t.Context(), "k"); !errors.Is(err, object.ErrCorrupted) {
		t.Errorf("stat: %v", err)
	}
	f.Set(fakes3.Faults{})
	f.Plant("other!", []byte("x"))
	if _, err := s.Stat(t.Context(), "other"); !errors.Is(err, object.ErrCorrupted) {
		t.Errorf("another program's: %v", err)
	}
	_, err := s.Put(t.Context(), "big", strings.NewReader("x"), object.PutOptions{Size: MaxObject + 1})
	if !errors.Is(err, object.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

// TestRefusals: each says what to do, and shows no secret.
func TestRefusals(t *testing.T) {
	fail := func(status int, code string) fakes3.Faults {
		return fakes3.Faults{Hook: fakes3.Fail(status, code, "for "+fakes3.Key+" and "+fakes3.Secret)}
	}
	for _, c := range []struct {
		name, want string
		kind       error
		faults     fakes3.Faults
		change     func(o *Options)
	}{
		{"forgets", "ignores If-None-Match", nil, fakes3.Faults{Forget: true}, nil},
		{"no bucket", `there is no bucket "another"`, nil, fakes3.Faults{}, func(o *Options) { o.Bucket = "another" }},
		{"key", "does not know the access key", fs.ErrPermission, fakes3.Faults{}, func(o *Options) { o.Credentials = bucket.Static("other", fakes3.Secret) }},
		{"secret", "the secret key is wrong", fs.ErrPermission, fail(403, "SignatureDoesNotMatch"), nil},
		{"list", "may not read or list", fs.ErrPermission, fail(403, "AccessDenied"), nil},
		{"read-only", "may not write or delete there, or the store is read-only", fs.ErrPermission, fakes3.Faults{Hook: fakes3.On(http.MethodPut, fakes3.Fail(403, "AccessDenied", ""))}, nil},
		{"clock", "clock", fs.ErrPermission, fakes3.Faults{Skew: time.Hour}, nil},
		{"region", "region", nil, fail(400, "AuthorizationHeaderMalformed"), nil},
		{"expired", "have expired", nil, fail(400, "ExpiredToken"), nil},
		{"full", "quota", object.ErrNoSpace, fakes3.Faults{Hook: fakes3.On(http.MethodPut, fakes3.Fail(507, "XMinioStorageFull", ""))}, nil},
		{"busy", "10 times", object.ErrBusy, fakes3.Faults{SlowDown: 1000}, nil},
		{"portal", "is not S3", object.ErrForeign, fakes3.Faults{Hook: fakes3.HTML}, nil},
		{"silence", "does not answer, after 3 tries", nil, fakes3.Faults{Dropped: 1000}, nil},
	} {
		f := fakes3.Start(t, 1, c.faults)
		o := over(f, "")
		if c.change != nil {
			c.change(&o)
		}
		_, err := Open(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), c.want) || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		} else if strings.Contains(err.Error(), fakes3.Key) || strings.Contains(err.Error(), fakes3.Secret) {
			t.Errorf("%s: the message has credentials: %v", c.name, err)
		}
		for _, name := range f.Names() {
			if !strings.HasPrefix(name, probePrefix) || c.faults.Hook == nil {
				t.Errorf("%s: %s is left", c.name, name)
			}
		}
	}
}

// TestUnknownOutcome: a Put of which no answer ever came says so; a Get does not.
func TestUnknownOutcome(t *testing.T) {
	f := fakes3.Start(t, 1, fakes3.Faults{})
	s := open(t, over(f, ""))
	f.Set(fakes3.Faults{Lost: 1000})
	if _, err := s.Put(t.Context(), "k", strings.NewReader("x"), object.PutOptions{Size: -1}); !errors.Is(err, object.ErrUnknownOutcome) {
		t.Errorf("put: %v", err)
	}
	if _, err := s.Stat(t.Context(), "k"); err == nil || errors.Is(err, object.ErrUnknownOutcome) || errors.Is(err, object.ErrNotExist) {
		t.Errorf("stat: %v", err)
	}
	f.Set(fakes3.Faults{})
	if info, err := s.Stat(t.Context(), "k"); err != nil || info.Sum != object.SumOf([]byte("x")) {
		t.Errorf("it was put: %+v, %v", info, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.Set(fakes3.Faults{Hook: func(http.ResponseWriter, *http.Request) bool { cancel(); return false }})
	if _, err := s.Put(ctx, "l", strings.NewReader("x"), object.PutOptions{Size: -1}); err != nil && (!errors.Is(err, context.Canceled) || !errors.Is(err, object.ErrUnknownOutcome)) {
		t.Errorf("cancelled under way: %v", err)
	}
}

// TestCredentials come from the environment, or a file; without any, it is said where they may be.
func TestCredentials(t *testing.T) {
	f := fakes3.Start(t, 1, fakes3.Faults{})
	fakes3.Setenv(t)
	o := Options{Options: bucket.Options{Bucket: fakes3.Bucket, Endpoint: f.URL}}
	open(t, o)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	if _, err := Open(t.Context(), o); err == nil || strings.Contains(err.Error(), fakes3.Key) {
		t.Errorf("half of them: %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("MINIO_ROOT_USER", "")
	t.Setenv("MINIO_ACCESS_KEY", "")
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("none: %v", err)
	}
	t.Setenv("AWS_PROFILE", "another")
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "AWS_PROFILE") {
		t.Errorf("no such profile: %v", err)
	}
}
