package bucketfs

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/fakes3"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestForeignStays: a sync that deletes says what is foreign, and removes none of it.
func TestForeignStays(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	foreign := []string{"d/", "d//x", "d/./x", "d/b/below", "d/raw\n", "x"}
	for _, key := range append([]string{"d/b", "d/old"}, foreign...) {
		s.Plant(key, []byte("x"))
	}
	mem := rooted(t, memfs.New(memfs.Options{}))
	put(t, mem.FS, mem.Handle, "b", vfs.CreateHow{}, "new content")
	put(t, mem.FS, mem.Handle, "c", vfs.CreateHow{}, "content")
	f := over(t, s)
	root := rooted(t, f)
	d, _, _, err := f.Lookup(t.Context(), root.Handle, "d")
	if err != nil {
		t.Fatal(err)
	}
	sum, text, err := copying(t, job.CopyOptions{Source: mem, Dest: job.Place{FS: f, Handle: d}, Sync: &job.SyncOptions{Delete: &job.DeleteOptions{}}})
	if sum.Errors == 0 || !strings.Contains(text, `what begins with "d/b/" has no directory here (its name belongs to the object "d/b")`) || !strings.Contains(text, "raw") {
		t.Errorf("%+v, %v\n%s", sum, err, text)
	}
	for _, key := range foreign {
		if !slices.Contains(s.Names(), key) {
			t.Errorf("%q was removed", key)
		}
	}
	if !slices.Contains(s.Names(), "d/c") {
		t.Errorf("the rest was not copied: %q", s.Names())
	}
}

// TestConflictsFarApart: the second object of a name is found, however many pages lie between.
func TestConflictsFarApart(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	s.Plant("a", nil)
	for i := range 2500 {
		s.Plant(fmt.Sprintf("a-%04d", i), nil)
	}
	for _, key := range []string{"a-0007/x", "a-0007.rclonelink", "a/x", "a.rclonelink", "b"} {
		s.Plant(key, []byte("x"))
	}
	f := over(t, s)
	names := namesOf(t, f, rooted(t, f).Handle)
	var odd []string
	for _, name := range names {
		if !strings.HasPrefix(name, "a-") {
			odd = append(odd, name)
		}
	}
	if want := []string{"/a-0007.rclonelink", "/a-0007/", "/a.rclonelink", "/a/", "a", "b"}; !slices.Equal(odd, want) || len(names) != 2500+len(want) {
		t.Errorf("%d names, %q, want %q", len(names), odd, want)
	}
}

// TestPlaces: a listing goes on behind any entry, also where its page is not known any more; if the entry is gone, it says so.
func TestPlaces(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{Page: 100})
	for i := range 250 {
		s.Plant(fmt.Sprintf("%03d", i), nil)
	}
	f := over(t, s)
	root := rooted(t, f).Handle
	for _, stop := range []int{0, 99, 100, 248, 249} {
		var from vfs.Pos
		n := 0
		for e, err := range f.ReadDir(t.Context(), root, vfs.Pos{}, 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if from = e.Next; n == stop {
				break
			}
			n++
		}
		for what, g := range map[string]*FS{"the same": f, "another": over(t, s)} {
			rest := 0
			for e, err := range g.ReadDir(t.Context(), root, from, 0, 0) {
				if err != nil || rest == 0 && string(e.Name) != fmt.Sprintf("%03d", stop+1) {
					t.Fatalf("%s, behind %d: %v, %v", what, stop, e, err)
				}
				rest++
			}
			if rest != 249-stop {
				t.Errorf("%s, behind %d: %d entries", what, stop, rest)
			}
		}
	}
	for _, err := range f.ReadDir(t.Context(), root, posOf("none"), 0, 0) {
		if !errors.Is(err, vfs.ErrBadCookie) {
			t.Errorf("a place of nothing: %v", err)
		}
	}
}

