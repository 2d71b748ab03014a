package job

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/posixacl"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// calls counts the operations of a memfs.
type calls struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *calls) fault(ctx context.Context, op string, _ vfs.Handle) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[op]++
	return ctx.Err()
}

// TestListsCost counts the calls for a tree without lists and extended attributes: what is asked
// of the destination for their sake is one question, about the directory that the copy is made in.
// Its directories are new, so they and what is in them have none. The source is asked for the list
// of each object whose mode gives its group rights. (No server is asked for extended attributes;
// what is in memory says by its call what a file of this host says by another.)
func TestListsCost(t *testing.T) {
	in, out := calls{n: make(map[string]int)}, calls{n: make(map[string]int)}
	src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{Fault: out.fault})
	for i := range 4 {
		for j := range 5 {
			src.file(fmt.Sprintf("%d/%d", i, j), 0o644, []byte("contents"))
		}
		src.file(fmt.Sprintf("%d/closed", i), 0o600, []byte("contents"))
	}
	src.settle()
	o, v := options(t, src, dst, "copy")
	clear(in.n)
	clear(out.n)
	if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitDone {
		t.Fatalf("%v, %+v\n%s", err, s, v)
	}
	want := map[string]int{"acl": 1, "lookup": out.n["lookup"], "getattr": out.n["getattr"], "info": out.n["info"], "create": out.n["create"],
		"remove": out.n["remove"], "open": 24, "write": 24, "close": 24, "rename": 24, "setattr": 24 + 5 + 2} // the root gets its mode at once, and what was probed its time again
	if !maps.Equal(out.n, want) {
		t.Errorf("the destination was asked %v, want %v", out.n, want)
	}
	if in.n["acl"] != 20+5 || in.n["xattrs"] != 24+5 || in.n["xattr"] != 0 {
		t.Errorf("the source was asked %v", in.n)
	}
}

// TestCopyBelowLists: what is copied into a directory that gives lists to what is made in it has
// the lists of its source, and no others, also if the copy was there and had some. A run that
// finds a directory with its lists does not set them, and so closes it to nobody.
func TestCopyBelowLists(t *testing.T) {
	lists := vfs.ACL{Access: []vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: 7}, {Tag: vfs.ACLUser, ID: 2000, Perm: 7}, {Tag: vfs.ACLGroupObj, Perm: 7},
		{Tag: vfs.ACLMask, Perm: 7}, {Tag: vfs.ACLOther, Perm: 7},
	}}
	lists.Default = lists.Access
	out := calls{n: make(map[string]int)}
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: out.fault})
	src.file("d/f", 0o664, []byte("contents"))
	src.make("d/fifo", vfs.CreateHow{Type: vfs.TypeFIFO, Set: mode(0o664)})
	src.make("d/link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "f"})
	src.file("there/f", 0o664, []byte("contents"))
	own := vfs.ACL{Access: []vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: 7}, {Tag: vfs.ACLUser, ID: 1000, Perm: 5}, {Tag: vfs.ACLGroupObj, Perm: 5},
		{Tag: vfs.ACLMask, Perm: 5}, {Tag: vfs.ACLOther, Perm: 0},
	}}
	if err := src.fs.(vfs.ACLer).SetACL(t.Context(), src.dir("own"), own); err != nil {
		t.Fatal(err)
	}
	src.file("own/f", 0o664, []byte("contents"))
	src.settle()
	dst.dir("copy/there")
	for _, dir := range []string{"copy/there", "copy", ""} {
		if err := dst.fs.(vfs.ACLer).SetACL(t.Context(), dst.at(dir), lists); err != nil {
			t.Fatal(err)
		}
	}
	for run := range 2 {
		o, v := options(t, src, dst, "copy")
		clear(out.n)
		if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitDone || s.ACLsLost != 0 || s.ModesLost != 0 {
			t.Fatalf("run %d: %v, %+v\n%s", run, err, s, v)
		}
		if n := out.n["setacl"]; run == 1 && n != 1 { // of own/f, which is copied again
			t.Errorf("lists of %d objects were set again", n)
		}
		for path, perm := range map[string]uint32{"copy/d": 0o755, "copy/d/f": 0o664, "copy/d/fifo": 0o664, "copy/there": 0o755, "copy/there/f": 0o664, "copy/own/f": 0o664, "copy/own": 0o750} {
			h := dst.at(path)
			acl, err := dst.fs.(vfs.ACLer).ACL(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			if path != "copy/own" && (!posixacl.Minimal(acl.Access) || acl.Default != nil) || path == "copy/own" && len(acl.Access) != 5 {
				t.Errorf("run %d: %s has the lists %+v", run, path, acl)
			}
			if a, err := dst.fs.GetAttr(t.Context(), h, vfs.MaskMode); err != nil || a.Mode != perm {
				t.Errorf("run %d: %s has mode %o, want %o, %v", run, path, a.Mode, perm, err)
			}
		}
	}
}

