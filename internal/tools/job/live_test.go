package job

import (
	"context"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
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

// TestCopyDirWithACL: a copied directory's group does not get the rights that the access
// control list gives to others.
func TestCopyDirWithACL(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	acl := vfs.ACL{Access: []vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: 7}, {Tag: vfs.ACLUser, ID: 1000, Perm: 7}, {Tag: vfs.ACLGroupObj, Perm: 5},
		{Tag: vfs.ACLMask, Perm: 7}, {Tag: vfs.ACLOther, Perm: 0},
	}}
	if err := src.fs.(vfs.ACLer).SetACL(t.Context(), src.dir("d"), acl); err != nil {
		t.Fatal(err)
	}
	o, v := options(t, src, dst, "copy")
	s, err := Copy(t.Context(), o)
	if err != nil || s.ExitCode(err) != ExitDone {
		t.Fatalf("%v, %+v\n%s", err, s, v)
	}
	a, err := dst.fs.GetAttr(t.Context(), dst.at("copy/d"), vfs.MaskMode)
	if err != nil || a.Mode != 0o750 {
		t.Errorf("mode %o, %v", a.Mode, err)
	}
}
