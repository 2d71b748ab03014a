package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/leak"
)

// TestMain looks for goroutines of ours when all tests have cleaned up.
func TestMain(m *testing.M) { leak.Main(m) }

// made is a tree of n files.
func made(t *testing.T, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "src")
	if err := os.MkdirAll(filepath.Join(dir, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, "d", fmt.Sprint(i)), []byte(fmt.Sprint("file ", i)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestCopy: the copy is the same, a second one with a record copies nothing, and Sync finds that all is the same.
func TestCopy(t *testing.T) {
	src := made(t, 20)
	dst, record := filepath.Join(t.TempDir(), "dst"), filepath.Join(t.TempDir(), "a", "record")
	o := CopyOptions{Verify: true, Record: record}
	sum, err := Copy(t.Context(), src, dst, o)
	if err != nil || sum.Files != 20 || sum.Dirs != 2 || sum.Verified != 20 || sum.Skipped != 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	o.Verify = false
	if sum, err = Copy(t.Context(), src, dst, o); err != nil || sum.Skipped != 20 || sum.Files != 0 {
		t.Errorf("again: %+v, %v", sum, err)
	}
	if _, err := Copy(t.Context(), src, dst+"2", o); !errors.Is(err, ErrRecord) {
		t.Errorf("another job with its record: %v", err)
	}
	if _, err := os.Lstat(dst + "2"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was begun: %v", err)
	}
	if err := os.WriteFile(filepath.Join(src, "d", "new"), []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	if sum, err = Sync(t.Context(), src, dst, SyncOptions{}); err != nil || sum.Files != 1 {
		t.Errorf("Sync: %+v, %v", sum, err)
	}
	if got, err := Verify(t.Context(), src, dst, VerifyOptions{Owner: true}); err != nil || got.Files != 21 {
		t.Errorf("Verify: %+v, %v", got, err)
	}
	one := filepath.Join(src, "d", "new")
	if sum, err = Copy(t.Context(), one, dst+"3", CopyOptions{}); err != nil || sum.Files != 1 {
		t.Errorf("a file: %+v, %v", sum, err)
	}
	if _, err := Copy(t.Context(), one, dst, CopyOptions{}); !errors.Is(err, ErrPlace) {
		t.Errorf("a file to a directory: %v", err)
	}
}

// TestErrors: errors are of the kinds that the package has, and the summary counts.
func TestErrors(t *testing.T) {
	src := made(t, 3)
	dst := filepath.Join(t.TempDir(), "dst")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for what, c := range map[string]struct {
		ctx          context.Context
		source, dest string
		o            CopyOptions
		want         error
	}{
		"no place":       {t.Context(), "ftp://x/y", dst, CopyOptions{}, ErrPlace},
		"empty":          {t.Context(), src, "", CopyOptions{}, ErrPlace},
		"too many":       {t.Context(), src, dst, CopyOptions{Options: Options{Parallel: 1 << 20}}, ErrPlace},
		"nobody listens": {t.Context(), "nfs://127.0.0.1:1/x", dst, CopyOptions{}, ErrUnreachable},
		"nothing there":  {t.Context(), src + "/none", dst, CopyOptions{}, os.ErrNotExist},
		"into itself":    {t.Context(), src, filepath.Join(src, "d", "copy"), CopyOptions{}, ErrIntoItself},
		"cancelled":      {ended, src, dst, CopyOptions{}, context.Canceled},
	} {
		events := make(chan Event) // nobody receives until the end
		c.o.Events = events
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			for range events {
			}
		}()
		if sum, err := Copy(c.ctx, c.source, c.dest, c.o); !errors.Is(err, c.want) || sum.Files != 0 {
			t.Errorf("%s: %+v, %v", what, sum, err)
		}
		<-drained // it is closed however the job ends
	}
}

// TestIncomplete: an item that fails is told of, and the others are copied.
func TestIncomplete(t *testing.T) {
	src := made(t, 3)
	dst := filepath.Join(t.TempDir(), "dst")
	if err := os.MkdirAll(filepath.Join(dst, "d", "1"), 0o755); err != nil { // in the way of a file
		t.Fatal(err)
	}
	events := make(chan Event, 1000)
	sum, err := Copy(t.Context(), src, dst, CopyOptions{Options: Options{Events: events}})
	if !errors.Is(err, ErrIncomplete) || errors.Is(err, ErrDifferent) || sum.Errors != 1 || sum.Files != 2 {
		t.Errorf("%+v, %v", sum, err)
	}
	failed, last := 0, Event{}
	for e := range events {
		if last = e; e.Type == Failed && e.Path == filepath.Join("d", "1") && e.Err != nil {
			failed++
		}
	}
	if failed != 1 || last.Type != Progress || last.Counters.Files != 2 || !last.Counters.Final || last.Counters.Errors != 1 {
		t.Errorf("%d failures are told of, and in the end %+v", failed, last)
	}
	events = make(chan Event, 1000)
	found, err := Verify(t.Context(), src, dst, VerifyOptions{Options: Options{Events: events}})
	if !errors.Is(err, ErrDifferent) || !errors.Is(err, ErrIncomplete) || found.Differences == 0 {
		t.Errorf("%+v, %v", found, err)
	}
	kinds := map[string]int{}
	for e := range events {
		kinds[e.Type+e.Kind]++
	}
	if kinds[Difference+"type"] != 1 {
		t.Errorf("%v", kinds)
	}
}

// TestEventsNotReceived: a program that does not receive holds the job up until its context ends, and no longer.
func TestEventsNotReceived(t *testing.T) {
	src := made(t, 3)
	dst := filepath.Join(t.TempDir(), "dst")
	if err := os.MkdirAll(filepath.Join(dst, "d", "1"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Copy(ctx, src, dst, CopyOptions{Options: Options{Events: make(chan Event)}}); err == nil {
		t.Error("no error")
	}
}
