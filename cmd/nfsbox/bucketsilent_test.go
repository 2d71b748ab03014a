package main

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/fakes3"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// heard is what a command prints. It notes that a store was told to be silent.
type heard struct {
	bytes.Buffer
	silent atomic.Bool
}

func (h *heard) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(`"type":"silent"`)) {
		h.silent.Store(true)
	}
	return h.Buffer.Write(b)
}

// TestSilentBucket: all that ask a bucket tell that it refuses everything for a while, until when it is waited for, and that this is over.
func TestSilentBucket(t *testing.T) {
	need.Time(t, "buckets that refuse everything for five seconds and longer")
	fakes3.Setenv(t)
	tree := t.TempDir()
	if err := os.WriteFile(filepath.Join(tree, "a"), []byte("alpha"), 0o644); err != nil {
		t.Fatal(err)
	}
	message := regexp.MustCompile(`"message":"127\.0\.0\.1:\d+ has served no request since [0-9:]+ \(HTTP 503( SlowDown)?\); the first call gives up at [0-9:]+"`)
	var all sync.WaitGroup
	defer all.Wait()
	for _, command := range []string{
		"cp -r TREE PLACE/new", "sync TREE PLACE/copy", "verify TREE PLACE/copy", "rm -r PLACE/copy", "ls PLACE/copy", "find PLACE/copy", "touch PLACE/new",
		"backup --name home TREE STORE", "restore STORE::home OUT", "cp -r STORE::home OUT", "snapshots ls STORE", "snapshots check STORE",
	} {
		s := fakes3.Start(t, 1, fakes3.Faults{})
		args := "?endpoint=" + url.QueryEscape(s.URL)
		full := regexp.MustCompile(`PLACE(\S*)`).ReplaceAllString(command, "s3://"+fakes3.Bucket+"/place$1"+args)
		full = strings.NewReplacer("STORE", "s3://"+fakes3.Bucket+"/store"+args, "TREE", tree, "OUT", filepath.Join(t.TempDir(), "out")).Replace(full)
		ask(t, 0, "cp", "-r", tree, "s3://"+fakes3.Bucket+"/place/copy"+args)
		ask(t, 0, "backup", "--name", "home", tree, "s3://"+fakes3.Bucket+"/store"+args)

		var out heard
		var requests atomic.Int32
		refuse := fakes3.Fail(http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
		s.Set(fakes3.Faults{Hook: func(w http.ResponseWriter, r *http.Request) bool {
			return requests.Add(1) > 1 && !out.silent.Load() && refuse(w, r)
		}})
		all.Go(func() {
			e := &env{ctx: t.Context(), stdout: &out, stderr: new(bytes.Buffer), rand: func(p []byte) { _, _ = rand.Read(p) }}
			status := run(e, append(strings.Fields(full), "--json"))
			if text := out.String(); status != 0 || !message.MatchString(text) || !strings.Contains(text, `"until":"`) || strings.Count(text, `"type":"answers"`) != 1 {
				t.Errorf("%s: status %d\n%s", command, status, text)
			}
		})
	}
}
