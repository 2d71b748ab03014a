package bucketfs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/testkit/fakes3"
	"github.com/nfsbox/nfsbox/internal/tools/dirfs"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/vfs"
)

// parts is how long seven parts of some bytes are.
func parts(some int64) int64 { return 6*some + 12345 }

// small is how long a part is in tests that need no longer ones: S3 takes no shorter one.
const small = 5 << 20

// inSmall is a file system in a fake bucket that puts files of five small parts, and longer ones, in such parts.
func inSmall(t *testing.T, s *fakes3.Server) *FS {
	t.Helper()
	f := over(t, s)
	f.whole, f.part = 4*small, small
	return f
}

// largeFile is a directory of this host with a file of size bytes in it.
func largeFile(t *testing.T, size int64) (dir string, at job.Place) {
	t.Helper()
	dir = t.TempDir()
	f, err := os.Create(dir + "/large")
	if err != nil {
		t.Fatal(err)
	}
	var seed [32]byte
	_, err = io.CopyN(f, rand.NewChaCha8(seed), size)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	fsys, err := dirfs.New(dir, dirfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fsys.Close() }) // nothing was written
	return dir, rooted(t, fsys)
}

// record is a directory for what is copied in part.
func record(t *testing.T) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // files are read below it alone
	return r
}

// TestParts: a large file is put in parts. A copy that was broken off is gone on with, and only what is missing is sent. After a change of the
// source it is begun anew, and nothing is left.
func TestParts(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	dir, src := largeFile(t, parts(small))
	dst := rooted(t, inSmall(t, s))
	o := job.CopyOptions{Source: src, Dest: dst, Name: "copy", Parts: record(t), Tag: "ab"}

	breakOff(t, s, o, 3)
	if s.Uploads() != 1 {
		t.Fatalf("%d uploads are left for the next run", s.Uploads())
	}
	s.Set(fakes3.Faults{SlowDown: 100, Lost: 100, Twice: 100})
	o.Verify = true
	sum, text, err := copying(t, o)
	if err != nil || sum.Errors > 0 || sum.Verified != 1 || !strings.Contains(text, "that an earlier run has copied") {
		t.Fatalf("%+v, %v\n%s", sum, err, text)
	}
	s.Set(fakes3.Faults{})
	if s.Uploads() > 0 || len(s.Names()) != 2 {
		t.Errorf("%d uploads, %q", s.Uploads(), s.Names())
	}
	sameLarge(t, s, dir, "copy/large")

	o.Name, o.Verify = "other", false
	there := breakOff(t, s, o, 3)
	var sent partNumbers
	s.Set(fakes3.Faults{Hook: fakes3.On("PART", sent.note)})
	if sum, text, err := copying(t, o); err != nil || sum.Errors > 0 {
		t.Fatalf("%+v, %v\n%s", sum, err, text)
	}
	s.Set(fakes3.Faults{})
	for number := range there.all {
		if sent.all[number] {
			t.Errorf("part %s was there, and is sent again", number)
		}
	}
	if len(there.all) != 3 || len(there.all)+len(sent.all) != 7 {
		t.Errorf("parts %v were there, %v are sent", there.all, sent.all)
	}
	sameLarge(t, s, dir, "other/large")

	o.Name = "third"
	breakOff(t, s, o, 3)
	if err := os.Chtimes(dir+"/large", time.Now(), time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	before := s.Calls("PART")
	if sum, text, err := copying(t, o); err != nil || sum.Errors > 0 || s.Calls("PART")-before != 7 {
		t.Errorf("%d parts: %+v, %v\n%s", s.Calls("PART")-before, sum, err, text)
	}
	if s.Uploads() > 0 {
		t.Errorf("%d uploads are left", s.Uploads())
	}

	o.Name = "fourth"
	breakOff(t, s, o, 3)
	if err := os.Rename(dir+"/large", dir+"/small"); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(dir+"/small", 10); err != nil {
		t.Fatal(err)
	}
	if sum, text, err := copying(t, o); err != nil || sum.Errors > 0 || s.Uploads() > 0 {
		t.Errorf("%d uploads of a file that is gone are left: %+v, %v\n%s", s.Uploads(), sum, err, text)
	}
}

// partNumbers are those of parts that came to a server.
type partNumbers struct {
	mu  sync.Mutex
	all map[string]bool
}

// note is a hook that lets a part pass.
func (p *partNumbers) note(_ http.ResponseWriter, r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = make(map[string]bool)
	}
	p.all[r.URL.Query().Get("partNumber")] = true
	return false
}

// breakOff has a copy end when n parts have been put, and says which these are. Another that is on its way may come to the server yet.
func breakOff(t *testing.T, s *fakes3.Server, o job.CopyOptions, n int) *partNumbers {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	put := new(partNumbers)
	s.Set(fakes3.Faults{Hook: fakes3.On("PART", func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if n--; n == -1 {
			cancel()
		}
		return n < 0 || put.note(w, r)
	})})
	defer s.Set(fakes3.Faults{})
	if _, _, err := copyingIn(ctx, t, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("broken off: %v", err)
	}
	s.Settle()
	return put
}

func sameLarge(t *testing.T, s *fakes3.Server, dir, key string) {
	t.Helper()
	want, err := os.ReadFile(dir + "/large")
	if err != nil {
		t.Fatal(err)
	}
	if !s.Change(key, func(b []byte) []byte {
		if !bytes.Equal(b, want) {
			t.Errorf("%s has %d bytes, and others than the file", key, len(b))
		}
		return b
	}) {
		t.Errorf("%s is not there", key)
	}
}

