package bucketfs

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/testkit/fakes3"
	"github.com/nfsbox/nfsbox/internal/testkit/leak"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

func TestMain(m *testing.M) { leak.Main(m, "net/http.(*persistConn)") }

// over is a file system in a fake bucket, without pauses between tries.
func over(t *testing.T, f *fakes3.Server, root ...string) *FS {
	t.Helper()
	return at(t, bucket.Options{
		Bucket: fakes3.Bucket, Endpoint: f.URL, Credentials: bucket.Static(fakes3.Key, fakes3.Secret),
		Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}, root...)
}

func at(t *testing.T, o bucket.Options, root ...string) *FS {
	t.Helper()
	c, err := bucket.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(c, Options{Root: root, UID: 7, GID: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // it has nothing that could fail
	return f
}

// rooted is the root of a file system.
func rooted(t *testing.T, f vfs.FS) job.Place {
	t.Helper()
	h, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return job.Place{FS: f, Handle: h}
}

// copied copies a tree, and ends the test unless that has gone well.
func copied(t *testing.T, o job.CopyOptions) job.Summary {
	t.Helper()
	s, text, err := copying(t, o)
	if err != nil || s.Errors > 0 {
		t.Fatalf("%+v: %v\n%s", s, err, text)
	}
	return s
}

func copying(t *testing.T, o job.CopyOptions) (job.Summary, string, error) {
	t.Helper()
	return copyingIn(t.Context(), t, o)
}

func copyingIn(ctx context.Context, t *testing.T, o job.CopyOptions) (job.Summary, string, error) {
	t.Helper()
	var v events
	o.Pool, o.Random, o.Now, o.Owner = new(bufpool.Pool), rand.Reader, time.Now, true
	o.Progress = progress.New(&v, time.Now)
	s, err := job.Copy(ctx, o)
	if err := o.Progress.Finish(nil); err != nil {
		t.Error(err)
	}
	return s, v.text.String(), err
}

// events is what a job has told.
type events struct{ text strings.Builder }

func (*events) Interval() time.Duration               { return time.Hour }
func (*events) Progress(*progress.Snapshot) error     { return nil }
func (*events) Summary(*progress.Snapshot, any) error { return nil }
func (v *events) Event(_ time.Time, e *progress.Event) error {
	_, err := fmt.Fprintf(&v.text, "%s %s: %s\n", e.Type, e.Path, e.Message)
	return err
}

// listed are all objects below a directory, by their paths, with what a copy of them has to keep.
func listed(t *testing.T, f vfs.FS, dir vfs.Handle, path string, into map[string]string) {
	t.Helper()
	for e, err := range f.ReadDir(t.Context(), dir, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			t.Fatal(err)
		}
		name, h := path+string(e.Name), e.Handle
		a, err := f.GetAttr(t.Context(), h, vfs.MaskV3)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		is := fmt.Sprintf("%v %o %d:%d %v", a.Type, a.Mode, a.UID, a.GID, a.Mtime.UTC())
		switch a.Type {
		case vfs.TypeDir:
			listed(t, f, h, name+"/", into)
		case vfs.TypeSymlink:
			target, _, err := f.Readlink(t.Context(), h)
			is += fmt.Sprintf(" %q %v", target, err)
		default:
			is += fmt.Sprintf(" %x", content(t, f, h, a.Size))
		}
		into[name] = is
	}
}

func content(t *testing.T, f vfs.FS, h vfs.Handle, size uint64) []byte {
	t.Helper()
	file, _, err := f.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size+1)
	n, eof, err := vfs.ReadFull(t.Context(), file, b, 0)
	if err != nil || !eof {
		t.Fatalf("%d bytes, %v, %v", n, eof, err)
	}
	if err := file.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return b[:n]
}

// same compares two trees.
func same(t *testing.T, a, b job.Place) {
	t.Helper()
	want, got := make(map[string]string), make(map[string]string)
	listed(t, a.FS, a.Handle, "", want)
	listed(t, b.FS, b.Handle, "", got)
	for name, is := range want {
		if got[name] != is {
			t.Errorf("%q: %s, want %s", name, got[name], is)
		}
	}
	for name := range got {
		if want[name] == "" {
			t.Errorf("%q is new", name)
		}
	}
	if len(want) == 0 {
		t.Error("there is nothing to compare")
	}
}

