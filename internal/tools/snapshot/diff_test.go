package snapshot

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// differences are those of two snapshots, a line each, sorted, and what could not be read.
func differences(t *testing.T, a, b *Snapshot) (found, failed []string) {
	t.Helper()
	from, _, err := a.FS().Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	to, _, err := b.FS().Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = Diff(t.Context(), a, b, from, to, DiffOptions{
		Found: func(d *Difference) error {
			if (d.A == nil) != slices.Contains(d.What, DiffAdded) || (d.B == nil) != slices.Contains(d.What, DiffRemoved) {
				t.Errorf("%q: %q of %v and %v", d.Path, d.What, d.A, d.B)
			}
			found = append(found, d.Path+": "+strings.Join(d.What, " "))
			return nil
		},
		Failed: func(path string, err error) error {
			failed = append(failed, fmt.Sprintf("%s: %v", path, err))
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found, failed
}

// TestDiff: each kind of change is found, and nothing else.
func TestDiff(t *testing.T) {
	ctx := t.Context()
	store := object.NewMemory(object.MemoryOptions{})
	tr := modest(t)
	for _, name := range []string{"diff/gone/deep/x", "diff/type/below", "diff/same", "diff/content", "diff/mode", "diff/acl", "diff/xattr", "diff/links", "diff/owner"} {
		tr.file(name, []byte("what "+name+" has"))
	}
	tr.file("diff/large", noise(7, 10<<20))
	tr.add("diff/link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "one"})
	a := take(t, tr, store, Meta{})
	if found, failed := differences(t, a, a); len(found)+len(failed) > 0 {
		t.Errorf("a snapshot and itself: %q, %q", found, failed)
	}

	remove := func(path string, dir bool) {
		t.Helper()
		in, name := tr.place(path)
		if _, err := tr.fs.Remove(ctx, in, name, dir); err != nil {
			t.Fatal(err)
		}
	}
	set := func(path string, a vfs.SetAttr) {
		t.Helper()
		if _, err := tr.fs.SetAttr(ctx, tr.at(path), &a, nil); err != nil {
			t.Fatal(err)
		}
	}
	was := make(map[string]vfs.Attr)
	for _, name := range []string{"diff", "diff/content", "diff/large"} {
		attr, err := tr.fs.GetAttr(ctx, tr.at(name), vfs.MaskV3)
		if err != nil {
			t.Fatal(err)
		}
		was[name] = attr
	}
	remove("diff/gone/deep/x", false)
	remove("diff/gone/deep", true)
	remove("diff/gone", true)
	remove("diff/type/below", false)
	remove("diff/type", true)
	tr.file("diff/type", []byte("a file"))
	remove("diff/link", false)
	tr.add("diff/link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "two"})
	tr.file("diff/new/deep", []byte("x"))
	tr.write(tr.at("diff/content"), 0, []byte("WHAT"))
	tr.write(tr.at("diff/large"), 5<<20, []byte("changed"))
	set("diff/mode", vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600})
	set("diff/owner", vfs.SetAttr{Valid: vfs.MaskUID, UID: 4711})
	if err := tr.fs.(vfs.ACLer).SetACL(ctx, tr.at("diff/acl"), vfs.ACL{Access: []vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: 7}, {Tag: vfs.ACLUser, ID: 12, Perm: 5}, {Tag: vfs.ACLGroupObj, Perm: 5}, {Tag: vfs.ACLMask, Perm: 5}, {Tag: vfs.ACLOther, Perm: 5},
	}}); err != nil {
		t.Fatal(err)
	}
	if err := tr.fs.(vfs.Xattrer).SetXattr(ctx, tr.at("diff/xattr"), "user.a", []byte("b"), 0); err != nil {
		t.Fatal(err)
	}
	in, _ := tr.place("diff/links")
	if _, _, err := tr.fs.Link(ctx, tr.at("diff/links"), in, "linked"); err != nil {
		t.Fatal(err)
	}
	for name, attr := range was {
		set(name, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: attr.Mtime})
	}
	set("diff/link", vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: entryOf(t, a, "diff/link").Attr.Mtime})
	b := take(t, tr, store, Meta{})
	want := []string{
		"diff/acl: acl", "diff/content: content", "diff/gone/deep/x: removed", "diff/gone/deep: removed", "diff/gone: removed", "diff/large: content",
		"diff/link: target", "diff/linked: added", "diff/links: links", "diff/mode: mode", "diff/new/deep: added", "diff/new: added", "diff/owner: owner",
		"diff/type/below: removed", "diff/type: type", "diff/xattr: xattr",
	}
	found, failed := differences(t, a, b)
	if !slices.Equal(found, want) || len(failed) > 0 {
		t.Errorf("%q\nwant %q\nfailed: %q", found, want, failed)
	}
	found, _ = differences(t, b, a)
	for i, line := range found {
		found[i] = strings.NewReplacer(": added", ": removed", ": removed", ": added").Replace(line)
	}
	// What lies below a name whose type has changed is told either way.
	if slices.Sort(found); !slices.Equal(found, want) {
		t.Errorf("the other way round: %q", found)
	}
}

// entryOf is what a snapshot has of a path.
func entryOf(t *testing.T, s *Snapshot, path string) *Entry {
	t.Helper()
	f := s.FS()
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := vfs.Resolve(t.Context(), f, root, path, false)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Entry(t.Context(), r.Handle)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestDiffDamaged: a part that is damaged hides what it has, and is named; nothing of it is taken for added or removed.
func TestDiffDamaged(t *testing.T) {
	store := object.NewMemory(object.MemoryOptions{})
	a := large(t, store, 20_000)
	before := keys(t, store)
	tr := modest(t)
	for i := range 3 {
		tr.file(largeName(i), nil)
	}
	b := take(t, tr, store, Meta{Name: "other"})
	for _, key := range before {
		if !strings.HasPrefix(key, rootPrefix) {
			if err := store.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
	}
	a, err := Open(t.Context(), store, a.Ref())
	if err != nil {
		t.Fatal(err)
	}
	found, failed := differences(t, a, b)
	if len(failed) != 1 || !strings.Contains(failed[0], ErrDamaged.Error()) {
		t.Errorf("%q", failed)
	}
	for _, line := range found {
		if strings.Contains(line, DiffAdded) || strings.Contains(line, DiffRemoved) {
			t.Errorf("%q, though the list of one side cannot be read", line)
		}
	}
}

// TestDiffStore: an error of the store ends the comparison; one of a visitor, too.
func TestDiffStore(t *testing.T) {
	store := object.NewMemory(object.MemoryOptions{})
	a := take(t, modest(t), store, Meta{})
	b := take(t, mem(t), store, Meta{})
	root, _, _ := a.FS().Root(t.Context())
	other, _, _ := b.FS().Root(t.Context())
	_, err := Diff(t.Context(), a, b, root, other, DiffOptions{Found: func(*Difference) error { return io.ErrClosedPipe }})
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	if _, err := Diff(t.Context(), a, b, other, root, DiffOptions{}); !errors.Is(err, vfs.ErrBadHandle) {
		t.Errorf("handles of the other snapshots: %v", err)
	}
}
