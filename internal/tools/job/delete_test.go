package job

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// gardener changes trees at random.
type gardener struct {
	rnd *rand.Rand
	n   int
}

// paths are those of all objects in a tree but its root, and of the directories with it.
func (g *gardener) paths(tr *tree) (all, dirs []string) {
	dirs = []string{""}
	tr.each("", tr.root, func(path string, _ vfs.Handle, a vfs.Attr) {
		if path == "" {
			return
		}
		all = append(all, path)
		if a.Type == vfs.TypeDir {
			dirs = append(dirs, path)
		}
	})
	return all, dirs
}

func pick(g *gardener, all []string) string { return all[g.rnd.IntN(len(all))] }

// plant makes an object of any type, under a new name or one of few that trees share.
func (g *gardener) plant(tr *tree) {
	all, dirs := g.paths(tr)
	g.n++
	path := strings.TrimPrefix(pick(g, dirs)+"/"+fmt.Sprint("n", g.rnd.IntN(12)), "/")
	if slices.Contains(all, path) {
		return
	}
	switch g.rnd.IntN(8) {
	case 0, 1:
		tr.make(path, vfs.CreateHow{Type: vfs.TypeDir, Set: mode(0o700 | g.rnd.Uint32N(0o100))})
	case 2:
		tr.make(path, vfs.CreateHow{Type: vfs.TypeSymlink, Target: fmt.Sprint("to", g.rnd.IntN(5))})
	case 3:
		tr.make(path, vfs.CreateHow{Type: vfs.TypeFIFO, Set: mode(0o600)})
	case 4:
		if len(all) > 0 {
			to := pick(g, all)
			if a, err := tr.fs.GetAttr(context.Background(), tr.at(to), vfs.MaskV3); err == nil && a.Type != vfs.TypeDir {
				tr.link(tr.at(to), path)
			}
		}
	default:
		tr.file(path, 0o600|g.rnd.Uint32N(0o100), pattern(g.rnd.IntN(3000), byte(g.n)))
	}
}

// change changes something about an object.
func (g *gardener) change(tr *tree) {
	all, dirs := g.paths(tr)
	if len(all) == 0 {
		return
	}
	path := pick(g, all)
	r, err := vfs.Resolve(context.Background(), tr.fs, tr.root, path, false)
	if err != nil {
		tr.t.Fatal(err)
	}
	switch g.rnd.IntN(5) {
	case 0:
		g.fell(tr, r.Dir, r.Name, r.Handle, r.Attr.Type)
	case 1:
		if r.Attr.Type != vfs.TypeSymlink {
			tr.set(r.Handle, mode(0o700|g.rnd.Uint32N(0o100)))
		}
	case 2:
		tr.set(r.Handle, vfs.SetAttr{Valid: vfs.MaskUID | vfs.MaskGID, UID: g.rnd.Uint32N(3), GID: g.rnd.Uint32N(3)})
	case 3:
		if r.Attr.Type == vfs.TypeReg {
			tr.write(r.Handle, uint64(g.rnd.IntN(100)), pattern(10, byte(g.rnd.IntN(200))))
		}
	case 4: // it is moved, if that is possible
		to, err := vfs.Resolve(context.Background(), tr.fs, tr.root, pick(g, dirs), false)
		if err == nil {
			_, _, _ = tr.fs.Rename(context.Background(), r.Dir, r.Name, to.Handle, fmt.Sprint("n", g.rnd.IntN(12)))
		}
	}
}

// fell removes an object with all that is below it.
func (g *gardener) fell(tr *tree, dir vfs.Handle, name string, h vfs.Handle, t vfs.Type) {
	if t == vfs.TypeDir {
		for e, err := range tr.fs.ReadDir(context.Background(), h, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
			if err != nil {
				tr.t.Fatal(err)
			}
			g.fell(tr, h, string(e.Name), e.Handle, e.Attr.Type)
		}
	}
	if _, err := tr.fs.Remove(context.Background(), dir, name, t == vfs.TypeDir); err != nil {
		tr.t.Fatal(err)
	}
}

