package jobs

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/fakes3"
	"github.com/nfsbox/nfsbox/internal/tools/backup"
	"github.com/nfsbox/nfsbox/internal/tools/dirfs"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// kept is a store in a bucket, with a snapshot of dir.
func kept(t *testing.T, dir string) (bucket *fakes3.Server, text string) {
	t.Helper()
	fakes3.Setenv(t)
	bucket = fakes3.Start(t, 1, fakes3.Faults{})
	text = "s3://" + fakes3.Bucket + "/p?endpoint=" + url.QueryEscape(bucket.URL) + "&region=" + fakes3.Region
	f, err := dirfs.New(dir, dirfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer vfs.CloseFS(f) //nolint:errcheck // nothing is written
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store, err := place.OpenStore(t.Context(), text, place.StoreOptions{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = backup.Run(t.Context(), backup.Options{FS: f, Root: root, Store: store, Meta: snapshot.Meta{Name: "home"}, Now: time.Now})
	if err = errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	return bucket, text
}

// TestSnapshot: what reads a snapshot at length has a lease in the store meanwhile, and leaves none; where it may have none, that is told.
// Nothing is copied to a snapshot.
func TestSnapshot(t *testing.T) {
	src := made(t, 3)
	bucket, store := kept(t, src)
	from := store + "::home"
	leases := func() (n int) {
		for _, name := range bucket.Names() {
			if strings.Contains(name, "leases/read-") {
				n++
			}
		}
		return n
	}
	for what, do := range map[string]func(o Options) error{
		"Copy": func(o Options) error {
			_, err := Copy(t.Context(), from, filepath.Join(t.TempDir(), "dst"), CopyOptions{Options: o})
			return err
		},
		"Sync": func(o Options) error {
			_, err := Sync(t.Context(), from, filepath.Join(t.TempDir(), "dst"), SyncOptions{CopyOptions: CopyOptions{Options: o}})
			return err
		},
		"Verify": func(o Options) error {
			_, err := Verify(t.Context(), src, from, VerifyOptions{Options: o})
			return err
		},
	} {
		held := make(chan int, 1)
		bucket.Set(fakes3.Faults{Hook: fakes3.On(http.MethodGet, func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/sha256/") {
				select {
				case held <- leases():
				default:
				}
			}
			return false
		})})
		if err := do(Options{}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		select {
		case n := <-held:
			if n == 0 {
				t.Errorf("%s has no lease", what)
			}
		default:
			t.Errorf("%s has read nothing", what)
		}
		if n := leases(); n > 0 {
			t.Errorf("%s leaves %d leases", what, n)
		}
		bucket.Set(fakes3.Faults{Hook: fakes3.On(http.MethodPut, fakes3.Fail(http.StatusForbidden, "AccessDenied", "Access Denied"))})
		events := make(chan Event, 100)
		if err := do(Options{Events: events}); err != nil {
			t.Errorf("%s, without a lease: %v", what, err)
		}
		told := false
		for e := range events {
			told = told || e.Type == Note && e.Kind == "lease"
		}
		if !told {
			t.Errorf("%s does not say that it has no lease", what)
		}
	}
	bucket.Set(fakes3.Faults{})
	if _, err := Copy(t.Context(), src, from, CopyOptions{}); !errors.Is(err, ErrPlace) {
		t.Errorf("to a snapshot: %v", err)
	}
	dst := filepath.Join(t.TempDir(), "dst")
	if _, err := Copy(t.Context(), from, dst, CopyOptions{DryRun: true}); err != nil || leases() > 0 {
		t.Errorf("what would be copied: %v", err)
	}
	if _, err := os.Lstat(dst); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
