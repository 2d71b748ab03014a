package bucketfs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/fakes3"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// frozen is the file system without changes.
type frozen struct {
	*FS
}

func (f frozen) As(*vfs.Caller) vfs.FS { return f }

func (f frozen) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	return vfs.ReadOnly{}.SetAttr(ctx, h, set, guard)
}

func (f frozen) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	return vfs.ReadOnly{}.Create(ctx, dir, name, how)
}

func (f frozen) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	return vfs.ReadOnly{}.Link(ctx, h, dir, name)
}

func (f frozen) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	return vfs.ReadOnly{}.Remove(ctx, dir, name, isDir)
}

func (f frozen) Rename(ctx context.Context, from vfs.Handle, fromName string, to vfs.Handle, toName string) (vfs.WCC, vfs.WCC, error) {
	return vfs.ReadOnly{}.Rename(ctx, from, fromName, to, toName)
}

func (f frozen) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if _, err := vfs.Readable(ctx, f, at, how); err != nil {
		return nil, vfs.Opened{}, err
	}
	return f.FS.Open(ctx, at, how)
}

// TestRoundTrip copies a tree into a bucket, there and back, with faults on the way, and listings of many pages.
func TestRoundTrip(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	src := motley(t, 110)
	dst := rooted(t, over(t, s, "pre fix"))
	s.Set(fakes3.Faults{SlowDown: 20, Dropped: 10, Lost: 20, Cut: 20, Twice: 20, Page: 10})
	roundTrip(t, src, dst)

	s.Set(fakes3.Faults{Page: 10})
	fresh := over(t, s, "pre fix", "copy")
	vfstest.RunReadOnly(t, frozen{FS: fresh})
}

// roundTrip copies src to dst, where it is called copy then, and back. Each time it has to be the same.
func roundTrip(t *testing.T, src, dst job.Place) (there job.Place) {
	t.Helper()
	sum := copied(t, job.CopyOptions{Source: src, Dest: dst, Name: "copy", Verify: true})
	if sum.Verified != sum.Files || sum.OwnersLost+sum.SetIDsLost+sum.ModesLost+sum.TimesLost+sum.ACLsLost+sum.XattrsLost+sum.HolesLost > 0 {
		t.Errorf("%+v", sum)
	}
	there = called(t, dst, "copy")
	same(t, src, there)
	back := rooted(t, memfs.New(memfs.Options{}))
	copied(t, job.CopyOptions{Source: there, Dest: back, Name: "back"})
	same(t, src, called(t, back, "back"))
	return there
}

// called is what has a name in a directory.
func called(t *testing.T, dir job.Place, name string) job.Place {
	t.Helper()
	h, _, _, err := dir.FS.Lookup(t.Context(), dir.Handle, name)
	if err != nil {
		t.Fatal(err)
	}
	return job.Place{FS: dir.FS, Handle: h}
}

// TestPowers has vfstest prove that files are made whole.
func TestPowers(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	n := 0
	differences := make(map[string]string)
	for _, name := range []string{"syncer", "hole-seeker", "host-filer", "dropper", "appender"} {
		differences["powers/"+name] = "its files are not written to"
	}
	vfstest.Run(t, vfstest.Config{Groups: []string{"powers"}, Differences: differences, New: func(t *testing.T) vfs.FS {
		n++
		return over(t, s, strings.Repeat("x", n))
	}})
}

