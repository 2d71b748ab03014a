package job

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// ops counts the operations of a memfs.
type ops struct {
	mu sync.Mutex
	n  map[string]int
}

func (o *ops) fault(ctx context.Context, op string, _ vfs.Handle) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == nil {
		o.n = make(map[string]int)
	}
	o.n[op]++
	return ctx.Err()
}

// take returns the counts, and begins anew.
func (o *ops) take() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.n
	o.n = nil
	return n
}

// synced makes dst what src is, and fails the test on any failure.
func synced(t *testing.T, src, dst *tree, how SyncOptions) (Summary, *events) {
	t.Helper()
	o, v := options(t, src, dst, "")
	o.Sync = &how
	sum, err := Copy(t.Context(), o)
	if err != nil || sum.Errors > 0 {
		t.Fatalf("%v\n%v", err, v)
	}
	return sum, v
}

// alikeTrees fails the test if the two trees are not the same.
func alikeTrees(t *testing.T, src, dst *tree) {
	t.Helper()
	if d := diff(src.list(src.root), dst.list(dst.root)); d != "" {
		t.Error(d)
	}
	if sum, all := verify(t, src, dst, nil); sum.Differences > 0 || sum.Errors > 0 {
		t.Errorf("verify has found %q", all)
	}
	if temps := dst.temps(); len(temps) > 0 {
		t.Errorf("left behind: %q", temps)
	}
}

// TestSyncNothingToDo: of what is the same nothing is asked: a directory costs a listing on either
// side, which takes two calls here, and one LOOKUP at the source in the end.
func TestSyncNothingToDo(t *testing.T) {
	var from, to ops
	src, dst := mem(t, memfs.Options{Fault: from.fault}), mem(t, memfs.Options{Fault: to.fault})
	everything(src)
	first, _ := synced(t, src, dst, SyncOptions{})
	alikeTrees(t, src, dst)
	from.take()
	to.take()
	sum, _ := synced(t, src, dst, SyncOptions{})
	asked, told := from.take(), to.take()
	dirs := int(first.Dirs)
	all := first.Files + first.Dirs + first.Symlinks + first.Hardlinks + first.Nodes + first.Unchanged // the root was there
	if sum.Unchanged != all || sum.Files+sum.Dirs+sum.Symlinks+sum.Nodes+sum.Hardlinks+sum.AttrsSet+sum.Bytes > 0 {
		t.Errorf("of %d objects: %+v", all, sum)
	}
	const few = 12 // for the job as a whole
	for _, c := range []struct {
		n    map[string]int
		op   string
		most int
	}{
		{asked, "readdir", 2*dirs + few}, {asked, "lookup", dirs + few}, {asked, "getattr", few}, {asked, "readlink", int(first.Symlinks)},
		{told, "readdir", 2*dirs + few}, {told, "lookup", few}, {told, "getattr", few}, {told, "readlink", int(first.Symlinks)}, {told, "setattr", 1},
		{told, "create", 1}, {told, "remove", 1}, // whether it is the source, as the two have the same ids
	} {
		if c.n[c.op] > c.most {
			t.Errorf("%d calls of %s for %d directories", c.n[c.op], c.op, dirs)
		}
	}
	for _, op := range []string{"open", "write", "rename", "link", "commit", "setacl"} {
		if told[op] > 0 {
			t.Errorf("%d calls of %s", told[op], op)
		}
	}
	alikeTrees(t, src, dst)
}

