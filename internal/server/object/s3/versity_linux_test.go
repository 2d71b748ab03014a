package s3

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/objecttest"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/versity"
)

func overVersity(v *versity.Server, prefix string) Options {
	return Options{Prefix: prefix, Write: true, Options: bucket.Options{
		Bucket: versity.Bucket, Endpoint: v.URL, Credentials: bucket.Static(versity.Key, versity.Secret),
	}}
}

// TestVersity runs the suite over a server that computes signatures and checksums itself, and keeps files.
func TestVersity(t *testing.T) {
	if !need.Demanded("s3") { // it is one test of many seconds
		t.Skip("NOT TESTED with versitygw: the suite is run where NFSBOX_REQUIRE names s3")
	}
	v, n := versity.Start(t), 0
	objecttest.Run(t, objecttest.Config{
		New: func(t *testing.T) object.Store {
			n++
			return open(t, overVersity(v, fmt.Sprint("stores/no-", n)))
		},
		Racers: racers,
	})
}

// TestVersityRefuses meets a real server's refusals.
func TestVersityRefuses(t *testing.T) {
	v := versity.Start(t)
	for _, c := range []struct {
		name, want string
		kind       error
		change     func(o *Options)
	}{
		{"secret", "the secret key is wrong", fs.ErrPermission, func(o *Options) { o.Credentials = bucket.Static(versity.Key, "wrong-secret") }},
		{"key", "does not know the access key", fs.ErrPermission, func(o *Options) { o.Credentials = bucket.Static("nobody", "wrong-secret") }},
		{"bucket", `there is no bucket "another"`, nil, func(o *Options) { o.Bucket = "another" }},
		{"region", "region", nil, func(o *Options) { o.Region = "eu-nowhere-1" }},
	} {
		o := overVersity(v, "")
		c.change(&o)
		_, err := Open(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), c.want) || c.kind != nil && !errors.Is(err, c.kind) || strings.Contains(err.Error(), "wrong-secret") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	ro := versity.Start(t, "--readonly")
	if _, err := Open(t.Context(), overVersity(ro, "")); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("a gateway that is read-only: %v", err)
	}
	o := overVersity(ro, "")
	o.Write = false
	open(t, o)
}
