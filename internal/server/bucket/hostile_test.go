package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/testkit/fakes3"
	"github.com/nfsbox/nfsbox/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m, "net/http.(*persistConn)") }

func over(t *testing.T, f *fakes3.Server) *Client {
	t.Helper()
	c, err := New(t.Context(), Options{
		Bucket: fakes3.Bucket, Endpoint: f.URL, Credentials: Static(fakes3.Key, fakes3.Secret),
		Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestDirsAreProved: a listing by directories that is none, or not of what was asked for, is an error.
func TestDirsAreProved(t *testing.T) {
	f := fakes3.Start(t, 1, fakes3.Faults{})
	c := over(t, f)
	for _, name := range []string{"d/a", "d/a.b", "d/a/b", "d/a/c", "d/b/", "e"} {
		f.Plant(name, []byte("x"))
	}
	p, err := c.List(t.Context(), ListOptions{Prefix: "d/", Dirs: true, Limit: 1000})
	if err != nil || len(p.Objects) != 2 || strings.Join(p.Dirs, " ") != "d/a/ d/b/" {
		t.Fatalf("%+v, %v", p, err)
	}
	const head = `<ListBucketResult><Name>` + fakes3.Bucket + `</Name><Prefix>d/</Prefix><IsTruncated>false</IsTruncated>`
	dir := func(name string) string {
		return "<CommonPrefixes><Prefix>" + name + "</Prefix></CommonPrefixes>"
	}
	file := func(name string) string {
		return "<Contents><Key>" + name + "</Key><LastModified>2026-11-29T05:00:00.000Z</LastModified><Size>1</Size></Contents>"
	}
	for what, inside := range map[string]string{
		"outside":       dir("e/"),
		"no slash":      dir("d/a"),
		"deeper":        dir("d/a/b/"),
		"itself":        dir("d/"),
		"twice":         dir("d/a/") + dir("d/a/"),
		"out of order":  dir("d/b/") + dir("d/a/"),
		"before":        dir("d/A/"),
		"no directory":  file("d/b/c"),
		"an old object": file("d/A"),
		"too many":      dir("d/c/") + dir("d/d/") + file("d/e") + file("d/f"),
	} {
		f.Set(fakes3.Faults{Hook: fakes3.On("LIST", fakes3.Answer(200, head+inside+"</ListBucketResult>"))})
		p, err := c.List(t.Context(), ListOptions{Prefix: "d/", Dirs: true, After: "d/B", Token: "t", Limit: 3})
		if !errors.Is(err, object.ErrForeign) {
			t.Errorf("%s: %+v, %v", what, p, err)
		}
	}
	f.Set(fakes3.Faults{Hook: fakes3.On("LIST", fakes3.Answer(200, head+dir("d/c/")+"</ListBucketResult>"))})
	if p, err := c.List(t.Context(), ListOptions{Prefix: "d/", Limit: 3}); !errors.Is(err, object.ErrForeign) {
		t.Errorf("directories that were not asked for: %+v, %v", p, err)
	}
}

// TestUploadsAreProved: whatever is no answer of S3 to a request of an upload is an error, and so is an error with status 200.
func TestUploadsAreProved(t *testing.T) {
	f := fakes3.Start(t, 1, fakes3.Faults{})
	c := over(t, f)
	ctx := t.Context()
	begin := func() (string, error) { return c.BeginUpload(ctx, "key", nil) }
	id, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	content := []byte("content")
	part, err := c.PutPart(ctx, "key", id, 1, content, object.SumOf(content))
	if err != nil {
		t.Fatal(err)
	}
	const parts = `<ListPartsResult><UploadId>%s</UploadId><IsTruncated>%v</IsTruncated>%s</ListPartsResult>`
	one := func(n, size string) string {
		return "<Part><PartNumber>" + n + "</PartNumber><Size>" + size + "</Size><ETag>e</ETag></Part>"
	}
	for what, c2 := range map[string]struct {
		on, answer string
		try        func() error
	}{
		"no id":             {"POST", "<InitiateMultipartUploadResult></InitiateMultipartUploadResult>", func() error { _, err := begin(); return err }},
		"an odd id":         {"POST", "<InitiateMultipartUploadResult><UploadId>a b</UploadId></InitiateMultipartUploadResult>", func() error { _, err := begin(); return err }},
		"another bucket":    {"POST", "<InitiateMultipartUploadResult><Bucket>b</Bucket><UploadId>a</UploadId></InitiateMultipartUploadResult>", func() error { _, err := begin(); return err }},
		"a page":            {"POST", "<html></html>", func() error { _, err := begin(); return err }},
		"no ETag":           {"PART", "", func() error { _, err := c.PutPart(ctx, "key", id, 2, content, object.SumOf(content)); return err }},
		"a page at the end": {"POST", "<html></html>", func() error { return c.EndUpload(ctx, "key", id, []Part{part}) }},
		"no object":         {"POST", "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>", func() error { return c.EndUpload(ctx, "key", id, []Part{part}) }},
		"parts of another":  {"GET", fmt.Sprintf(parts, "x", false, ""), func() error { _, err := c.Parts(ctx, "key", id); return err }},
		"no order":          {"GET", fmt.Sprintf(parts, id, false, one("2", "1")+one("1", "1")), func() error { _, err := c.Parts(ctx, "key", id); return err }},
		"no size":           {"GET", fmt.Sprintf(parts, id, false, one("2", "-1")), func() error { _, err := c.Parts(ctx, "key", id); return err }},
		"too many":          {"GET", fmt.Sprintf(parts, id, false, one("10001", "1")), func() error { _, err := c.Parts(ctx, "key", id); return err }},
		"no end":            {"GET", fmt.Sprintf(parts, id, true, ""), func() error { _, err := c.Parts(ctx, "key", id); return err }},
		"the same for ever": {"GET", fmt.Sprintf(parts, id, true, one("1", "1")), func() error { _, err := c.Parts(ctx, "key", id); return err }},
		"a copy that is none": {"COPY", "<html></html>", func() error {
			return c.Copy(ctx, &Request{Method: http.MethodPut, Name: "key", Limit: MaxError, Header: map[string]string{"X-Amz-Copy-Source": c.Source("key")}})
		}},
	} {
		f.Set(fakes3.Faults{Hook: fakes3.On(c2.on, fakes3.Answer(200, c2.answer))})
		if err := c2.try(); !errors.Is(err, object.ErrForeign) {
			t.Errorf("%s: %v", what, err)
		}
	}
	f.Set(fakes3.Faults{Hook: fakes3.On("POST", fakes3.Fail(200, "InternalError", "later"))})
	if err := c.EndUpload(ctx, "key", id, []Part{part}); !errors.Is(err, object.ErrBusy) {
		t.Errorf("an error with status 200: %v", err)
	}
	f.Set(fakes3.Faults{LieSum: true})
	if _, err := c.PutPart(ctx, "key", id, 2, content, object.SumOf(content)); !errors.Is(err, object.ErrCorrupted) {
		t.Errorf("another checksum: %v", err)
	}
	f.Set(fakes3.Faults{})
	have, err := c.Parts(ctx, "key", id)
	if err != nil || len(have) != 2 || have[1] != part {
		t.Errorf("%+v, %v", have, err)
	}
	for range 2 {
		if err := c.AbortUpload(ctx, "key", id); err != nil || f.Uploads() > 0 {
			t.Errorf("%d uploads, %v", f.Uploads(), err)
		}
	}
	if _, err := c.Parts(ctx, "key", id); !errors.Is(err, object.ErrNotExist) {
		t.Errorf("parts of what is gone: %v", err)
	}
}

// TestNamesAreSigned: what is signed is what is sent, whatever the name.
func TestNamesAreSigned(t *testing.T) {
	for name, want := range map[string]string{
		"/b/a b+c": "/b/a%20b%2Bc", "/b/é%41": "/b/%C3%A9%2541", "/b/!'()*~-_.": "/b/%21%27%28%29%2A~-_.", "/b//x": "/b//x",
	} {
		if got := escape(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