// TestSyncChanges: each change of the source or of the destination is put right, at the price of that
// change.
func TestSyncChanges(t *testing.T) {
	later := func(tr *tree, path string) {
		tr.set(tr.at(path), vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: epoch.Add(99 * time.Hour)})
	}
	remake := func(tr *tree, path string, how vfs.CreateHow) {
		r, err := vfs.Resolve(context.Background(), tr.fs, tr.root, path, false)
		if err != nil {
			tr.t.Fatal(err)
		}
		if _, err := tr.fs.Remove(context.Background(), r.Dir, r.Name, false); err != nil {
			tr.t.Fatal(err)
		}
		tr.make(path, how)
	}
	for _, c := range []struct {
		name   string
		change func(src, dst *tree)
		want   string // files, dirs, symlinks, hardlinks, nodes; attributes set
	}{
		{"a new file", func(src, _ *tree) { src.file("many/1/new", 0o600, pattern(77, 9)) }, "1 0 0 0 0; 1"},
		{"a new tree", func(src, _ *tree) { src.file("x/y/new", 0o600, pattern(77, 9)) }, "1 2 0 0 0; 1"},
		{"contents", func(src, _ *tree) { src.write(src.at("one byte"), 0, []byte("y")); later(src, "one byte") }, "1 0 0 0 0; 0"},
		{"contents of the copy", func(_, dst *tree) { dst.write(dst.at("one byte"), 0, []byte("longer")) }, "1 0 0 0 0; 0"},
		{"the copy's mode", func(_, dst *tree) { dst.set(dst.at("one byte"), mode(0o777)) }, "0 0 0 0 0; 1"},
		{"a directory's mode", func(_, dst *tree) { dst.set(dst.at("many/1"), mode(0o777)) }, "0 0 0 0 0; 1"},
		{"a directory's time", func(_, dst *tree) { later(dst, "many/1") }, "0 0 0 0 0; 1"},
		{"a link's time", func(_, dst *tree) { later(dst, "dir/outside") }, "0 0 0 0 0; 1"},
		{"owners", func(_, dst *tree) {
			dst.set(dst.at("one byte"), vfs.SetAttr{Valid: vfs.MaskUID | vfs.MaskGID, UID: 7, GID: 8})
			dst.set(dst.at("dir/outside"), vfs.SetAttr{Valid: vfs.MaskUID, UID: 7})
		}, "0 0 0 0 0; 2"},
		{"a link's target", func(_, dst *tree) {
			remake(dst, "dir/outside", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "../../../etc/shadow"})
		}, "0 0 1 0 0; 1"},
		{"a device's number", func(_, dst *tree) { remake(dst, "dir/device", vfs.CreateHow{Type: vfs.TypeChar, Rdev: 1<<32 | 5}) }, "0 0 0 0 1; 1"},
		{"a type", func(_, dst *tree) { remake(dst, "dir/fifo", vfs.CreateHow{Type: vfs.TypeReg}) }, "0 0 0 0 1; 1"},
		{"a link was split", func(_, dst *tree) {
			remake(dst, "dir/another", vfs.CreateHow{Type: vfs.TypeReg, Set: mode(0o640)})
			dst.write(dst.at("dir/another"), 0, pattern(3<<20+17, 2))
			r := dst.at("big")
			a, err := dst.fs.GetAttr(context.Background(), r, vfs.MaskV3)
			if err != nil {
				dst.t.Fatal(err)
			}
			dst.set(dst.at("dir/another"), vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: a.Mtime})
		}, "0 0 0 1 0; 1"},
		{"a name is gone", func(_, dst *tree) { remake(dst, "one byte", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "x"}) }, "1 0 0 0 0; 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
			everything(src)
			synced(t, src, dst, SyncOptions{})
			c.change(src, dst)
			sum, _ := synced(t, src, dst, SyncOptions{})
			if got := fmt.Sprintf("%d %d %d %d %d; %d", sum.Files, sum.Dirs, sum.Symlinks, sum.Hardlinks, sum.Nodes, sum.AttrsSet); got != c.want {
				t.Errorf("done is %s, want %s", got, c.want)
			}
			alikeTrees(t, src, dst)
		})
	}
}

