package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
)

// askUntil asks for a page until it says what is wanted.
func askUntil(t *testing.T, url string, wanted func(status int, text string) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		status, text := get(t, url)
		if wanted(status, text) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not come to say what it should: %d\n%s", url, status, text)
		}
	}
}

// metricsSay waits until the metrics have all that is wanted: a call is counted when
// its answer has gone.
func metricsSay(t *testing.T, url string, want ...string) {
	t.Helper()
	defer func() {
		if len(want) > 0 {
			t.Logf("missing: %q", want)
		}
	}()
	askUntil(t, url+"/metrics", func(status int, text string) bool {
		want = slices.DeleteFunc(want, func(s string) bool { return strings.Contains(text, s) })
		return status == http.StatusOK && len(want) == 0
	})
}

// slowUpload is an upload of which the first part has reached the server.
type slowUpload struct {
	rest  *io.PipeWriter
	first []byte
	ended chan error
}

// beginUpload begins to store /file, and returns when the server is at it.
func beginUpload(t *testing.T, log *logbuf.Buffer) *slowUpload {
	t.Helper()
	r, w := io.Pipe()
	u := &slowUpload{rest: w, first: bytes.Repeat([]byte("x"), 3*fileapi.MaxMessage), ended: make(chan error, 1)}
	c := apiClient(t, apiURL(t, log), fileapi.Options{})
	ctx := t.Context()
	go func() {
		_, err := c.Upload(ctx, "/file", r, fileapi.UploadOptions{})
		u.ended <- r.CloseWithError(err)
		u.ended <- err
	}()
	if _, err := w.Write(u.first); err != nil {
		t.Fatal(err)
	}
	metricsSay(t, metricsURL(log), "nfsbox_api_calls_in_progress 1\n")
	return u
}

// end is what the upload came to.
func (u *slowUpload) end() error {
	return errors.Join(<-u.ended, <-u.ended)
}

func metricsURL(log *logbuf.Buffer) string {
	return regexp.MustCompile(`msg=metrics url=(\S+)`).FindStringSubmatch(log.String())[1]
}

// TestAPIDrains lets an upload end that was under way when the server was told to.
func TestAPIDrains(t *testing.T) {
	c := apiConfig(t.TempDir(), t.TempDir())
	c.Metrics, c.DrainTimeout = "127.0.0.1:0", config.Duration(time.Minute)
	_, log, stop := run(t, c)
	u := beginUpload(t, log)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	askUntil(t, metricsURL(log)+"/healthz", func(status int, _ string) bool { return status == http.StatusServiceUnavailable })
	if _, err := u.rest.Write([]byte("end")); err != nil {
		t.Fatal(err)
	}
	if err := u.rest.Close(); err != nil {
		t.Fatal(err)
	}
	if err := u.end(); err != nil {
		t.Error(err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	got, err := os.ReadFile(filepath.Join(c.Exports[0].Dir, "file"))
	if err != nil || !bytes.Equal(got, append(u.first, "end"...)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestAPICutOff ends while an upload is under way that does not end: nothing of it
// is left.
func TestAPICutOff(t *testing.T) {
	c := apiConfig(t.TempDir(), t.TempDir())
	c.Metrics, c.DrainTimeout = "127.0.0.1:0", config.Duration(time.Millisecond)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log, ready, stopped := new(logbuf.Buffer), make(chan struct{}), make(chan error, 1)
	go func() {
		stopped <- Serve(ctx, c, World{Rand: counter(), Log: log}, func(Running) error {
			close(ready)
			return nil
		})
	}()
	select {
	case <-ready:
	case err := <-stopped:
		t.Fatal(err)
	}
	u := beginUpload(t, log)
	stop()
	if err := <-stopped; err == nil || !strings.Contains(err.Error(), "calls were cut off after 1ms: calls of the file API were cut off") {
		t.Errorf("the end: %v", err)
	}
	if err := u.rest.Close(); err != nil {
		t.Error(err)
	}
	if err := u.end(); err == nil {
		t.Error("the upload has succeeded")
	}
	if left, err := os.ReadDir(c.Exports[0].Dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestAPIRestart finds what was stored before, by path and by content.
func TestAPIRestart(t *testing.T) {
	c := apiConfig(t.TempDir(), t.TempDir())
	c.API.Store = t.TempDir()
	random := counter()
	var content string
	for range 2 {
		_, log, stop := runIn(t, c, World{Rand: random})
		cl := apiClient(t, apiURL(t, log), fileapi.Options{})
		if content == "" {
			stored, err := cl.UploadContent(t.Context(), strings.NewReader("kept"))
			if err != nil {
				t.Fatal(err)
			}
			content = stored.Checksum
			if _, err := cl.Put(t.Context(), "/file", []byte("kept"), fileapi.UploadOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{content, "/file"} {
			var got bytes.Buffer
			if _, err := cl.Download(t.Context(), name, &got, fileapi.Range{}); err != nil || got.String() != "kept" {
				t.Errorf("%s: %q, %v", name, got.String(), err)
			}
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}
