package upkeep

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/files"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// barred is a store of which one object cannot be read. If it is not there, it is not listed either.
type barred struct {
	object.Store
	key string
	why error
}

func (s *barred) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
	if key == s.key {
		return nil, object.Info{}, object.Fail("get", key, s.why)
	}
	return s.Store.Get(ctx, key, off, n)
}

func (s *barred) Stat(ctx context.Context, key string) (object.Info, error) {
	if key == s.key {
		return object.Info{}, object.Fail("stat", key, s.why)
	}
	return s.Store.Stat(ctx, key)
}

func (s *barred) List(ctx context.Context, prefix, after string, limit int) (object.Page, error) {
	p, err := s.Store.List(ctx, prefix, after, limit)
	p.Objects = slices.DeleteFunc(p.Objects, func(i object.Info) bool { return i.Key == s.key && errors.Is(s.why, object.ErrNotExist) })
	return p, err
}

// hurtOf says what a damage of an object hurts.
func hurtOf(found []Damage, key string) (hurts []string) {
	for i := range found {
		if found[i].Object != key {
			continue
		}
		for _, h := range found[i].Hurts {
			hurts = append(hurts, h.Snapshot+":"+h.Path)
		}
	}
	slices.Sort(hurts)
	return hurts
}

// TestCheckUnreadable: an object that may not be read is named with what it hurts, which is what it would hurt if it were missing, and the check
// goes on.
func TestCheckUnreadable(t *testing.T) {
	b := grown(t)
	for _, key := range b.content() {
		sum, found := b.check(&barred{b.memory, key, syscall.EACCES}, 1)
		if len(found) > 1 || len(found) == 1 && (found[0].Object != key || found[0].Problem != Unreadable) || sum.Snapshots+sum.HurtSnapshots == 0 {
			t.Errorf("%s: %+v", key, found)
		}
		_, gone := b.check(&barred{b.memory, key, object.ErrNotExist}, 1)
		if want, got := hurtOf(gone, key), hurtOf(found, key); !slices.Equal(got, want) {
			t.Errorf("%s hurts %q, want %q", key, got, want)
		}
	}
	b.clean(b.memory)
}

// TestCheckHidden has something else in the place of directories of a store, and directories that may not be read: they are named with what
// they hurt, and the check goes on with all else.
func TestCheckHidden(t *testing.T) {
	b := newBed(t)
	var hidden vfs.Handle
	disk := memfs.New(memfs.Options{Now: b.clock.now, Fault: func(_ context.Context, op string, h vfs.Handle) error {
		if h == hidden && (op == "readdir" || op == "lookup") {
			return vfs.ErrAccess
		}
		return nil
	}})
	root, _, err := disk.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	opened := func() *files.Store {
		s, err := files.Open(t.Context(), disk, root, files.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() }) // its file system is in memory
		return s
	}
	store := opened()
	for i, name := range []string{"a", "b", "b-c", "bc"} {
		b.file("own", noise(uint64(100+i), 300_000))
		b.file("same", noise(1, 300_000))
		if err := b.backup(store, name, nil); err != nil {
			t.Fatal(err)
		}
	}
	whole, found := b.check(store, 1)
	if len(found) > 0 {
		t.Fatalf("%+v", found)
	}
	keys := make(map[string]string) // a key of each directory of content
	for info, err := range object.All(t.Context(), store, contentPrefix) {
		if err != nil {
			t.Fatal(err)
		}
		keys["sha256/="+info.Key[len(contentPrefix):][:2]] = info.Key
	}
	dirs := slices.Sorted(maps.Keys(keys))
	for _, dir := range append(dirs, "snapshots/b", "snapshots/bc", "snapshots") {
		of := strings.ReplaceAll(dir, "=", "")
		if strings.HasPrefix(dir, "snapshots") {
			of += "/"
		}
		r, err := vfs.Resolve(t.Context(), disk, root, dir, false)
		if err != nil {
			t.Fatal(err)
		}
		hidden = r.Handle
		sum, barredFrom := b.check(opened(), 1)
		hidden = vfs.Handle{}
		got := hurtOf(barredFrom, of)
		switch {
		case !slices.ContainsFunc(barredFrom, func(d Damage) bool { return d.Object == of && d.Problem == Unreadable }):
			t.Errorf("%s: %+v", dir, barredFrom)
		case dir == "snapshots":
			if sum.Snapshots != 0 || !slices.Equal(got, []string{"@:/"}) {
				t.Errorf("%+v: %q", sum, got)
			}
		case strings.HasPrefix(dir, "snapshots"):
			if sum.Snapshots != whole.Snapshots-1 || !slices.Equal(got, []string{strings.TrimPrefix(dir, "snapshots/") + "@:/"}) || sum.HurtSnapshots != 1 {
				t.Errorf("%s: %+v, %q", dir, sum, got)
			}
		case sum.Snapshots != whole.Snapshots || sum.HurtSnapshots == 0 || len(hurtOf(barredFrom, keys[dir])) == 0:
			t.Errorf("%s: %+v, %+v", dir, sum, barredFrom)
		}

		if _, _, err := disk.Rename(t.Context(), r.Dir, r.Name, root, "away"); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := disk.Create(t.Context(), r.Dir, r.Name, &vfs.CreateHow{Type: vfs.TypeFIFO}); err != nil {
			t.Fatal(err)
		}
		_, foreign := b.check(opened(), 1)
		if again := hurtOf(foreign, of); !slices.Equal(again, got) || !slices.ContainsFunc(foreign, func(d Damage) bool { return d.Object == of && d.Problem == Format }) {
			t.Errorf("%s: %+v", dir, foreign)
		}
		if _, err := b.prune(opened(), PruneOptions{}); strings.HasPrefix(dir, "snapshots") && !errors.Is(err, ErrUnreadable) || err == nil {
			t.Errorf("%s was pruned: %v", dir, err)
		}
		_, err = disk.Remove(t.Context(), r.Dir, r.Name, false)
		if err == nil {
			_, _, err = disk.Rename(t.Context(), root, "away", r.Dir, r.Name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	refs, err := snapshot.Roots(t.Context(), opened(), "")
	if err != nil || uint64(len(refs)) != whole.Snapshots {
		t.Errorf("%+v, %v", refs, err)
	}
}
