package upkeep

import (
	"errors"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
)

// packsOf is how many objects of a store are packs of snapshots, and their size.
func packsOf(t *testing.T, store object.Store, name string) (n, bytes uint64) {
	t.Helper()
	packs := make(map[object.Sum]bool)
	refs, err := snapshot.Snapshots(t.Context(), store, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range refs {
		s, err := snapshot.Open(t.Context(), store, ref)
		if err == nil {
			_, err = s.Uses(t.Context(), snapshot.UsesOptions{Use: func(u *snapshot.Use, _ *snapshot.Site) error {
				if !u.Whole {
					packs[u.Sum] = true
				}
				return nil
			}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for sum := range packs {
		info, err := store.Stat(t.Context(), object.ContentKey(sum))
		if err != nil {
			t.Fatal(err)
		}
		n, bytes = n+1, bytes+uint64(info.Size)
	}
	return n, bytes
}

// TestStats: what snapshots have and need is what a check has found, in one round and in many.
func TestStats(t *testing.T) {
	const tree = 300_000 + 5000 + 400_000 + 1000 // bytes of each snapshot
	b := grown(t)
	want := b.clean(b.memory)
	fails := func(what string, err error) { t.Error(what, err) }
	sum, err := Stats(t.Context(), b.memory, StatsOptions{Failed: fails})
	packs, packed := packsOf(t, b.memory, "")
	if err != nil || sum.Snapshots != 4 || sum.Partials != 0 || sum.Trees != 2 || sum.Names != want.Names || sum.RestoreBytes != 4*tree ||
		sum.Objects != want.Objects || sum.Bytes != want.Bytes || sum.Packs != packs || sum.PackBytes != packed || packs == 0 ||
		sum.Unused == nil || *sum.Unused != want.Unused || *sum.UnusedBytes != want.UnusedBytes || want.Unused == 0 || sum.Missing != 0 {
		t.Errorf("%+v, and the check %+v; %v", sum, want, err)
	}
	// In rounds that have no room for all.
	var few StatsSummary
	s := &stats{store: b.memory, o: &StatsOptions{Failed: fails}, sum: &few, failed: make(map[string]bool)}
	if err := errors.Join(s.list(t.Context()), s.objects(t.Context(), 8)); err != nil {
		t.Fatal(err)
	}
	few.Unused, few.UnusedBytes = &s.unused, &s.unusedBytes
	if !reflect.DeepEqual(few, sum) {
		t.Errorf("%+v, want %+v", few, sum)
	}

	one, err := Stats(t.Context(), b.memory, StatsOptions{Name: "a", Failed: fails})
	if packs, packed = packsOf(t, b.memory, "a"); err != nil || one.Snapshots != 2 || one.Trees != 1 || one.RestoreBytes != 2*tree || one.Names != sum.Names/2 ||
		one.Packs != packs || one.PackBytes != packed || one.Bytes > sum.Bytes || one.Unused != nil {
		t.Errorf("%+v, of all %+v; %v", one, sum, err)
	}
	ref, err := snapshot.Find(t.Context(), b.memory, "b")
	if err != nil {
		t.Fatal(err)
	}
	only, err := Stats(t.Context(), b.memory, StatsOptions{Only: &ref, Failed: fails})
	if err != nil || only.Snapshots != 1 || only.RestoreBytes != tree || only.Names != sum.Names/4 || only.Bytes >= one.Bytes || only.Bytes == 0 || only.Unused != nil {
		t.Errorf("%+v; %v", only, err)
	}
	if sum, err := Stats(t.Context(), b.memory, StatsOptions{Name: "c", Failed: fails}); !errors.Is(err, snapshot.ErrNoSnapshot) {
		t.Errorf("%+v; %v", sum, err)
	}
}

// TestStatsDamaged: a snapshot that cannot be read is told once, and the others are counted; what is missing is counted.
func TestStatsDamaged(t *testing.T) {
	b := grown(t)
	roots := rootKeys(b)
	var told []string
	fails := func(what string, err error) {
		if !snapshot.IsOwn(err) {
			t.Error(what, err)
		}
		told = append(told, what)
	}
	sum, err := Stats(t.Context(), &barred{b.memory, roots[0], syscall.EACCES}, StatsOptions{Failed: fails})
	text := strings.Replace(strings.TrimPrefix(roots[0], "snapshots/"), "/", "@", 1)
	if err != nil || len(told) != 1 || told[0] != text || sum.Snapshots != 3 || sum.Trees != 2 || sum.Unused != nil {
		t.Errorf("%q: %+v; %v", told, sum, err)
	}
	told = nil
	s := &stats{store: &barred{b.memory, roots[0], syscall.EACCES}, o: &StatsOptions{Failed: fails}, sum: new(StatsSummary), failed: make(map[string]bool)}
	if err := errors.Join(s.list(t.Context()), s.objects(t.Context(), 8)); err != nil || len(told) != 1 {
		t.Errorf("in rounds: %q; %v", told, err)
	}
	if err := b.memory.Delete(t.Context(), object.ContentKey(b.used(snapshot.UseData))); err != nil {
		t.Fatal(err)
	}
	told = nil
	if sum, err := Stats(t.Context(), b.memory, StatsOptions{Failed: fails}); err != nil || len(told) > 0 || sum.Missing != 1 || sum.Snapshots != 4 {
		t.Errorf("%q: %+v; %v", told, sum, err)
	}
	// A part of a manifest that is missing is a damage of those that need it.
	if err := b.memory.Delete(t.Context(), object.ContentKey(b.used(snapshot.UsePart))); err != nil {
		t.Fatal(err)
	}
	if sum, err := Stats(t.Context(), b.memory, StatsOptions{Failed: fails}); err != nil || len(told) == 0 || sum.Missing == 0 || sum.Unused != nil {
		t.Errorf("%q: %+v; %v", told, sum, err)
	}
}