// TestForeign: what is no name, or belongs to another object, is not shown as one, and a copy counts it.
func TestForeign(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	for _, key := range []string{
		"good", "d/x", "file/below", "file", "link.rclonelink", "link", "both.rclonelink", "both/below", "also-.x", "also/below", "also",
		"d//empty", "./dot", "../up", "d/..", "d/.", "line\nbreak", "n/" + strings.Repeat("n", 256), ".rclonelink", "/", "%00", "twice%25",
	} {
		s.Plant(key, []byte("x"))
	}
	s.Plant("empty/", nil)
	s.Plant("full/", []byte("bytes that no directory has"))
	f := over(t, s)
	src := rooted(t, f)
	want := []string{
		"/../", "/./", "/.rclonelink", "//", "/%00", "/also/", "/both/", "/file/", "/line\nbreak", "/link.rclonelink",
		"also", "also-.x", "both", "d", "empty", "file", "full", "good", "link", "n", "twice%25",
	}
	slices.Sort(want)
	if got := namesOf(t, f, src.Handle); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	back := rooted(t, memfs.New(memfs.Options{}))
	sum, text, err := copying(t, job.CopyOptions{Source: src, Dest: back, Name: "back"})
	if err != nil || sum.Errors != 10+5 || sum.Files != 7 || sum.Symlinks != 1 {
		t.Errorf("%+v, %v\n%s", sum, err, text)
	}
	for key, why := range map[string]string{
		"/": "begins with %q has no directory here (a name in it is empty)", "d//": "a name in it is empty", "./": "a name in it is .,", "../": "a name in it is ..,",
		"d/..": "the object %q is no file here (a name in it is ..,", "line\nbreak": "each is %XX", ".rclonelink": "no name stands before .rclonelink", "%00": "no name has",
		"n/" + strings.Repeat("n", 256): "a name in it has more than 255 bytes", "link.rclonelink": `(its name belongs to the object "link")`,
		"file/": `(its name belongs to the object "file")`, "both/": `(its name belongs to the object "both.rclonelink")`, "also/": `(its name belongs to the object "also")`,
		"full/": "the object %q is no file here (it has bytes, and stands for a directory)",
	} {
		why = strings.Replace(why, "%q", fmt.Sprintf("%q", key), 1)
		if !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
			return strings.Contains(line, fmt.Sprintf("name in a listing: %s %q ", subject(key), key)) && strings.Contains(line, why)
		}) {
			t.Errorf("%q is not said to be foreign, as %s", key, why)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	if _, err := f.Remove(t.Context(), src.Handle, "full", true); !errors.Is(err, vfs.ErrNotEmpty) {
		t.Errorf("a directory with bytes of its own is removed: %v", err)
	}
	for _, name := range []string{"..", ".", "", "a/b", "\x00"} {
		if _, _, _, err := f.Lookup(t.Context(), src.Handle, name); name != ".." && !errors.Is(err, vfs.ErrInval) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// subject is what a message says of a foreign key.
func subject(key string) string {
	if kindOf(key) == isDir && key != "full/" {
		return "what begins with"
	}
	return "the object"
}

// TestImplicit: a directory that nobody has made is there as long as something is in it, and a file of another program has the time of its upload.
func TestImplicit(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	s.Plant("a/b/c", []byte("content"))
	f := over(t, s)
	root := rooted(t, f).Handle
	a, attr, _, err := f.Lookup(t.Context(), root, "a")
	if err != nil || attr.Type != vfs.TypeDir || attr.Mode != 0o755 || attr.UID != 7 || attr.Mtime.Unix() != 0 {
		t.Fatalf("%+v, %v", attr, err)
	}
	b, _, _, err := f.Lookup(t.Context(), a, "b")
	if err != nil {
		t.Fatal(err)
	}
	_, attr, _, err = f.Lookup(t.Context(), b, "c")
	if err != nil || attr.Mode != 0o644 || !attr.Mtime.Equal(attr.Ctime) || attr.Size != 7 {
		t.Errorf("%+v, %v", attr, err)
	}
	if _, err := f.Remove(t.Context(), root, "a", true); !errors.Is(err, vfs.ErrNotEmpty) {
		t.Errorf("%v", err)
	}
	set(t, f, a, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o700}) // which makes it
	if _, err := f.Remove(t.Context(), b, "c", false); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := f.Lookup(t.Context(), a, "b"); !errors.Is(err, vfs.ErrNoEnt) {
		t.Errorf("%v", err)
	}
	if _, err := f.GetAttr(t.Context(), b, vfs.MaskV3); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("%v", err)
	}
	if attr, err := f.GetAttr(t.Context(), a, vfs.MaskV3); err != nil || attr.Mode != 0o700 {
		t.Errorf("%+v, %v", attr, err)
	}
	if _, err := f.Remove(t.Context(), root, "a", true); err != nil || len(s.Names()) > 0 {
		t.Errorf("%v, and %q is left", err, s.Names())
	}
}

// TestSetIDWithoutOwner: a set-id bit gives nobody's rights where the metadata does not say whose.
func TestSetIDWithoutOwner(t *testing.T) {
	for _, c := range []struct {
		uid, gid string
		want     uint32
	}{{"", "", 0o755}, {"1", "", 0o4755}, {"", "1", 0o2755}, {"1", "1", 0o6755}, {"-1", "x", 0o755}} {
		a := vfs.Attr{UID: 7, GID: 8}
		read(http.Header{metaMode: {"106755"}, metaUID: {c.uid}, metaGID: {c.gid}}, &a)
		if a.Mode != c.want {
			t.Errorf("%q, %q: mode %o, want %o", c.uid, c.gid, a.Mode, c.want)
		}
	}
}

// TestMeta: fields of metadata that are none are passed over.
func TestMeta(t *testing.T) {
	for text, want := range map[string]string{
		"1354040105.123456789":           "1354040105.123456789",
		"1354040105":                     "1354040105",
		"-1.5":                           "-1.5",
		"0.000000001":                    "0.000000001",
		"-0.25":                          "-0.25",
		"1.1234567891":                   "1.123456789",
		"2006-01-02T15:04:05.5+01:00":    "1136210645.5",
		"1e9":                            "",
		"":                               "",
		"1.-5":                           "",
		"99999999999999999999":           "",
		"999999999999999":                "",
		"--1":                            "",
		"+1":                             "",
		"0x10":                           "",
		"1.5 ":                           "",
		"10000-01-01T00:00:00.000000001": "",
	} {
		at, ok := parseTime(text)
		if ok != (want != "") || ok && formatTime(at) != want {
			t.Errorf("%q: %v, %v", text, at, ok)
		}
	}
}