// TestOneVersion: reads of an open file never join two versions.
func TestOneVersion(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	s.Plant("file", []byte("first version"))
	f := over(t, s)
	h, _, _, err := f.Lookup(t.Context(), rooted(t, f).Handle, "file")
	if err != nil {
		t.Fatal(err)
	}
	file, _, err := f.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 5)
	if n, eof, err := file.ReadAt(t.Context(), b, 0, nil); n != 5 || eof || err != nil || string(b) != "first" {
		t.Fatalf("%q, %v, %v", b[:n], eof, err)
	}
	s.Plant("file", []byte("other version"))
	for _, off := range []uint64{5, 100} {
		if n, _, err := file.ReadAt(t.Context(), b, off, nil); !errors.Is(err, vfs.ErrStale) {
			t.Errorf("at %d: %q, %v", off, b[:n], err)
		}
	}
	if err := file.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestReadBack: a copy that differs when it is read back is removed, and counted.
func TestReadBack(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	mem := rooted(t, memfs.New(memfs.Options{}))
	h := put(t, mem.FS, mem.Handle, "file", vfs.CreateHow{}, "content")
	var once sync.Once
	s.Set(fakes3.Faults{Hook: fakes3.On(http.MethodGet, func(http.ResponseWriter, *http.Request) bool {
		once.Do(func() { s.Change("copy", func(b []byte) []byte { b[0] ^= 1; return b }) })
		return false
	})})
	sum, text, err := copying(t, job.CopyOptions{Source: job.Place{FS: mem.FS, Handle: h}, Dest: rooted(t, over(t, s)), Name: "copy", Verify: true})
	if err != nil || sum.Errors != 1 || len(s.Names()) > 0 {
		t.Errorf("%+v, %v, %q\n%s", sum, err, s.Names(), text)
	}
}

// TestSetAttr: an object that stays gets other metadata where it is, and keeps what others have said of it.
func TestSetAttr(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	mem := rooted(t, memfs.New(memfs.Options{}))
	h := put(t, mem.FS, mem.Handle, "file", vfs.CreateHow{}, "content")
	set(t, mem.FS, h, vfs.SetAttr{Valid: vfs.MaskMtime | vfs.MaskUID, Mtime: time.Unix(5, 6), UID: 77})
	f := over(t, s)
	dst := rooted(t, f)
	copied(t, job.CopyOptions{Source: job.Place{FS: mem.FS, Handle: h}, Dest: dst, Name: "copy"})
	h, before, _, err := f.Lookup(t.Context(), dst.Handle, "copy")
	if err != nil {
		t.Fatal(err)
	}
	puts := s.Calls("PUT")
	set(t, f, h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o4711})
	after, err := f.GetAttr(t.Context(), h, vfs.MaskV3)
	before.Mode, before.Ctime, before.Change = 0o4711, after.Ctime, after.Change
	if err != nil || after != before || s.Calls("PUT") != puts || s.Calls("COPY") != 1 {
		t.Errorf("%+v, want %+v, %v, by %d copies", after, before, err, s.Calls("COPY"))
	}
	s.Set(fakes3.Faults{Hook: fakes3.On("COPY", fakes3.Fail(200, "InternalError", "later"))})
	if _, err := f.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode}, nil); !errors.Is(err, vfs.ErrBusy) || s.Calls("COPY") != 1+4 {
		t.Errorf("an error with status 200: %v, after %d copies", err, s.Calls("COPY"))
	}
	s.Set(fakes3.Faults{})
	for _, bad := range []vfs.SetAttr{{Valid: vfs.MaskSize}} {
		if _, err := f.SetAttr(t.Context(), h, &bad, nil); !errors.Is(err, vfs.ErrNotSupp) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	guard := time.Unix(1, 0)
	if _, err := f.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode}, &guard); !errors.Is(err, vfs.ErrNotSync) {
		t.Errorf("a guard: %v", err)
	}
}