// TestPartsThatFail: an upload that nobody can go on with is aborted.
func TestPartsThatFail(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	_, src := largeFile(t, parts(small))
	dst := rooted(t, inSmall(t, s))
	s.Set(fakes3.Faults{Hook: fakes3.On("PART", fakes3.Fail(403, "AccessDenied", ""))})
	sum, text, err := copying(t, job.CopyOptions{Source: src, Dest: dst, Name: "copy", Parts: record(t), Tag: "ab"})
	if err != nil || sum.Errors != 1 || s.Uploads() != 0 || !strings.Contains(text, "may not write") {
		t.Errorf("%d uploads: %+v, %v\n%s", s.Uploads(), sum, err, text)
	}
}

// TestComplete: after a lost answer to the last request the object says whether it was made.
func TestComplete(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	f := inSmall(t, s)
	root := rooted(t, f).Handle
	a := vfs.Attr{Valid: vfs.MaskSize | vfs.MaskMtime, Size: uint64(f.whole) + 1, Mtime: time.Unix(5, 0)}
	m, err := f.Make(t.Context(), root, "file", &a, "")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, small)
	for off := uint64(0); off < a.Size; off += small {
		if _, err := vfs.WriteFull(t.Context(), m, b[:min(small, a.Size-off)], off, vfs.Unstable, new(vfs.Written)); err != nil {
			t.Fatal(err)
		}
	}
	for _, off := range []uint64{0, a.Size - edge} {
		if n, _, err := m.ReadAt(t.Context(), make([]byte, edge), off, nil); n != edge || err != nil {
			t.Errorf("at %d: %d, %v", off, n, err)
		}
	}
	s.Set(fakes3.Faults{Twice: 1000}) // the second time there is no such upload
	_, attr, err := m.Publish(t.Context())
	if err != nil {
		t.Error(err)
	}
	s.Set(fakes3.Faults{})
	if err := m.Close(t.Context()); err != nil || attr.Size != a.Size || s.Uploads() > 0 {
		t.Errorf("%v, %+v", err, attr)
	}
}

// TestMade: a copy that was killed when its upload had become an object, and before it knew that, sends nothing again.
func TestMade(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	dir, src := largeFile(t, parts(small))
	o := job.CopyOptions{Source: src, Dest: rooted(t, inSmall(t, s)), Name: "copy", Parts: record(t), Tag: "ab"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Set(fakes3.Faults{Hook: fakes3.On("POST", func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("uploadId") {
			cancel()
		}
		return false
	})})
	if _, text, err := copyingIn(ctx, t, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v\n%s", err, text)
	}
	s.Settle()
	s.Set(fakes3.Faults{})
	before := s.Calls("PART")
	sum, text, err := copying(t, o)
	if n := s.Calls("PART") - before; err != nil || sum.Errors > 0 || n > 0 || s.Uploads() > 0 {
		t.Errorf("%d parts were sent again, %d uploads are left: %+v, %v\n%s", n, s.Uploads(), sum, err, text)
	}
	sameLarge(t, s, dir, "copy/large")
}

// TestMadeOfOther: the object of an earlier upload is that of a file only if it has its bytes.
func TestMadeOfOther(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	f := inSmall(t, s)
	root := rooted(t, f).Handle
	a := vfs.Attr{Valid: vfs.MaskSize | vfs.MaskMtime, Size: uint64(f.whole) + 1, Mtime: time.Unix(5, 0)}
	mark := ""
	put := func(fill byte) (resumed uint64, err error) {
		m, err := f.Make(t.Context(), root, "file", &a, mark)
		if err != nil {
			t.Fatal(err)
		}
		mark = m.Mark()
		if _, err := vfs.WriteFull(t.Context(), m, bytes.Repeat([]byte{fill}, int(a.Size)), 0, vfs.Unstable, new(vfs.Written)); err != nil {
			t.Fatal(err)
		}
		_, _, err = m.Publish(t.Context())
		if cerr := m.Close(t.Context()); cerr != nil {
			t.Error(cerr)
		}
		return m.Resumed(), err
	}
	if n, err := put('a'); n != 0 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if n, err := put('a'); n != a.Size || err != nil {
		t.Errorf("the same bytes: %d are there, %v", n, err)
	}
	if _, err := put('b'); err == nil || !strings.Contains(err.Error(), "the same command copies it again") {
		t.Errorf("other bytes: %v", err)
	}
	s.Plant("file", []byte("of another program"))
	if n, err := put('b'); n != 0 || err != nil {
		t.Errorf("another object: %d are there, %v", n, err)
	}
}

// TestMarks: a mark that may be anything begins nothing but an upload of its own.
func TestMarks(t *testing.T) {
	for _, mark := range []string{"", "x", markTag, markTag + " id number about ", markTag + " id\n number about key", markTag + "  number about key", markTag + " " + strings.Repeat("i", 2000) + " n a k"} {
		if u, ok := parseMark(mark); ok {
			t.Errorf("%q is %+v", mark, u)
		}
	}
	u := upload{"a key/with spaces", "id", "number", "about"}
	if back, ok := parseMark(u.String()); !ok || back != u {
		t.Errorf("%+v, %v", back, ok)
	}
	for size, want := range map[int64]int64{maxWhole + 1: partSize, 10_000 * partSize: partSize, 10_000*partSize + 1: partSize + 1<<20, maxMade: maxPart} {
		if got := partOf(size, partSize); got != want || (size+got-1)/got > bucket.MaxParts {
			t.Errorf("parts of %d: %d, want %d", size, got, want)
		}
	}
}