// TestSyncDeleteRandom: whatever the two trees are, after a sync with --delete they are the same, and
// a second one has nothing to do.
func TestSyncDeleteRandom(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 40
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := &gardener{rnd: rand.New(rand.NewPCG(seed, 3))}
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
			how := SyncOptions{Delete: &DeleteOptions{FromEmpty: true}, Checksum: seed%5 == 0, ACLs: seed%7 == 0}
			for range 1 + g.rnd.IntN(60) {
				g.plant(src)
			}
			if seed%3 == 0 {
				for range g.rnd.IntN(60) {
					g.plant(dst)
				}
			}
			for range 4 {
				synced(t, src, dst, how)
				alikeTrees(t, src, dst)
				again, _ := synced(t, src, dst, how)
				if again.Files+again.Dirs+again.Symlinks+again.Nodes+again.Hardlinks+again.AttrsSet+again.Deleted > 0 {
					t.Fatalf("a second one has done %+v", again)
				}
				for range g.rnd.IntN(30) {
					g.plant(src)
					g.change(src)
					g.plant(dst)
					g.change(dst)
				}
			}
		})
	}
}

// doomed is a source, and a destination with 7 objects that the source lacks, in three directories.
func doomed(t *testing.T, from, to memfs.Options) (src, dst *tree) {
	t.Helper()
	src, dst = mem(t, from), mem(t, to)
	for i := range 10 {
		src.file(fmt.Sprintf("a/f%d", i), 0o644, pattern(10, byte(i)))
		src.file(fmt.Sprintf("b/c/f%d", i), 0o644, pattern(10, byte(i)))
	}
	src.settle()
	synced(t, src, dst, SyncOptions{})
	dst.file("a/old", 0o644, nil)
	dst.file("b/c/old/x/y", 0o644, nil)
	dst.make("b/c/old/link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "../../../a"})
	dst.dir("b/old")
	dst.make("old", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "a"})
	return src, dst
}

const doomedObjects = 7

// TestSyncDelete: what the source lacks is deleted, counted and told of; links are not followed.
func TestSyncDelete(t *testing.T) {
	src, dst := doomed(t, memfs.Options{}, memfs.Options{})
	o, v := options(t, src, dst, "")
	o.Each, o.Sync = true, &SyncOptions{Delete: &DeleteOptions{Max: new(uint64)}}
	*o.Sync.Delete.Max = doomedObjects
	sum, err := Copy(t.Context(), o)
	if err != nil || sum.Deleted != doomedObjects || sum.ToDelete != doomedObjects || sum.Errors > 0 {
		t.Fatalf("%v, %+v\n%v", err, sum, v)
	}
	var told []string
	for _, e := range v.list {
		if e.Type == eventDeleted {
			told = append(told, e.Path)
		}
	}
	slices.Sort(told)
	if want := []string{"a/old", "b/c/old", "b/c/old/link", "b/c/old/x", "b/c/old/x/y", "b/old", "old"}; !slices.Equal(told, want) {
		t.Errorf("told is %q", told)
	}
	alikeTrees(t, src, dst)
}

