package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/fileapi"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// TestUploadKilled kills the server again and again in the middle of an upload: its
// file is as it was, and the next server takes away what the last one has left. Both
// servers' sockets stay open in between.
func TestUploadKilled(t *testing.T) {
	t.Parallel()
	nfs, nfsAddress := listener(t)
	api, apiAddress := listener(t)
	tree := t.TempDir()
	args := []string{tree, "--listen", nfsAddress, "--api", apiAddress, "--state-dir", t.TempDir(),
		"--api-loopback", fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())}
	c, err := fileapi.New("http://"+apiAddress, fileapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for round := range 3 {
		s := serveProcess(t, []*os.File{nfs, api}, args...)
		if left := temporaries(t, tree); len(left) != 0 {
			t.Errorf("round %d: the server has begun, and has not swept %v", round, left)
		}
		want := bytes.Repeat([]byte{byte('a' + round)}, 100_000)
		if _, err := c.Put(t.Context(), "/file", want, fileapi.UploadOptions{}); err != nil {
			t.Fatal(err)
		}
		ended := uploadForEver(t, c)
		awaitTemporary(t, tree)
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := <-s.ended; err == nil {
			t.Error("a server that was killed has ended well")
		}
		if err := <-ended; err == nil {
			t.Error("an upload has ended well whose server was killed")
		}
		if got, err := os.ReadFile(filepath.Join(tree, "file")); err != nil || !bytes.Equal(got, want) {
			t.Errorf("round %d: %d bytes, %v", round, len(got), err)
		}
	}
	s := serveProcess(t, []*os.File{nfs, api}, args...)
	for e, err := range c.List(t.Context(), "/", false) {
		if err != nil || e.Name != "file" {
			t.Errorf("at the end there is %q, %v", e.Name, err)
		}
	}
	if left := temporaries(t, tree); len(left) != 0 {
		t.Errorf("at the end there are %v", left)
	}
	s.stop(t)
}

// uploadForEver begins to replace /file, by more than will ever come.
func uploadForEver(t *testing.T, c *fileapi.Client) <-chan error {
	r, w := io.Pipe()
	ended, ctx := make(chan error, 1), t.Context()
	go func() {
		_, err := c.Upload(ctx, "/file", r, fileapi.UploadOptions{})
		_ = r.CloseWithError(err) // never fails
		ended <- err
	}()
	go func() {
		for err := error(nil); err == nil; { // until the server is dead
			_, err = w.Write(make([]byte, 64<<10))
		}
	}()
	return ended
}

func temporaries(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, ".nfsbox-upload-*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// awaitTemporary waits until bytes of an upload are in its temporary.
func awaitTemporary(t *testing.T, dir string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); ; {
		for _, name := range temporaries(t, dir) {
			if info, err := os.Stat(name); err == nil && info.Size() > 0 {
				return
			}
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("no upload begins")
		}
	}
}

// TestUploadThreads stores files by path and by content from many clients at once:
// the disk holds no more threads than it may.
func TestUploadThreads(t *testing.T) {
	need.Time(t, "how many threads a hundred uploads take")
	t.Parallel()
	const clients, uploads, ioThreads, others = 100, 3, 8, 24 // others: the runtime's own
	socket, address := listener(t)
	nfs, nfsAddress := listener(t)
	s := serveProcess(t, []*os.File{nfs, socket}, t.TempDir(), "--listen", nfsAddress, "--api", address, "--state-dir", t.TempDir(),
		"--api-loopback", fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid()), "--api-store", t.TempDir(), "--io-threads", fmt.Sprint(ioThreads))
	c, err := fileapi.New("http://"+address, fileapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var work sync.WaitGroup
	for i := range clients {
		work.Go(func() {
			for j := range uploads {
				data := bytes.Repeat(fmt.Appendf(nil, "%8d%8d", i, j), 50<<10/16)
				_, err := c.Put(t.Context(), fmt.Sprintf("/%d-%d", i, j), data, fileapi.UploadOptions{})
				if err == nil {
					_, err = c.UploadContent(t.Context(), bytes.NewReader(data))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		work.Wait()
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	peak := uint64(0)
	for busy := true; busy; {
		peak = max(peak, s.status(t, "Threads"))
		select {
		case <-tick.C:
		case <-done:
			busy = false
		}
	}
	t.Logf("%d threads at most", peak)
	if peak > ioThreads+others {
		t.Errorf("%d threads, %d of them for the disk", peak, ioThreads)
	}
	s.stop(t)
}
