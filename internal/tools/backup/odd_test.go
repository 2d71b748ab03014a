package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/filter"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// heard is a tracker, and the kinds of the events that it was told.
type heard struct {
	*progress.Tracker
	kinds map[string][]string // paths
}

func listen(t testing.TB) *heard {
	h := &heard{kinds: make(map[string][]string)}
	h.Tracker = progress.New(h, time.Now)
	t.Cleanup(func() { _ = h.Finish(nil) }) // nothing is written
	return h
}

func (h *heard) Interval() time.Duration           { return time.Hour }
func (h *heard) Progress(*progress.Snapshot) error { return nil }

func (h *heard) Event(_ time.Time, e *progress.Event) error {
	h.kinds[e.Type+" "+e.Kind] = append(h.kinds[e.Type+" "+e.Kind], e.Path)
	return nil
}

func (h *heard) Summary(*progress.Snapshot, any) error { return nil }

func (b *bed) link(h vfs.Handle, name string) {
	b.t.Helper()
	if _, _, err := b.fs.Link(b.t.Context(), h, b.root, name); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) remove(name string) {
	b.t.Helper()
	if _, err := b.fs.Remove(b.t.Context(), b.root, name, false); err != nil {
		b.t.Fatal(err)
	}
}

// content is what a snapshot has of a file in its top directory.
func content(t *testing.T, s *snapshot.Snapshot, name string) string {
	t.Helper()
	return contentOf(t, s, lookup(t, s, name))
}

func contentOf(t *testing.T, s *snapshot.Snapshot, h vfs.Handle) string {
	t.Helper()
	f, o, err := s.FS().Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close(t.Context()) //nolint:errcheck // nothing was written
	a, err := s.FS().GetAttr(t.Context(), o.H, vfs.MaskV3)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, a.Size)
	if _, _, err := vfs.ReadFull(t.Context(), f, p, 0); err != nil {
		t.Fatal(err)
	}
	return string(p)
}

// TestLinkedAlike gives two files that look the same one object, where ctime and file id do not count: both names have to get its
// content.
func TestLinkedAlike(t *testing.T) {
	b := newBed(t)
	a := b.file(b.root, "a", "one")
	c := b.file(b.root, "b", "two")
	b.link(a, "a2")
	b.backup()
	b.now = b.now.Add(-time.Minute) // their mtimes stay what they were
	b.remove("a")
	b.link(c, "a")
	b.now = b.now.Add(time.Minute)
	o := b.options()
	o.Change = Size | Mtime
	sum, s := b.run(o)
	for _, name := range []string{"a", "b"} {
		if got := content(t, s, name); got != "two" {
			t.Errorf("%s has %q: %+v", name, got, sum)
		}
	}
	if sum.Why["links"] != 2 || sum.Read != 1 {
		t.Errorf("%+v", sum)
	}
	o = b.options()
	o.Change = Size | Mtime
	if sum, _ = b.run(o); sum.Read != 0 {
		t.Errorf("again: %+v", sum)
	}
}

// TestTarget: a symbolic link of a server that no restore could make has failed, and is not in the snapshot.
func TestTarget(t *testing.T) {
	b := newBed(t)
	for name, target := range map[string]string{"good": "a", "bad": "a\x00b"} {
		if _, _, _, err := b.fs.Create(t.Context(), b.root, name, &vfs.CreateHow{Type: vfs.TypeSymlink, Target: target}); err != nil {
			t.Fatal(err)
		}
	}
	sum, s := b.run(b.options())
	if sum.Errors != 1 || s.Ref().Complete || sum.Symlinks != 1 {
		t.Errorf("%+v", sum)
	}
}