// TestSyncDeletesNothing: where the source may not show all that it has, or more would go than may,
// nothing is deleted, and it is said why.
func TestSyncDeletesNothing(t *testing.T) {
	failing := func(op string, dir func(src *tree) vfs.Handle) func(src *tree, bad map[vfs.Handle]string) {
		return func(src *tree, bad map[vfs.Handle]string) { bad[dir(src)] = op }
	}
	for _, c := range []struct {
		name   string
		break_ func(src *tree, bad map[vfs.Handle]string)
		set    func(o *DeleteOptions)
		err    error
		note   string
	}{
		{name: "a directory cannot be listed", break_: failing("readdir", func(src *tree) vfs.Handle { return src.at("b/c") }), note: "nothing is deleted, as items have failed"},
		{name: "a file cannot be read", break_: func(src *tree, bad map[vfs.Handle]string) { bad[src.file("a/new", 0o644, pattern(10, 1))] = "read" }, note: "nothing is deleted"},
		{name: "too many", set: func(o *DeleteOptions) { o.Max = new(uint64); *o.Max = doomedObjects - 1 }, err: ErrTooMany},
		{name: "none may be", set: func(o *DeleteOptions) { o.Max = new(uint64) }, err: ErrTooMany},
		{name: "an empty source", break_: func(src *tree, _ map[vfs.Handle]string) {
			for _, name := range []string{"a", "b"} {
				new(gardener).fell(src, src.root, name, src.at(name), vfs.TypeDir)
			}
		}, err: ErrEmpty},
		{name: "another source", break_: func(src *tree, _ map[vfs.Handle]string) {
			for _, name := range []string{"a", "b"} {
				new(gardener).fell(src, src.root, name, src.at(name), vfs.TypeDir)
			}
			src.file("other", 0o644, nil)
		}, err: ErrEmpty},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := make(map[vfs.Handle]string)
			src, dst := doomed(t, memfs.Options{Fault: func(_ context.Context, op string, h vfs.Handle) error {
				if bad[h] == op {
					return vfs.ErrIO
				}
				return nil
			}}, memfs.Options{})
			if c.break_ != nil {
				c.break_(src, bad)
			}
			was := dst.list(dst.root)
			o, v := options(t, src, dst, "")
			o.Sync = &SyncOptions{Delete: new(DeleteOptions)}
			if c.set != nil {
				c.set(o.Sync.Delete)
			}
			sum, err := Copy(t.Context(), o)
			if !errors.Is(err, c.err) || sum.Deleted > 0 || sum.ExitCode(err) != ExitIncomplete || !strings.Contains(v.String(), c.note) {
				t.Errorf("%v, %+v\n%v", err, sum, v)
			}
			if errors.Is(c.err, ErrTooMany) && (sum.ToDelete != doomedObjects || !strings.Contains(err.Error(), fmt.Sprint(doomedObjects, " objects"))) {
				t.Errorf("it does not say how many: %v, %+v", err, sum)
			}
			for path := range was {
				if _, err := vfs.Resolve(t.Context(), dst.fs, dst.root, path, false); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
			if c.err == nil || !errors.Is(c.err, ErrEmpty) {
				return
			}
			if d := diff(was, dst.list(dst.root)); d != "" {
				t.Error(d)
			}
			o, _ = options(t, src, dst, "")
			o.Sync = &SyncOptions{Delete: &DeleteOptions{FromEmpty: true}}
			if sum, err := Copy(t.Context(), o); err != nil || sum.Deleted == 0 {
				t.Errorf("when that is meant: %v, %+v", err, sum)
			}
			alikeTrees(t, src, dst)
		})
	}
}