// TestVerifyLists: lists and extended attributes are compared if that is asked for.
func TestVerifyLists(t *testing.T) {
	list := vfs.ACL{Access: []vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: 6}, {Tag: vfs.ACLUser, ID: 1000, Perm: 4}, {Tag: vfs.ACLGroupObj, Perm: 4},
		{Tag: vfs.ACLMask, Perm: 4}, {Tag: vfs.ACLOther, Perm: 4},
	}}
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	for _, tr := range []*tree{src, dst} {
		for _, name := range []string{"d/both", "d/here", "d/none", "d/there", "d/value"} {
			tr.file(name, 0o644, nil)
		}
		tr.mark("d/value", "user.a", "value")
		tr.grant("d/both", list)
		tr.settle()
	}
	src.grant("d/here", list)
	dst.grant("d/there", list)
	src.grant("d", vfs.ACL{Access: posixacl.FromMode(0o755), Default: list.Access})
	dst.mark("d/value", "user.a", "another")
	src.mark("d", "user.b", "")
	if s, got := verify(t, src, dst, nil); s.Differences != 0 {
		t.Errorf("not asked for: %q", got)
	}
	want := []string{"acl d", "acl d/here", "acl d/there", "xattr d", "xattr d/value"}
	if _, got := verify(t, src, dst, func(o *VerifyOptions) { o.ACLs = true }); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	want = []string{" ", "acl d/both", "acl d/there"} // a note, and what the destination alone has
	unable := func(o *VerifyOptions) { o.ACLs, o.Source.FS = true, struct{ vfs.FS }{src.fs} }
	if _, got := verify(t, src, dst, unable); !slices.Equal(got, want) {
		t.Errorf("of a source that cannot be asked: %q, want %q", got, want)
	}
}

// grant gives an object lists, and mark an extended attribute.
func (tr *tree) grant(path string, acl vfs.ACL) {
	tr.t.Helper()
	if err := tr.fs.(vfs.ACLer).SetACL(context.Background(), tr.at(path), acl); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *tree) mark(path, name, value string) {
	tr.t.Helper()
	if err := tr.fs.(vfs.Xattrer).SetXattr(context.Background(), tr.at(path), name, []byte(value), vfs.XattrEither); err != nil {
		tr.t.Fatal(err)
	}
}

// TestSyncLists: what stays gets lists and extended attributes again, and loses what the source does not have: unless that may not show
// it.
func TestSyncLists(t *testing.T) {
	list := vfs.ACL{Access: []vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: 6}, {Tag: vfs.ACLUser, ID: 1000, Perm: 4}, {Tag: vfs.ACLGroupObj, Perm: 4},
		{Tag: vfs.ACLMask, Perm: 4}, {Tag: vfs.ACLOther, Perm: 4},
	}}
	for _, own := range []bool{true, false} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		for _, tr := range []*tree{src, dst} {
			tr.file("has", 0o644, nil)
			tr.file("hasnot", 0o644, nil)
			tr.settle()
		}
		src.grant("has", list)
		src.mark("has", "user.a", "a")
		dst.mark("has", "user.a", "other")
		dst.grant("hasnot", list)
		dst.mark("hasnot", "user.b", "b")
		set := uint64(2)
		if own {
			set = 1
		}
		how := SyncOptions{ACLs: true, OwnLists: own, OwnXattrs: own}
		o, v := options(t, src, dst, "")
		o.Sync, o.DryRun = &how, true
		if s, err := Copy(t.Context(), o); err != nil || s.AttrsSet != set {
			t.Errorf("a dry run would set %d, want %d: %v\n%s", s.AttrsSet, set, err, v)
		}
		if s, v := synced(t, src, dst, how); s.AttrsSet != set || s.Files > 0 {
			t.Errorf("%d are set, want %d\n%s", s.AttrsSet, set, v)
		}
		want := []string{"acl hasnot", "xattr hasnot"}
		if !own {
			want = nil
		}
		if _, got := verify(t, src, dst, func(o *VerifyOptions) { o.ACLs = true }); !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", own, got, want)
		}
	}
}