// TestChange wants differences that do not count to have nothing read, and another source to have all count.
func TestChange(t *testing.T) {
	b := newBed(t)
	h := b.file(b.root, "f", "content")
	b.backup()
	if _, err := b.fs.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o640}, nil); err != nil {
		t.Fatal(err)
	}
	o := b.options()
	o.Change = Size | Mtime
	sum, s := b.run(o)
	b.wantSame(s)
	if sum.Read != 0 {
		t.Errorf("%+v", sum)
	}
	if _, err := b.fs.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}, nil); err != nil {
		t.Fatal(err)
	}
	o = b.options()
	o.Change, o.Meta.Source = Size|Mtime, "elsewhere"
	l := listen(t)
	o.Progress = l.Tracker
	if sum, _ = b.run(o); sum.Read != 1 || len(l.kinds["note source"]) != 1 {
		t.Errorf("%+v, %v", sum, l.kinds)
	}
	for text, want := range map[string]Change{"size,mtime": Size | Mtime, "ctime": Size | Ctime, "size,mtime,ctime,fileid": All} {
		if got, err := ParseChange(text); got != want || err != nil {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	if _, err := ParseChange("mtime,atime"); err == nil {
		t.Error("atime is a difference")
	}
}

// less is a file system that does not show lists.
type less struct{ vfs.FS }

func (less) Holds(power any) bool { return false }

// TestBlindBase wants lists that the base could not see to be asked for, and then no more.
func TestBlindBase(t *testing.T) {
	b := newBed(t)
	h := b.file(b.root, "f", "content")
	d := b.create(b.root, "d", vfs.CreateHow{Type: vfs.TypeDir})
	acl := vfs.ACL{Access: []vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: 7}, {Tag: vfs.ACLUser, ID: 7, Perm: 4}, {Tag: vfs.ACLGroupObj, Perm: 5}, {Tag: vfs.ACLMask, Perm: 5}, {Tag: vfs.ACLOther, Perm: 5},
	}}
	for _, h := range []vfs.Handle{h, d} {
		if err := b.fs.SetACL(t.Context(), h, acl); err != nil {
			t.Fatal(err)
		}
	}
	o := b.options()
	o.FS = less{b.fs}
	if _, s := b.run(o); b.verify(s) == 0 {
		t.Error("lists were seen that are not shown")
	}
	for want := range 2 {
		b.calls["acl"].Store(0)
		sum, s := b.backup()
		b.calls["acl"].Add(0)
		asked := b.calls["acl"].Load()
		b.wantSame(s)
		if sum.Read != 0 || (asked == 0) != (want == 1) {
			t.Errorf("time %d: %d lists were asked for: %+v", want, asked, sum)
		}
	}
}

// TestDirChanges has names come into a directory while it is listed. What is there by the second listing is in the snapshot.
func TestDirChanges(t *testing.T) {
	for _, times := range []int64{1, 5} {
		b := newBed(t)
		d := b.create(b.root, "d", vfs.CreateHow{Type: vfs.TypeDir})
		b.create(d, "sub", vfs.CreateHow{Type: vfs.TypeDir})
		b.file(d, "f", "content")
		var n atomic.Int64
		var inside atomic.Bool
		b.fault = func(_ context.Context, op string, h vfs.Handle) error {
			if op == "getattr" && h == d && !inside.Swap(true) {
				if i := n.Add(1); i <= times {
					b.after(time.Second)
					b.file(d, fmt.Sprint("new", i), "new")
				}
				inside.Store(false)
			}
			return nil
		}
		sum, s := b.backup()
		b.fault = nil
		if sum.Dirs != 3 || sum.DirsChanged != 0 && times == 1 || sum.DirsChanged != 1 && times > 1 || sum.Files != 2 {
			t.Errorf("%d changes: %+v", times, sum)
		}
		if times == 1 {
			b.wantSame(s)
		}
	}
}

// TestClock sets the clock back, and wants the newer snapshot to be the newest all the same.
func TestClock(t *testing.T) {
	b := newBed(t)
	b.file(b.root, "f", "content")
	first, _ := b.backup()
	b.now = b.now.Add(-time.Hour)
	l, o := listen(t), b.options()
	o.Progress = l.Tracker
	second, _ := b.run(o)
	if first.Snapshot >= second.Snapshot || len(l.kinds["note clock"]) != 1 {
		t.Errorf("%s, then %s: %v", first.Snapshot, second.Snapshot, l.kinds)
	}
	if third, _ := b.backup(); third.Base != second.Snapshot {
		t.Errorf("%+v", third)
	}
}

