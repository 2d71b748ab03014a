package iofs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

func create(tb testing.TB, f *iofs.FS, name string, flag int) *iofs.File {
	tb.Helper()
	file, err := f.OpenFile(name, os.O_RDWR|os.O_CREATE|flag, 0o644)
	if err != nil {
		tb.Fatal(err)
	}
	return file
}

func closeFile(tb testing.TB, file io.Closer) {
	tb.Helper()
	if err := file.Close(); err != nil {
		tb.Error(err)
	}
}

func wantFile(tb testing.TB, f *iofs.FS, name, want string) {
	tb.Helper()
	if b, err := f.ReadFile(name); string(b) != want || err != nil {
		tb.Errorf("%s: %.40q, %v; want %.40q", name, b, err, want)
	}
}

// TestFileWrite writes, seeks, reads and cuts as with an os.File.
func TestFileWrite(t *testing.T) {
	f := newTree(t).io()
	file := create(t, f, "file", 0)
	size := func(want int64) {
		t.Helper()
		if info, err := file.Stat(); err != nil || info.Size() != want || info.Name() != "file" {
			t.Errorf("%v, %v; want size %d", info, err, want)
		}
	}
	ok := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	size(0)
	ok(file.Write([]byte("hello, ")))
	ok(file.WriteString("world"))
	size(12)
	ok(file.WriteAt([]byte("W"), 7))
	ok(file.Seek(-5, io.SeekCurrent))
	if b, err := io.ReadAll(file); string(b) != "World" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	ok(file.Seek(3, io.SeekEnd))
	ok(file.Write([]byte("!")))
	size(16)
	ok(nil, file.Truncate(5))
	size(5)
	ok(nil, file.Truncate(6))
	ok(nil, file.Sync())
	closeFile(t, file)
	wantFile(t, f, "file", "hello\x00")
}