// put makes an object below dir.
func put(t *testing.T, f vfs.FS, dir vfs.Handle, name string, how vfs.CreateHow, content string) vfs.Handle {
	t.Helper()
	if how.Type == vfs.TypeNone {
		how.Type = vfs.TypeReg
	}
	h, _, _, err := f.Create(t.Context(), dir, name, &how)
	if err != nil {
		t.Fatalf("%q: %v", name, err)
	}
	if content != "" {
		file, _, err := f.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
		if err == nil {
			_, err = vfs.WriteFull(t.Context(), file, []byte(content), 0, vfs.FileSync, new(vfs.Written))
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close(t.Context()) // files in memory close
	}
	return h
}

func set(t *testing.T, f vfs.FS, h vfs.Handle, s vfs.SetAttr) {
	t.Helper()
	if _, err := f.SetAttr(t.Context(), h, &s, nil); err != nil {
		t.Fatal(err)
	}
}

// oddNames are those that make trouble somewhere.
var oddNames = []string{
	"plain", "with space", " ", "+", "a&b=c?d#e", "100%", "%41", "%0A", "line\nbreak", "\x01", "\x7f", "\xff\xfe", "é", "e\u0301", "dots...", "...", ".hidden",
	"<&>\"'", "\\", "a.rclonelink", "~", "*", "\U0001f4be", "\ufffe", strings.Repeat("n", vfs.MaxName), "a", "a!", "a0", "a-", "A",
}

// motley is a tree in memory with all that a bucket can keep, and a directory of wide files.
func motley(t *testing.T, wide int) job.Place {
	t.Helper()
	f := memfs.New(memfs.Options{})
	root := rooted(t, f)
	dir := put(t, f, root.Handle, "names", vfs.CreateHow{Type: vfs.TypeDir}, "")
	for _, name := range oddNames {
		put(t, f, dir, name, vfs.CreateHow{}, "content of "+name)
	}
	dirs := put(t, f, root.Handle, "dirs", vfs.CreateHow{Type: vfs.TypeDir}, "")
	for i, name := range oddNames {
		h := put(t, f, dirs, name, vfs.CreateHow{Type: vfs.TypeDir}, "")
		if i%2 == 0 {
			put(t, f, h, "inside", vfs.CreateHow{}, "x")
		}
	}
	links := put(t, f, root.Handle, "links", vfs.CreateHow{Type: vfs.TypeDir}, "")
	for i, name := range oddNames {
		if len(name) < 200 {
			put(t, f, links, name, vfs.CreateHow{Type: vfs.TypeSymlink, Target: fmt.Sprintf("../%d \xff%s", i, name)}, "")
		}
	}
	rights := put(t, f, root.Handle, "rights", vfs.CreateHow{Type: vfs.TypeDir}, "")
	for i, mode := range []uint32{0, 0o400, 0o751, 0o4755, 0o2770, 0o1777} {
		for _, typ := range []vfs.Type{vfs.TypeReg, vfs.TypeDir} {
			h := put(t, f, rights, fmt.Sprint(typ, mode), vfs.CreateHow{Type: typ}, "")
			set(t, f, h, vfs.SetAttr{Valid: vfs.MaskUID | vfs.MaskGID, UID: 1000, GID: uint32(100 + i)})
			set(t, f, h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode})
		}
	}
	for i, at := range []time.Time{time.Unix(-1, 1), time.Unix(0, 0), time.Unix(-7, 0), time.Unix(1, 999_999_999), time.Unix(1<<33, 500)} {
		set(t, f, put(t, f, root.Handle, fmt.Sprint("time ", i), vfs.CreateHow{}, "x"), vfs.SetAttr{Valid: vfs.MaskAtime | vfs.MaskMtime, Atime: at, Mtime: at})
	}
	put(t, f, root.Handle, "empty", vfs.CreateHow{}, "")
	put(t, f, root.Handle, "some", vfs.CreateHow{}, strings.Repeat("0123456789abcde\n", 200_000))
	deep := root.Handle
	for range 12 {
		deep = put(t, f, deep, strings.Repeat("deep", 10), vfs.CreateHow{Type: vfs.TypeDir}, "")
	}
	put(t, f, deep, "bottom", vfs.CreateHow{}, "of the tree")
	many := put(t, f, root.Handle, "wide", vfs.CreateHow{Type: vfs.TypeDir}, "")
	for i := range wide {
		put(t, f, many, fmt.Sprint(i), vfs.CreateHow{}, "")
	}
	return root
}

// namesOf are the names in a directory, in order.
func namesOf(t *testing.T, f vfs.FS, dir vfs.Handle) (names []string) {
	t.Helper()
	for e, err := range f.ReadDir(t.Context(), dir, vfs.Pos{}, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, string(e.Name))
	}
	slices.Sort(names)
	return names
}