// TestTwoAtOnce has a backup begin and end while an earlier one is under way: ids say when each was begun, and the newest is the one that
// was begun last. Two that are begun in one moment have ids of their own.
func TestTwoAtOnce(t *testing.T) {
	for name, by := range map[string]time.Duration{"later": time.Second, "at once": 0} {
		t.Run(name, func(t *testing.T) {
			slow, fast := newBed(t), newBed(t)
			fast.store = slow.store
			slow.file(slow.root, "f", "slow")
			fast.file(fast.root, "f", "fast")
			l, o := listen(t), slow.options()
			o.Progress = l.Tracker
			fast.now = slow.now
			var during Summary
			slow.fault = func(_ context.Context, op string, _ vfs.Handle) error {
				if op == "read" && during.Snapshot == "" {
					slow.after(time.Hour)
					fast.after(by - time.Minute) // options adds it
					during, _ = fast.backup()
				}
				return nil
			}
			sum, s := slow.run(o)
			first, second := sum.Snapshot, during.Snapshot
			if by == 0 {
				first, second = second, first // both times are one, and the second to end has the next id
			}
			if first >= second || len(l.kinds["note clock"]) != 0 {
				t.Errorf("the slow one is %s, the fast one %s: %v", sum.Snapshot, during.Snapshot, l.kinds)
			}
			if ref := s.Ref(); by > 0 && ref.ID != strings.ToLower(ref.Time.UTC().Format("20060102t150405.000z")) {
				t.Errorf("%s was begun %v", ref.Text(), ref.Time)
			}
			if ref, err := snapshot.Find(t.Context(), slow.store, "t"); err != nil || ref.Text() != second {
				t.Errorf("the newest is %s, %v", ref.Text(), err)
			}
		})
	}
}

// TestDamagedBase damages each object of the base in turn, and wants the next backup that is verified to be whole all the same.
func TestDamagedBase(t *testing.T) {
	damaged := uint64(0)
	for i := 0; ; i++ {
		b := newBed(t)
		for i := range 4 {
			d := b.create(b.root, fmt.Sprint("d", i), vfs.CreateHow{Type: vfs.TypeDir})
			b.file(d, "f", strings.Repeat(fmt.Sprint(i), 1000))
			b.file(d, "g", strings.Repeat(fmt.Sprint(i), 300<<10))
		}
		b.backup()
		var keys []string
		for info, err := range object.All(t.Context(), b.store, "") {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, info.Key)
		}
		if i == len(keys) {
			break
		}
		if err := b.store.Delete(t.Context(), keys[i]); err != nil {
			t.Fatal(err)
		}
		o := b.options()
		o.Verify = true
		sum, s := b.run(o)
		if strings.HasPrefix(keys[i], "sha256/") && sum.Damaged == 0 || sum.Differences != 0 {
			t.Errorf("without %s: %+v", keys[i], sum)
		}
		damaged += sum.Damaged
		b.wantSame(s)
	}
	if damaged == 0 {
		t.Error("nothing of the bases was damaged")
	}
}

// TestDryRun wants to be told what would be read, and no call to the store that changes it.
func TestDryRun(t *testing.T) {
	b := newBed(t)
	b.file(b.root, "old", "old")
	b.backup()
	b.file(b.root, "new", "new")
	o, l := b.options(), listen(t)
	o.Store, o.DryRun, o.Progress = nil, true, l.Tracker
	sum, err := Run(t.Context(), o)
	if err != nil || sum.Read != 1 || sum.Files != 2 || sum.Snapshot != "" || len(l.kinds["would new"]) != 1 || l.kinds["would new"][0] != "new" {
		t.Errorf("%+v, %v, %v", sum, l.kinds, err)
	}
}

// bytesMoved is a renderer that is told how many bytes were moved.
type bytesMoved struct{ n uint64 }

func (*bytesMoved) Interval() time.Duration                { return time.Hour }
func (*bytesMoved) Progress(*progress.Snapshot) error      { return nil }
func (*bytesMoved) Event(time.Time, *progress.Event) error { return nil }
func (m *bytesMoved) Summary(s *progress.Snapshot, _ any) error {
	m.n = s.Counts[progress.Bytes]
	return nil
}

// TestDryRunCounts wants a dry run to say what the backup reads then: an object with several names once, and no holes.
func TestDryRunCounts(t *testing.T) {
	b := newBed(t)
	h := b.file(b.root, "a", noise(100<<10))
	b.link(h, "b")
	b.link(h, "c")
	sparse := b.file(b.root, "sparse", noise(zeroBlock))
	b.write(sparse, 64*zeroBlock, noise(zeroBlock))
	o := b.options()
	moved := new(bytesMoved)
	o.Store, o.DryRun, o.Progress = nil, true, progress.New(moved, time.Now)
	would, err := Run(t.Context(), o)
	if ferr := o.Progress.Finish(nil); ferr != nil || moved.n != 0 {
		t.Errorf("%d bytes were moved: %v", moved.n, ferr)
	}
	if err != nil {
		t.Fatal(err)
	}
	sum, s := b.backup()
	b.wantSame(s)
	if would.Read != sum.Read || would.Read != 2 || would.ReadBytes < sum.ReadBytes || would.ReadBytes > sum.ReadBytes+2*zeroBlock {
		t.Errorf("%+v would be read, and %+v was", would, sum)
	}
	if would.Files != sum.Files || !maps.Equal(would.Why, sum.Why) {
		t.Errorf("%+v, and %+v", would, sum)
	}
}