func TestFileAppend(t *testing.T) {
	f := newTree(t).io()
	a, b := create(t, f, "log", os.O_APPEND), create(t, f, "log", os.O_APPEND)
	for i, file := range []*iofs.File{a, b, b, a} {
		if _, err := file.WriteString(string(rune('0' + i))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.WriteAt([]byte("x"), 0); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("WriteAt: %v", err)
	}
	if at, err := a.Seek(0, io.SeekCurrent); at != 4 || err != nil {
		t.Errorf("stands at %d, %v", at, err)
	}
	closeFile(t, a)
	closeFile(t, b)
	wantFile(t, f, "log", "0123")
}

func TestFileMisuse(t *testing.T) {
	m := newTree(t)
	m.file("file", "x")
	f := m.io()
	reader, err := f.OpenFile("file", os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := f.OpenFile("file", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	closed := create(t, f, "closed", 0)
	closeFile(t, closed)
	p := make([]byte, 1)
	for _, c := range []struct {
		op   string
		do   func() error
		want error
	}{
		{"write", func() error { _, err := reader.Write(p); return err }, fs.ErrPermission},
		{"write", func() error { _, err := reader.WriteAt(p, 0); return err }, fs.ErrPermission},
		{"write", func() error { _, err := reader.ReadFrom(strings.NewReader("x")); return err }, fs.ErrPermission},
		{"truncate", func() error { return reader.Truncate(0) }, fs.ErrPermission},
		{"read", func() error { _, err := writer.Read(p); return err }, fs.ErrPermission},
		{"read", func() error { _, err := writer.WriteTo(io.Discard); return err }, fs.ErrPermission},
		{"read", func() error { _, err := reader.ReadAt(p, -1); return err }, fs.ErrInvalid},
		{"write", func() error { _, err := writer.WriteAt(p, -1); return err }, fs.ErrInvalid},
		{"write", func() error { _, err := writer.WriteAt(p, math.MaxInt64); return err }, syscall.EFBIG},
		{"truncate", func() error { return writer.Truncate(-1) }, fs.ErrInvalid},
		{"seek", func() error { _, err := reader.Seek(0, 3); return err }, fs.ErrInvalid},
		{"seek", func() error { _, err := reader.Seek(-1, io.SeekCurrent); return err }, fs.ErrInvalid},
		{"seek", func() error { _, err := reader.Seek(math.MaxInt64, io.SeekEnd); return err }, fs.ErrInvalid},
		{"seek", func() error { _, err := reader.Seek(math.MinInt64, io.SeekEnd); return err }, fs.ErrInvalid},
		{"read", func() error { _, err := closed.Read(p); return err }, fs.ErrClosed},
		{"write", func() error { _, err := closed.Write(p); return err }, fs.ErrClosed},
		{"write", func() error { _, err := closed.ReadFrom(strings.NewReader("x")); return err }, fs.ErrClosed},
		{"read", func() error { _, err := closed.WriteTo(io.Discard); return err }, fs.ErrClosed},
		{"stat", func() error { _, err := closed.Stat(); return err }, fs.ErrClosed},
		{"seek", func() error { _, err := closed.Seek(0, 0); return err }, fs.ErrClosed},
		{"truncate", func() error { return closed.Truncate(0) }, fs.ErrClosed},
		{"sync", closed.Sync, fs.ErrClosed},
		{"close", closed.Close, fs.ErrClosed},
	} {
		err := c.do()
		if pe := (*fs.PathError)(nil); !errors.Is(err, c.want) || !errors.As(err, &pe) || pe.Op != c.op {
			t.Errorf("%s: %v, want %v", c.op, err, c.want)
		}
	}
	if err := errors.Join(reader.Sync(), reader.Close(), writer.Close()); err != nil {
		t.Error(err) // none of this was an error of a write
	}
}

// TestFirstWriteError: what went wrong once is told by Sync and Close.
func TestFirstWriteError(t *testing.T) {
	fail := ""
	mem := memfs.New(memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == fail {
			return vfs.ErrNoSpace
		}
		return nil
	}})
	f, err := iofs.Root(t.Context(), mem)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{"write", "commit", "close"} {
		file := create(t, f, op, 0)
		fail = op
		if _, err := file.Write([]byte("x")); (op == "write") != errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: Write: %v", op, err)
		}
		if err := file.Sync(); (op != "close") != errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: Sync: %v", op, err)
		}
		if op != "close" {
			fail = ""
		}
		if _, err := file.WriteAt([]byte("y"), 1); err != nil {
			t.Errorf("%s: the next Write: %v", op, err)
		}
		if err := file.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: Close: %v", op, err)
		}
		fail = ""
	}
	if n := mem.OpenFiles(); n != 0 {
		t.Errorf("%d files left open", n)
	}
}

// TestRestartLosesWrites: over an FS that keeps no bytes, Sync and Close notice
// that the server has lost some.
func TestRestartLosesWrites(t *testing.T) {
	mem := memfs.New(memfs.Options{})
	f, err := iofs.Root(t.Context(), mem)
	if err != nil {
		t.Fatal(err)
	}
	lost, kept, mixed := create(t, f, "lost", 0), create(t, f, "kept", 0), create(t, f, "mixed", 0)
	stable := create(t, f, "stable", os.O_SYNC)
	for _, file := range []*iofs.File{lost, kept, mixed, stable} {
		if _, err := file.WriteString("a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := kept.Sync(); err != nil {
		t.Fatal(err)
	}
	mem.Restart()
	if _, err := mixed.WriteString("b"); err != nil {
		t.Fatal(err)
	}
	for _, file := range []*iofs.File{lost, mixed} {
		if err := file.Sync(); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: Sync: %v", file.Name(), err)
		}
		if err := file.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: Close: %v", file.Name(), err)
		}
	}
	closeFile(t, kept)
	closeFile(t, stable)
	wantFile(t, f, "kept", "a")
	wantFile(t, f, "stable", "a")
}

