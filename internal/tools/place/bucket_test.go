package place

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/fakes3"
	"github.com/nfsbox/nfsbox/vfs"
)

func TestNamesIn(t *testing.T) {
	for path, want := range map[string][]string{
		"":                 nil,
		"/":                nil,
		"/a//b/":           {"a", "b"},
		"/a/./b":           {"a", "b"},
		"/..x":             {"..x"},
		"/with%20space/é@": {"with space", "é@"},
		"/100%25":          {"100%"},
		"/line%0A":         {"line\n"},
	} {
		if got, err := namesIn(path); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
	for _, path := range []string{"/100%", "/..", "/a/../b", "/a/%2E%2E", "/a%2Fb", "/%00", "/" + strings.Repeat("n", 256)} {
		if got, err := namesIn(path); err == nil {
			t.Errorf("%q: %q", path, got)
		}
	}
}

// TestBucket: what a URL of a bucket names, there or not, has the directory that holds it as its root.
func TestBucket(t *testing.T) {
	fakes3.Setenv(t)
	s := fakes3.Start(t, 1, fakes3.Faults{})
	s.Plant("a/b/file", []byte("content"))
	args := "?endpoint=" + url.QueryEscape(s.URL)
	for path, want := range map[string]struct {
		path, base string
		kind       vfs.Type
	}{
		"":            {"", "", vfs.TypeDir},
		"/":           {"", "", vfs.TypeDir},
		"/a":          {"a", "a", vfs.TypeDir},
		"/a/b/":       {"b", "b", vfs.TypeDir},
		"/a/b/file":   {"file", "file", vfs.TypeReg},
		"/none/there": {"there", "there", vfs.TypeNone},
	} {
		p, err := Open(t.Context(), "s3://"+fakes3.Bucket+path+args, Options{})
		if err != nil {
			t.Fatalf("%q: %v", path, err)
		}
		r, err := p.Resolve(t.Context(), false)
		if p.Path != want.path || p.Base() != want.base || r.Attr.Type != want.kind || (err == nil) != (want.kind != vfs.TypeNone) || p.IsLocal() {
			t.Errorf("%q: %q, %q, %v, %v", path, p.Path, p.Base(), r.Attr.Type, err)
		}
		above := 0
		for a := range p.Above(t.Context()) {
			if above++; a.Type != vfs.TypeDir {
				t.Errorf("%q: %+v is above", path, a)
			}
		}
		if n := strings.Count(strings.Trim(path, "/"), "/"); above != n {
			t.Errorf("%q: %d directories are above, want %d", path, above, n)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	for arg, want := range map[string]error{
		"s3://":                     ErrUsage,
		"s3://KEY:HUSH@bucket/x":    ErrUsage,
		"s3://bucket/x?secret=HUSH": ErrUsage,
		"s3://bucket/100%" + args:   ErrUsage,
		"s3://another/x" + args:     ErrUnreachable,
	} {
		p, err := Open(t.Context(), arg, Options{})
		if !errors.Is(err, want) || strings.Contains(err.Error(), "HUSH") {
			t.Errorf("%s: %v, %v, want %v", arg, p, err, want)
		}
	}
	s.Set(fakes3.Faults{Hook: fakes3.HTML})
	if _, err := Open(t.Context(), "s3://bucket/x"+args, Options{}); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "is not S3") {
		t.Errorf("a portal: %v", err)
	}
}