// TestSyncDeleteFaultLater: a source that cannot be read any more when the deletion has begun ends it.
func TestSyncDeleteFaultLater(t *testing.T) {
	var broken bool
	var at vfs.Handle
	listed := 0
	src, dst := doomed(t, memfs.Options{Fault: func(_ context.Context, op string, h vfs.Handle) error {
		if op == "readdir" && h == at && broken {
			if listed++; listed > 2 { // the pages of its first listing
				return vfs.ErrIO
			}
		}
		return nil
	}}, memfs.Options{})
	at, broken = src.at("b/c"), true
	o, v := options(t, src, dst, "")
	o.Sync = &SyncOptions{Delete: new(DeleteOptions)}
	sum, err := Copy(t.Context(), o)
	if !errors.Is(err, errNotShown) || sum.ExitCode(err) != ExitIncomplete {
		t.Errorf("%v, %+v\n%v", err, sum, v)
	}
	for _, path := range []string{"b/c/old/x/y", "b/c/f1"} {
		if _, err := vfs.Resolve(t.Context(), dst.fs, dst.root, path, false); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSyncDeleteFailures: what cannot be deleted is reported, and all else is.
func TestSyncDeleteFailures(t *testing.T) {
	var bad vfs.Handle
	src, dst := doomed(t, memfs.Options{}, memfs.Options{Fault: func(_ context.Context, op string, h vfs.Handle) error {
		if op == "remove" && h == bad {
			return vfs.ErrAccess
		}
		return nil
	}})
	bad = dst.at("b/c/old/x")
	o, v := options(t, src, dst, "")
	o.Sync = &SyncOptions{Delete: new(DeleteOptions)}
	sum, err := Copy(t.Context(), o)
	if err != nil || sum.Errors != 1 || sum.Deleted != doomedObjects-3 || !strings.Contains(v.String(), `"b/c/old/x/y": delete: `) {
		t.Errorf("%v, %+v\n%v", err, sum, v)
	}
	bad = vfs.Handle{}
	if sum, _ := synced(t, src, dst, *o.Sync); sum.Deleted != 3 {
		t.Errorf("%+v", sum)
	}
	alikeTrees(t, src, dst)
}

// TestSyncDeleteClosed: directories whose modes forbid it are opened, and have their modes again.
func TestSyncDeleteClosed(t *testing.T) {
	owner := &vfs.Caller{UID: 1000, GID: 1000}
	f := memfs.New(memfs.Options{UID: 1000, GID: 1000})
	src, dst := mem(t, memfs.Options{}), newTree(t, f.As(owner))
	src.file("a/f", 0o644, nil)
	src.set(src.at("a"), mode(0o555))
	src.settle()
	dst.file("a/old/f", 0o644, nil)
	dst.set(dst.at("a/old"), mode(0o555))
	dst.file("a/f", 0o600, nil)
	dst.set(dst.at("a"), mode(0o555))
	o, v := options(t, src, dst, "")
	o.Owner, o.Sync = false, &SyncOptions{Delete: new(DeleteOptions)}
	sum, err := Copy(t.Context(), o)
	if err != nil || sum.Errors > 0 || sum.Deleted != 2 {
		t.Fatalf("%v, %+v\n%v", err, sum, v)
	}
	if s, all := verify(t, src, dst, func(o *VerifyOptions) { o.Owner = false }); s.Differences > 0 {
		t.Errorf("%q", all)
	}
}

// halved is a file system whose listings end in the middle, and say nothing of it.
type halved struct{ vfs.FS }

func (f halved) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, n uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		i := 0
		for e, err := range f.FS.ReadDir(ctx, dir, from, want, n) {
			if i++; i%2 == 0 {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestSyncDeleteLyingSource: a source that lists only half of what it has loses nothing of it.
func TestSyncDeleteLyingSource(t *testing.T) {
	src, dst := doomed(t, memfs.Options{}, memfs.Options{})
	o, v := options(t, newTree(t, halved{src.fs}), dst, "")
	o.Sync = &SyncOptions{Delete: new(DeleteOptions)}
	sum, err := Copy(t.Context(), o)
	if err != nil || sum.Deleted == 0 {
		t.Errorf("%v, %+v\n%v", err, sum, v)
	}
	for path := range src.list(src.root) {
		if _, err := vfs.Resolve(t.Context(), dst.fs, dst.root, path, false); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSyncDeleteLinks: where a directory of the destination is a symbolic link by now, nothing is
// deleted in what it leads to; it is replaced itself.
func TestSyncDeleteLinks(t *testing.T) {
	src, dst := doomed(t, memfs.Options{}, memfs.Options{})
	dst.file("elsewhere/precious", 0o644, nil)
	src.file("elsewhere/precious", 0o644, nil)
	synced(t, src, dst, SyncOptions{})
	new(gardener).fell(dst, dst.root, "a", dst.at("a"), vfs.TypeDir)
	dst.make("a", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "elsewhere"})
	sum, _ := synced(t, src, dst, SyncOptions{Delete: new(DeleteOptions)})
	if sum.Deleted != doomedObjects { // a/old is gone, and the link came
		t.Errorf("%+v", sum)
	}
	alikeTrees(t, src, dst)
}

// changing are the operations that change a file system.
var changing = []string{"create", "setattr", "write", "remove", "rename", "link", "commit", "truncate", "setacl", "setxattr", "removexattr"}

// rehearsed is a sync, or without how a copy, that changes nothing.
func rehearsed(t *testing.T, src, dst *tree, how *SyncOptions) (Summary, *events) {
	t.Helper()
	o, v := options(t, src, dst, "")
	o.Sync, o.DryRun, o.Parallel = how, true, 1
	sum, err := Copy(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%v", err, v)
	}
	return sum, v
}

// inOrder is synced, one after the other: which name of an object comes first decides which is copied, and which linked.
func inOrder(t *testing.T, src, dst *tree, how *SyncOptions) Summary {
	t.Helper()
	o, v := options(t, src, dst, "")
	o.Sync, o.Parallel = how, 1
	sum, err := Copy(t.Context(), o)
	if err != nil || sum.Errors > 0 {
		t.Fatalf("%v\n%v", err, v)
	}
	return sum
}

// TestSyncDryRun: a rehearsal changes nothing, and says what a sync then does.
func TestSyncDryRun(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		g := &gardener{rnd: rand.New(rand.NewPCG(seed, 5))}
		var to ops
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: to.fault})
		how := SyncOptions{Delete: &DeleteOptions{FromEmpty: true}, Checksum: seed%5 == 0, ACLs: seed%7 == 0}
		for range 40 {
			g.plant(src)
		}
		synced(t, src, dst, how)
		for range 20 {
			g.plant(src)
			g.change(src)
			g.plant(dst)
			g.change(dst)
		}
		was := dst.list(dst.root)
		to.take()
		would, v := rehearsed(t, src, dst, &how)
		n := to.take()
		for _, op := range changing {
			if n[op] > 0 {
				t.Errorf("seed %d: %d calls of %s", seed, n[op], op)
			}
		}
		if d := diff(was, dst.list(dst.root)); d != "" {
			t.Errorf("seed %d: %s", seed, d)
		}
		told := make(map[string]uint64)
		for _, e := range v.list {
			told[e.Type+" "+e.Kind]++
		}
		if all := would.Files + would.Dirs + would.Symlinks + would.Nodes; told["would copy"] != all || told["would delete"] != would.Deleted || told["would set"] != would.AttrsSet {
			t.Errorf("seed %d: told is %v, counted %+v", seed, told, would)
		}
		if did := inOrder(t, src, dst, &how); did.Deleted != would.Deleted || did.Dirs != would.Dirs || did.Files > would.Files || did.Symlinks > would.Symlinks || did.Nodes > would.Nodes {
			t.Errorf("seed %d: it would do\n%+v, and has done\n%+v", seed, would, did)
		}
		if again, v := rehearsed(t, src, dst, &how); again.Files+again.Dirs+again.Symlinks+again.AttrsSet+again.Deleted > 0 {
			t.Errorf("seed %d: nothing is to be done, and it says\n%v", seed, v)
		}
	}
}

// TestSyncDeleteSourceInside: a source that lies in the destination is not deleted as what the source
// lacks.
func TestSyncDeleteSourceInside(t *testing.T) {
	dst := mem(t, memfs.Options{})
	dst.file("old/in/a", 0o644, []byte("a"))
	dst.file("old/in/d/b", 0o644, []byte("b"))
	src := &tree{t, dst.fs, dst.at("old/in")}
	was := src.list(src.root)
	o, v := options(t, src, dst, "")
	o.Sync = &SyncOptions{Delete: &DeleteOptions{FromEmpty: true}}
	sum, err := Copy(t.Context(), o)
	if !errors.Is(err, ErrHoldsSource) || sum.ExitCode(err) != ExitIncomplete {
		t.Errorf("%v, %+v\n%v", err, sum, v)
	}
	if d := diff(was, src.list(src.root)); d != "" {
		t.Error(d)
	}
}

// TestSyncDeleteMountPoints: with OneFileSystem, what the destination has in a directory that is empty in
// the source stays: something may be mounted there, which is not shown.
func TestSyncDeleteMountPoints(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("a/f", 0o644, nil)
	src.dir("mnt")
	dst.file("a/old", 0o644, nil)
	dst.file("mnt/precious", 0o644, nil)
	o, v := options(t, src, dst, "")
	o.OneFileSystem, o.Sync = true, &SyncOptions{Delete: new(DeleteOptions)}
	sum, err := Copy(t.Context(), o)
	if err != nil || sum.Deleted != 1 {
		t.Errorf("%+v, %v\n%v", sum, err, v)
	}
	dst.at("mnt/precious")
	if sum, _ := synced(t, src, dst, SyncOptions{Delete: new(DeleteOptions)}); sum.Deleted != 1 {
		t.Errorf("%+v", sum)
	}
	alikeTrees(t, src, dst)
}