// TestCopy moves a file through every way that io.Copy knows.
func TestCopy(t *testing.T) {
	m, c := counted(t)
	data := strings.Repeat("0123456789abcdef", 200_000) // 3.2 MB, and no multiple of a buffer
	m.file("from", data)
	f := m.io()
	for name, source := range map[string]func() io.Reader{
		"file": func() io.Reader {
			file, err := f.OpenFile("from", os.O_RDONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { closeFile(t, file) })
			return file
		},
		"reader":     func() io.Reader { return struct{ io.Reader }{strings.NewReader(data)} },
		"small":      func() io.Reader { return iotest.HalfReader(strings.NewReader(data)) },
		"last error": func() io.Reader { return iotest.DataErrReader(strings.NewReader(data)) },
	} {
		to := create(t, f, "to "+name, 0)
		got := c.during(func() {
			if n, err := io.Copy(to, source()); n != int64(len(data)) || err != nil {
				t.Errorf("%s: %d, %v", name, n, err)
			}
		})
		if got["write"] != 4 || name == "file" && got["read"] != 4 {
			t.Errorf("%s: %v, want 4 reads or writes", name, got)
		}
		closeFile(t, to)
		wantFile(t, f, "to "+name, data)
	}
}

// TestCopyErrors: what was read before an error is written, and the error told.
func TestCopyErrors(t *testing.T) {
	f := newTree(t).io()
	broken := errors.New("broken")
	for _, c := range []struct {
		name string
		from io.Reader
		want error
	}{
		{"error", io.MultiReader(strings.NewReader("some"), iotest.ErrReader(broken)), broken},
		{"cut", io.MultiReader(strings.NewReader("some"), iotest.ErrReader(io.ErrUnexpectedEOF)), io.ErrUnexpectedEOF},
		{"stuck", io.MultiReader(strings.NewReader("some"), stuck{}), io.ErrNoProgress},
	} {
		file := create(t, f, c.name, 0)
		if n, err := file.ReadFrom(c.from); n != 4 || !errors.Is(err, c.want) {
			t.Errorf("%s: %d, %v", c.name, n, err)
		}
		closeFile(t, file)
		wantFile(t, f, c.name, "some")
	}
	file, err := f.OpenFile("cut", os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeFile(t, file)
	if n, err := file.WriteTo(shortWriter{}); n != 1 || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a short write: %d, %v", n, err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

type shortWriter struct{}

func (shortWriter) Write(p []byte) (int, error) { return 1, nil }

// TestFileConcurrently uses one file from many goroutines; the race detector
// looks on.
func TestFileConcurrently(t *testing.T) {
	f := newTree(t).io()
	file := create(t, f, "file", 0)
	const n, size = 16, 1000
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			p := bytes.Repeat([]byte{byte(i)}, size)
			if _, err := file.WriteAt(p, int64(i*size)); err != nil {
				t.Error(err)
			}
			q := make([]byte, size)
			if _, err := file.ReadAt(q, int64(i*size)); err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(p, q) {
				t.Error(err)
			}
			if err := file.Sync(); err != nil {
				t.Error(err)
			}
			if _, err := file.Stat(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	seen := make([]int, n)
	var mu sync.Mutex
	for range n {
		all.Go(func() {
			p := make([]byte, size)
			if _, err := file.Read(p); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[p[0]]++
		})
	}
	all.Wait()
	for i, times := range seen {
		if times != 1 {
			t.Errorf("part %d was read %d times", i, times)
		}
	}
	closeFile(t, file)
}

// TestSyncWaits: a Sync that finds another at work returns when that has made
// stable what was written before.
func TestSyncWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, commits := make(chan struct{}), 0
		mem := memfs.New(memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
			if op == "commit" {
				commits++
				<-release
			}
			return nil
		}})
		f, err := iofs.Root(t.Context(), mem)
		if err != nil {
			t.Fatal(err)
		}
		file := create(t, f, "file", 0)
		if _, err := file.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		returned := 0
		var mu sync.Mutex
		for range 3 {
			go func() {
				err := file.Sync()
				mu.Lock()
				defer mu.Unlock()
				if returned++; err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		mu.Lock()
		if returned != 0 || commits != 1 {
			t.Errorf("%d returned, %d commits", returned, commits)
		}
		mu.Unlock()
		close(release)
		synctest.Wait()
		if returned != 3 || commits != 1 {
			t.Errorf("in the end %d returned, %d commits", returned, commits)
		}
		closeFile(t, file)
	})
}
