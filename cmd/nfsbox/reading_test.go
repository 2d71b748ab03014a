package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/fakes3"
)

// leaseBucket is a store in a bucket, with a snapshot of a tree.
func leaseBucket(t *testing.T) (bucket *fakes3.Server, tree, store string) {
	fakes3.Setenv(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	tree = t.TempDir()
	if err := os.WriteFile(filepath.Join(tree, "a"), []byte("alpha\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	bucket = fakes3.Start(t, 1, fakes3.Faults{})
	store = "s3://" + fakes3.Bucket + "/host7?endpoint=" + url.QueryEscape(bucket.URL) + "&region=" + fakes3.Region
	ask(t, 0, "backup", "-q", tree, store, "--name", "home")
	return bucket, tree, store
}

// TestReadingKeeps: while a command reads a snapshot at length a prune of another process gives way. When it has ended nothing
// is left of that.
func TestReadingKeeps(t *testing.T) {
	bucket, tree, store := leaseBucket(t)
	for _, args := range [][]string{
		{"restore", "-q", store + "::home", "DEST"}, {"cp", "-rq", store + "::home", "DEST"}, {"sync", "-q", store + "::home", "DEST"},
		{"verify", "-q", tree, store + "::home"},
	} {
		if last := len(args) - 1; args[last] == "DEST" {
			args[last] = filepath.Join(t.TempDir(), "dest")
		}
		var once sync.Once
		bucket.Set(fakes3.Faults{Hook: fakes3.On(http.MethodGet, func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/sha256/") {
				once.Do(func() {
					if _, said := ask(t, exitIncomplete, "snapshots", "prune", store); !strings.Contains(said, "somebody else uses the store: read (nfsbox "+args[0]+")") {
						t.Errorf("beside %s: %s", args[0], said)
					}
				})
			}
			return false
		})})
		ask(t, 0, args...)
		once.Do(func() { t.Errorf("%s has read nothing", args[0]) })
	}
	bucket.Set(fakes3.Faults{})
	ask(t, 0, "snapshots", "prune", store)
	for _, name := range bucket.Names() {
		if strings.Contains(name, "leases/") {
			t.Errorf("left: %s", name)
		}
	}
}

// TestReadingOnly: credentials that may only read are enough to restore, and it is told what that means. What shows a snapshot, or
// what would be done, writes nothing.
func TestReadingOnly(t *testing.T) {
	bucket, tree, store := leaseBucket(t)
	var puts atomic.Int64
	bucket.Set(fakes3.Faults{Hook: fakes3.On(http.MethodPut, func(w http.ResponseWriter, r *http.Request) bool {
		puts.Add(1)
		return fakes3.Fail(http.StatusForbidden, "AccessDenied", "Access Denied")(w, r)
	})})
	dest := filepath.Join(t.TempDir(), "dest")
	ask(t, 0, "restore", "-n", store+"::home", dest)
	ask(t, 0, "ls", store+"::home")
	ask(t, 0, "cat", store+"::home/a")
	if n := puts.Load(); n > 0 {
		t.Errorf("%d objects were put", n)
	}
	_, said := ask(t, 0, "restore", "--progress=none", store+"::home", dest)
	if !strings.Contains(said, "is read without a lease: ") || !strings.Contains(said, "do not forget and prune there before this has ended") {
		t.Error(said)
	}
	if out, _ := ask(t, 0, "restore", "--json", store+"::home", dest); !strings.Contains(out, `"type":"note","kind":"lease"`) {
		t.Error(out)
	}
	ask(t, 0, "verify", "-q", tree, dest)
}