// TestFilter wants what is left out not to be in the snapshot, and to be counted once, also where a directory is listed again.
func TestFilter(t *testing.T) {
	b := newBed(t)
	d := b.create(b.root, "d", vfs.CreateHow{Type: vfs.TypeDir})
	b.create(d, ".snapshot", vfs.CreateHow{Type: vfs.TypeDir})
	b.file(d, "f.o", "object")
	b.file(d, "f", "content")
	var once, inside atomic.Bool
	b.fault = func(_ context.Context, op string, h vfs.Handle) error {
		if op == "getattr" && h == d && !inside.Swap(true) {
			if !once.Swap(true) {
				b.after(time.Second)
				b.file(d, "g", "late")
			}
			inside.Store(false)
		}
		return nil
	}
	o := b.options()
	var err error
	if o.Filter, err = filter.New(filter.Options{Rules: []filter.Rule{{Pattern: "*.o"}}}); err != nil {
		t.Fatal(err)
	}
	sum, _ := b.run(o)
	if left, snapshots := o.Filter.Left(); left != 2 || snapshots != 1 || sum.Files != 2 || sum.Dirs != 2 {
		t.Errorf("%d left out, %d of snapshots: %+v", left, snapshots, sum)
	}
}

// TestProve wants nothing to be published when the lease is lost.
func TestProve(t *testing.T) {
	b := newBed(t)
	b.file(b.root, "f", "content")
	lost := errors.New("the lease is lost")
	o := b.options()
	o.Prove = func(context.Context) error { return lost }
	if sum, err := Run(t.Context(), o); !errors.Is(err, lost) || sum.Snapshot != "" || sum.Partial {
		t.Errorf("%+v, %v", sum, err)
	}
	for _, prefix := range []string{"snapshots/", "partial/"} {
		if page, err := b.store.List(t.Context(), prefix, "", 0); err != nil || len(page.Objects) > 0 {
			t.Errorf("%s: %v, %v", prefix, page, err)
		}
	}
}

// labelled is a tree whose symbolic links have an extended attribute.
type labelled struct {
	*memfs.FS
	asked atomic.Int64
}

func (l *labelled) isLink(ctx context.Context, h vfs.Handle) bool {
	a, err := l.GetAttr(ctx, h, vfs.MaskV3)
	return err == nil && a.Type == vfs.TypeSymlink
}

func (l *labelled) Xattrs(ctx context.Context, h vfs.Handle) ([]string, error) {
	l.asked.Add(1)
	if l.isLink(ctx, h) {
		return []string{"trusted.label"}, nil
	}
	return l.FS.Xattrs(ctx, h)
}

func (l *labelled) Xattr(ctx context.Context, h vfs.Handle, name string) ([]byte, error) {
	if l.isLink(ctx, h) {
		return []byte("value"), nil
	}
	return l.FS.Xattr(ctx, h, name)
}

// TestLooksForMore has a snapshot of a version that has not looked for the extended attributes of symbolic links: the next one asks for them,
// once, and for those of nothing else.
func TestLooksForMore(t *testing.T) {
	b := newBed(t)
	b.create(b.root, "link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "nowhere"})
	b.file(b.root, "f", "content")
	b.backup()
	key := b.keys("snapshots/")[0]
	line, _, _ := bytes.Cut(b.get(key), []byte("\n"))
	older := bytes.Replace(line, []byte(`,"special":true`), nil, 1)
	if len(older) == len(line) {
		t.Fatalf("%s", line)
	}
	b.put(key, fmt.Appendf(older, "\n%x\n", sha256.Sum256(older)))
	fs := &labelled{FS: b.fs}
	for _, want := range []int64{1, 0} {
		fs.asked.Store(0)
		o := b.options()
		o.FS = fs
		sum, s := b.run(o)
		names, err := s.FS().(vfs.Xattrer).Xattrs(t.Context(), lookup(t, s, "link"))
		if err != nil || len(names) != 1 || fs.asked.Load() != want || sum.Read != 0 {
			t.Errorf("%q, %v; %d were asked: %+v", names, err, fs.asked.Load(), sum)
		}
	}
}
