package job

import (
	"context"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/posixacl"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestCopyReplacedLinks: two names of one file become names of two while they are
// copied. Each copy has what its name stood for.
func TestCopyReplacedLinks(t *testing.T) {
	var once sync.Once
	var replace func()
	src := mem(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "open" && replace != nil {
			once.Do(replace)
		}
		return nil
	}})
	dst := mem(t, memfs.Options{})
	src.link(src.file("tree/a", 0o644, []byte("old")), "tree/b")
	src.file("new/a", 0o644, []byte("the new a"))
	src.file("new/b", 0o644, []byte("the new b"))
	tree, fresh := src.at("tree"), src.at("new")
	replace = func() {
		for _, name := range []string{"a", "b"} {
			if _, _, err := src.fs.Rename(context.Background(), fresh, name, tree, name); err != nil {
				t.Error(err)
			}
		}
	}
	o, v := options(t, src, dst, "copy")
	o.Source.Handle = tree
	s, err := Copy(t.Context(), o)
	if err != nil || s.ExitCode(err) != ExitDone {
		t.Fatalf("%v, %+v\n%s", err, s, v)
	}
	for _, name := range []string{"a", "b"} {
		if got := string(dst.read(dst.at("copy/"+name), 9)); got != "the new "+name {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

// TestCopyDirWithACL: a copied directory gets the lists of its source when all in it is done. Where
// it cannot, its group does not get the rights that the access control list gives to others.
func TestCopyDirWithACL(t *testing.T) {
	for _, holds := range []bool{true, false} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		acl := vfs.ACL{Access: []vfs.ACLEntry{
			{Tag: vfs.ACLUserObj, Perm: 7}, {Tag: vfs.ACLUser, ID: 1000, Perm: 7}, {Tag: vfs.ACLGroupObj, Perm: 5},
			{Tag: vfs.ACLMask, Perm: 7}, {Tag: vfs.ACLOther, Perm: 0},
		}}
		acl.Default = acl.Access
		if err := src.fs.(vfs.ACLer).SetACL(t.Context(), src.dir("d"), acl); err != nil {
			t.Fatal(err)
		}
		src.set(src.file("d/f", 0o600, nil), mode(0o640))
		if err := src.fs.(vfs.ACLer).SetACL(t.Context(), src.at("d/f"), vfs.ACL{Access: posixacl.FromMode(0o640)}); err != nil {
			t.Fatal(err)
		}
		src.settle()
		want, lost := uint32(0o770), uint64(0)
		o, v := options(t, src, dst, "copy")
		if !holds {
			o.Dest.FS, want, lost = struct{ vfs.FS }{dst.fs}, 0o750, 1
		}
		s, err := Copy(t.Context(), o)
		if err != nil || s.ExitCode(err) != ExitDone || s.ACLsLost != lost {
			t.Fatalf("%v, %+v\n%s", err, s, v)
		}
		a, err := dst.fs.GetAttr(t.Context(), dst.at("copy/d"), vfs.MaskMode|vfs.MaskMtime)
		if err != nil || a.Mode != want {
			t.Errorf("kept %v: mode %o, want %o, %v", holds, a.Mode, want, err)
		}
		got, err := dst.fs.(vfs.ACLer).ACL(t.Context(), dst.at("copy/d"))
		if same := transfer.SameLists(got, acl); err != nil || same != holds {
			t.Errorf("kept %v: the copy has the lists %+v, %v", holds, got, err)
		}
		// What was made in it does not begin with its list.
		if got, err = dst.fs.(vfs.ACLer).ACL(t.Context(), dst.at("copy/d/f")); err != nil || !posixacl.Minimal(got.Access) {
			t.Errorf("kept %v: the file in it has the list %+v, %v", holds, got, err)
		}
	}
}