// TestSyncChecksum: what has the same size and time, and other bytes, only --checksum finds. What has
// another time alone gets the time, and no bytes.
func TestSyncChecksum(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	everything(src)
	synced(t, src, dst, SyncOptions{})
	for _, path := range []string{"many/1/001", "many/2/002"} {
		h := dst.at(path)
		a, err := dst.fs.GetAttr(t.Context(), h, vfs.MaskV3)
		if err != nil {
			t.Fatal(err)
		}
		if path == "many/1/001" {
			dst.write(h, 0, []byte{'?'})
			dst.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: a.Mtime})
		} else {
			dst.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: a.Mtime.Add(time.Hour)})
		}
	}
	was, _ := verify(t, src, dst, nil)
	if was.Differences != 2 {
		t.Fatalf("%d differences", was.Differences)
	}
	sum, _ := synced(t, src, dst, SyncOptions{Checksum: true})
	if sum.Files != 1 || sum.AttrsSet != 1 || sum.Bytes != 37 {
		t.Errorf("%+v", sum)
	}
	alikeTrees(t, src, dst)
}

// TestSyncTimesThatAreLost: NFSv3 has one time for all before 1970, and one for all after 2106. Files that
// have it are compared, and what was written to one is copied.
func TestSyncTimesThatAreLost(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	to := newTree(t, nfsTimes{dst.fs})
	at := func(year int) vfs.SetAttr {
		return vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: time.Date(year, 1, 2, 3, 4, 5, 0, time.UTC)}
	}
	src.set(src.file("early", 0o644, []byte("a1")), at(1960))
	src.set(src.file("late", 0o644, []byte("b1")), at(2200))
	src.set(src.file("same", 0o644, []byte("c1")), at(1960))
	synced(t, src, to, SyncOptions{})
	for name, set := range map[string]vfs.SetAttr{"early": at(1965), "late": at(2300)} {
		src.write(src.at(name), 1, []byte("2"))
		src.set(src.at(name), set)
	}
	if sum, v := synced(t, src, to, SyncOptions{}); sum.Files != 2 {
		t.Errorf("%d files copied, want 2\n%v", sum.Files, v)
	}
	for name, want := range map[string]string{"early": "a2", "late": "b2", "same": "c1"} {
		if got := string(dst.read(dst.at(name), 2)); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
}

// TestSyncTimesThatAreKept: where no side is one of NFSv3, the nearest time that NFSv3 has is another one, and is set again.
func TestSyncTimesThatAreKept(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	early := vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: time.Date(1960, 1, 2, 3, 4, 5, 0, time.UTC)}
	src.set(src.file("early", 0o644, []byte("a")), early)
	src.set(src.root, early)
	synced(t, src, dst, SyncOptions{})
	zero := vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: time.Unix(0, 0)}
	dst.set(dst.at("early"), zero)
	dst.set(dst.root, zero)
	if v, all := verify(t, src, dst, nil); v.Differences != 2 || v.TimesLost != 0 {
		t.Errorf("%d lost times, and found %q; want 0 and 2", v.TimesLost, all)
	}
	synced(t, src, dst, SyncOptions{})
	alikeTrees(t, src, dst)
}

// TestSyncTriesOnce: a destination that was there is tried out once, when something is made in it, and not each directory that is made below.
func TestSyncTriesOnce(t *testing.T) {
	var to ops
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: to.fault})
	const dirs = 10
	for i := range dirs {
		src.file(fmt.Sprintf("d%d/caf%s", i, composed), 0o644, nil)
	}
	src.settle()
	synced(t, src, dst, SyncOptions{})
	if n := to.take()["create"]; n != dirs+2 { // and whether it is the source
		t.Errorf("%d names were made for %d directories", n, dirs)
	}
	alikeTrees(t, src, dst)
}