// TestOwners: what is made has its owner in its metadata, also if that is the process's own: another user may copy it back.
func TestOwners(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	mem := rooted(t, memfs.New(memfs.Options{}))
	dir := put(t, mem.FS, mem.Handle, "dir", vfs.CreateHow{Type: vfs.TypeDir}, "")
	for name, how := range map[string]vfs.CreateHow{"file": {}, "link": {Type: vfs.TypeSymlink, Target: "x"}, "sub": {Type: vfs.TypeDir}} {
		set(t, mem.FS, put(t, mem.FS, dir, name, how, ""), vfs.SetAttr{Valid: vfs.MaskUID | vfs.MaskGID, UID: 7, GID: 8})
	}
	set(t, mem.FS, dir, vfs.SetAttr{Valid: vfs.MaskUID | vfs.MaskGID, UID: 7, GID: 8})
	mine := over(t, s)
	mine.o.Owns = true
	copied(t, job.CopyOptions{Source: job.Place{FS: mem.FS, Handle: dir}, Dest: rooted(t, mine), Name: "dir"})
	theirs := over(t, s, "dir")
	theirs.o.UID, theirs.o.GID = 70, 80
	same(t, job.Place{FS: mem.FS, Handle: dir}, rooted(t, theirs))
}

// TestTable: what was used longest ago gives way, and its handle is stale.
func TestTable(t *testing.T) {
	x := newTable[int, string](2)
	x.put(1, "a")
	x.put(2, "b")
	x.get(1)
	x.put(3, "c")
	_, one := x.get(1)
	_, two := x.get(2)
	if !one || two {
		t.Errorf("%v, %v", one, two)
	}
	s := fakes3.Start(t, 1, fakes3.Faults{})
	long := strings.Repeat("long/", 30) + "file"
	s.Plant(long, []byte("x"))
	f := over(t, s)
	h := f.handle(long)
	if a, err := f.GetAttr(t.Context(), h, vfs.MaskV3); err != nil || a.Size != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := over(t, s).GetAttr(t.Context(), h, vfs.MaskV3); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("a handle of a key that is not known: %v", err)
	}
	for _, b := range []string{"x", "k/", "ka//b", "k../x", "k%00", "h", "hshort", "ka\n"} {
		bad, err := vfs.MakeHandle([]byte(b))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.GetAttr(t.Context(), bad, vfs.MaskV3); !errors.Is(err, vfs.ErrBadHandle) {
			t.Errorf("the handle %q: %v", b, err)
		}
	}
}

// TestTooLong: a key that S3 does not take is an error that says so.
func TestTooLong(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	f := over(t, s, strings.Repeat("a", 255), strings.Repeat("b", 255), strings.Repeat("c", 255))
	root := rooted(t, f).Handle
	_, err := f.Make(t.Context(), root, strings.Repeat("\xff", 90), &vfs.Attr{}, "")
	if !errors.Is(err, vfs.ErrNameTooLong) || !strings.Contains(err.Error(), "S3 takes 1024") {
		t.Error(err)
	}
	if _, _, _, err := f.Lookup(t.Context(), root, strings.Repeat("\xff", 90)); !errors.Is(err, vfs.ErrNoEnt) {
		t.Error(err)
	}
}

// FuzzMeta: whatever metadata says, attributes are such as can be written down again, and come back the same.
func FuzzMeta(f *testing.F) {
	f.Add("1354040105.123456789", "100644", "0", "4294967295", markTag+" id n a key")
	f.Add("2006-01-02T15:04:05Z", "7777777", "-1", "x", "")
	f.Fuzz(func(t *testing.T, mtime, mode, uid, gid, mark string) {
		var a, b vfs.Attr
		h := http.Header{metaMtime: {mtime}, metaMode: {mode}, metaUID: {uid}, metaGID: {gid}}
		read(h, &a)
		a.Valid = vfs.MaskMtime | vfs.MaskMode | vfs.MaskUID | vfs.MaskGID
		again := make(http.Header)
		for name, value := range metadata(isFile, &a) {
			again.Set(name, value)
		}
		read(again, &b)
		if _, ok := parseTime(mtime); ok && !a.Mtime.Equal(b.Mtime) || a.Mode != b.Mode || a.Mode > 0o7777 || a.UID != b.UID || a.GID != b.GID {
			t.Fatalf("%+v, and again %+v", a, b)
		}
		if u, ok := parseMark(mark); ok {
			if v, ok := parseMark(u.String()); !ok || v != u {
				t.Fatalf("%+v, and again %+v", u, v)
			}
		}
	})
}