// TestSyncFolds: a destination that takes two names for one loses nothing by a sync: of two such
// names the one that it has stays, and the other has failed.
func TestSyncFolds(t *testing.T) {
	src := mem(t, memfs.Options{})
	src.file("d/Makefile", 0o644, []byte("upper"))
	src.file("d/makefile", 0o644, []byte("lower case"))
	src.file("Dir/f", 0o644, []byte("f"))
	src.file("dir/g", 0o644, []byte("g"))
	src.settle()
	dst := newTree(t, folding{mem(t, memfs.Options{}).fs, strings.ToLower, new(sync.Mutex)})
	dst.file("d/Makefile", 0o644, []byte("upper"))
	dst.file("Dir/f", 0o644, []byte("f"))
	for _, path := range []string{"d/Makefile", "Dir/f"} {
		a, err := src.fs.GetAttr(t.Context(), src.at(path), vfs.MaskV3)
		if err != nil {
			t.Fatal(err)
		}
		dst.set(dst.at(path), vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: a.Mtime})
	}
	for range 2 {
		o, v := options(t, src, dst, "")
		o.Sync = new(SyncOptions)
		sum, err := Copy(t.Context(), o)
		if err != nil || sum.Errors != 2 || strings.Count(v.String(), errFolded.Error()) != 2 {
			t.Errorf("%v, %+v\n%v", err, sum, v)
		}
		if got := string(dst.read(dst.at("d/Makefile"), 5)); got != "upper" {
			t.Errorf("it has %q", got)
		}
	}
}

// TestSyncConflicts: a directory is not replaced by what is none, and the reverse; each is a failure,
// and all else is done.
func TestSyncConflicts(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("a", 0o644, []byte("a"))
	src.file("b/f", 0o644, []byte("b"))
	src.file("c", 0o644, []byte("c"))
	dst.file("a/old", 0o644, []byte("old"))
	dst.file("b", 0o644, []byte("old"))
	o, v := options(t, src, dst, "")
	o.Sync = new(SyncOptions)
	sum, err := Copy(t.Context(), o)
	if err != nil || sum.Errors != 2 || sum.Files != 1 {
		t.Errorf("%v, %+v\n%v", err, sum, v)
	}
	if string(dst.read(dst.at("a/old"), 3)) != "old" || string(dst.read(dst.at("b"), 3)) != "old" || string(dst.read(dst.at("c"), 1)) != "c" {
		t.Error("the destination is", dst.list(dst.root))
	}
}

// TestLinkBroken: a file that is not the copy does not make another name of it one that has to be made anew, whichever is met first.
func TestLinkBroken(t *testing.T) {
	for _, first := range []string{"a", "z"} {
		for _, dry := range []bool{false, true} {
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
			src.link(src.file("m/two", 0o644, []byte("hello")), "m/three")
			src.settle()
			synced(t, src, dst, SyncOptions{})
			src.file(first+"/one", 0o644, []byte("split"+first))
			dst.dir(first)
			dst.link(dst.at("m/two"), first+"/one")
			o, v := options(t, src, dst, "")
			o.Sync, o.Parallel, o.DryRun, o.Each = new(SyncOptions), 1, dry, true
			sum, err := Copy(t.Context(), o)
			// Both names in m, m, the directory and the root are there.
			if err != nil || sum.Files != 1 || sum.Hardlinks+sum.Dirs > 0 || sum.Unchanged != 5 {
				t.Errorf("%s, dry %v: %v, %+v\n%v", first, dry, err, sum, v)
			}
			var done []string
			for _, e := range v.list {
				if e.Type == "done" {
					done = append(done, e.Path)
				}
			}
			if !dry && !slices.Equal(done, []string{first + "/one"}) {
				t.Errorf("what was made is told as %q", done)
			}
		}
	}
}

// TestEachChanged: what was changed is told of as what was made is, and what stays is not.
func TestEachChanged(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	everything(src)
	synced(t, src, dst, SyncOptions{})
	dst.set(dst.at("one byte"), mode(0o777))
	if _, err := dst.fs.Remove(context.Background(), dst.root, "empty", false); err != nil {
		t.Fatal(err)
	}
	o, v := options(t, src, dst, "")
	o.Sync, o.Parallel, o.Each = new(SyncOptions), 1, true
	if _, err := Copy(t.Context(), o); err != nil || len(v.list) != 2 {
		t.Errorf("%v\n%v", err, v)
	}
}