// TestCosts: what is written in docs/s3.md of requests.
func TestCosts(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	mem := rooted(t, memfs.New(memfs.Options{}))
	put(t, mem.FS, mem.Handle, "dir", vfs.CreateHow{Type: vfs.TypeDir}, "")
	costs := func(files int, o job.CopyOptions) map[string]int {
		d, _, _, err := mem.FS.Lookup(t.Context(), mem.Handle, "dir")
		if err != nil {
			t.Fatal(err)
		}
		for i := range files {
			put(t, mem.FS, d, fmt.Sprint(len(s.Names()), "-", i), vfs.CreateHow{}, "content")
		}
		before := make(map[string]int)
		methods := []string{"PUT", "HEAD", "LIST", "GET", "DELETE", "COPY"}
		for _, m := range methods {
			before[m] = s.Calls(m)
		}
		o.Source = job.Place{FS: mem.FS, Handle: d}
		copied(t, o)
		cost := make(map[string]int)
		for _, m := range methods {
			cost[m] = s.Calls(m) - before[m]
		}
		return cost
	}
	root := rooted(t, over(t, s))
	if c := costs(100, job.CopyOptions{Dest: root, Name: "new"}); c["PUT"] > 100+3+8 || c["LIST"] > 10 || c["HEAD"] > 20 || c["DELETE"]+c["GET"]+c["COPY"] > 8 {
		t.Errorf("a new directory of 100 files: %v", c)
	}
	root = rooted(t, over(t, s))
	if c := costs(0, job.CopyOptions{Dest: root, Name: "new", Sync: &job.SyncOptions{}}); c["PUT"] > 4 || c["LIST"] > 10 || c["HEAD"] > 100+40 || c["DELETE"]+c["GET"]+c["COPY"] > 4 {
		t.Errorf("the same again: %v", c)
	}
	if c := costs(50, job.CopyOptions{Dest: root, Name: "new", Sync: &job.SyncOptions{}}); c["PUT"] > 50+8 || c["LIST"] > 2*50+20 || c["HEAD"] > 100+50*3+40 || c["DELETE"] > 50+8 || c["GET"]+c["COPY"] > 0 {
		t.Errorf("50 more in a directory that was there: %v", c)
	}
}

// TestDeleteImplicit: a sync deletes what lies in directories that nobody has made, which then are gone.
func TestDeleteImplicit(t *testing.T) {
	s := fakes3.Start(t, 1, fakes3.Faults{})
	for _, key := range []string{"d/x/y/z", "d/x/w", "d/a", "d/b"} {
		s.Plant(key, []byte("1"))
	}
	f := over(t, s)
	d, _, _, err := f.Lookup(t.Context(), rooted(t, f).Handle, "d")
	if err != nil {
		t.Fatal(err)
	}
	mem := rooted(t, memfs.New(memfs.Options{}))
	put(t, mem.FS, mem.Handle, "a", vfs.CreateHow{}, "new")
	sum := copied(t, job.CopyOptions{Source: mem, Dest: job.Place{FS: f, Handle: d}, Sync: &job.SyncOptions{Delete: &job.DeleteOptions{}}})
	if got := s.Names(); !slices.Equal(got, []string{"d/", "d/a"}) || sum.Deleted == 0 {
		t.Errorf("%q are left: %+v", got, sum)
	}
}
