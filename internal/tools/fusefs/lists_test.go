//go:build linux

package fusefs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/memfs"
)

// asked is a file system that counts how often it is asked for lists. during is called while it is.
type asked struct {
	vfs.FS
	n      int
	during func()
}

func (f *asked) Unwrap() any { return f.FS }

func (f *asked) power() vfs.ACLer {
	p, _ := vfs.As[vfs.ACLer](f.FS)
	return p
}

func (f *asked) ACL(ctx context.Context, h vfs.Handle) (vfs.ACL, error) {
	f.n++
	all, err := f.power().ACL(ctx, h)
	if f.during != nil {
		f.during()
	}
	return all, err
}

func (f *asked) SetACL(ctx context.Context, h vfs.Handle, all vfs.ACL) error {
	return f.power().SetACL(ctx, h, all)
}

// listed is a mount, of which the kernel knows one file, by the requests that ls -l makes.
type listed struct {
	t  *testing.T
	fs *asked
	m  *Mount
	h  vfs.Handle // the file's
	id uint64
}

func newListed(t *testing.T, times Times) *listed {
	tree := memfs.New(memfs.Options{Mode: 0o755})
	root, a, err := tree.Root(t.Context())
	expect.OK(t, err)
	h, _, _, err := tree.Create(t.Context(), root, "f", &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}})
	expect.OK(t, err)
	l := &listed{t: t, fs: &asked{FS: tree}, h: h}
	l.m = &Mount{
		opt: Options{Times: times}, base: t.Context(), fsid: a.FSID, nodes: newNodes(root),
		callers: callers{fs: l.fs, fixed: true},
	}
	return l
}

// stat has the kernel look the file up.
func (l *listed) stat() {
	l.t.Helper()
	var out fuse.EntryOut
	if got := l.m.Lookup(nil, &fuse.InHeader{NodeId: rootID}, "f", &out); !got.Ok() {
		l.t.Fatal(got)
	}
	l.id = out.NodeId
}

// ask asks for the attribute, and checks whether it is there, and how often the file system was asked since the last time.
func (l *listed) ask(what string, there bool, calls int) {
	l.t.Helper()
	want := fuse.ENOATTR
	if there {
		want = fuse.OK
	}
	if _, got := l.m.GetXAttr(nil, &fuse.InHeader{NodeId: l.id}, aclAccess, nil); got != want {
		l.t.Errorf("%s: %v, want %v", what, got, want)
	}
	if l.fs.n != calls {
		l.t.Errorf("%s: %d calls, want %d", what, l.fs.n, calls)
	}
	l.fs.n = 0
}

// set changes the lists as another host does.
func (l *listed) set(list []vfs.ACLEntry) {
	l.t.Helper()
	expect.OK(l.t, l.fs.SetACL(l.t.Context(), l.h, vfs.ACL{Access: list}))
}

// TestKeptLists: lists are asked for once while the attributes are believed, and for as long as they are found unchanged; but no
// longer than attributes are ever believed.
func TestKeptLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newListed(t, DefaultTimes)
		l.stat()
		l.ask("the first time", false, 1)
		l.ask("again", false, 0)
		var names [64]byte
		if n, got := l.m.ListXAttr(nil, &fuse.InHeader{NodeId: l.id}, names[:]); n != 0 || !got.Ok() {
			t.Errorf("names %q, %v", names[:n], got)
		}
		l.ask("after the names", false, 0)
		time.Sleep(DefaultTimes.FileMin)
		l.ask("attributes are too old", false, 1)
		l.stat()
		l.ask("attributes are the same", false, 0)
		for range 4 {
			time.Sleep(10 * time.Second)
			l.stat()
			l.ask("attributes are still the same", false, 0)
		}
		l.set(aclOf(7))
		l.ask("another host's change, which no answer has shown", false, 0)
		l.stat()
		l.ask("another host's change", true, 1)
		for range 6 {
			l.stat()
			l.ask("again", true, 0)
			time.Sleep(10 * time.Second)
		}
		l.stat()
		l.ask("after a minute", true, 1)
	})
}

// TestChangedLists: lists that this mount has changed are asked for again at once, whether or not the time of change shows it.
// memfs counts time as the test does, which stands.
func TestChangedLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newListed(t, DefaultTimes)
		h := fuse.InHeader{NodeId: 2}
		set := func() fuse.Status {
			return l.m.SetXAttr(nil, &fuse.SetXAttrIn{InHeader: h}, aclAccess, encodeACL(aclOf(7)))
		}
		chmod := func() fuse.Status {
			in := fuse.SetAttrIn{SetAttrInCommon: fuse.SetAttrInCommon{InHeader: h, Valid: fuse.FATTR_MODE, Mode: 0o600}}
			return l.m.SetAttr(nil, &in, &fuse.AttrOut{})
		}
		remove := func() fuse.Status { return l.m.RemoveXAttr(nil, &h, aclAccess) }
		l.stat()
		l.ask("the first time", false, 1)
		for _, one := range []struct {
			what  string
			do    func() fuse.Status
			there bool
		}{{"set", set, true}, {"chmod", chmod, true}, {"removed", remove, false}} {
			if got := one.do(); !got.Ok() {
				t.Errorf("%s: %v", one.what, got)
			}
			l.fs.n = 0
			l.ask(one.what, one.there, 1)
			l.ask(one.what+", again", one.there, 0)
			l.m.nodes.get(h.NodeId).relisted()
			l.fs.during = func() {
				l.fs.during = nil
				one.do()
			}
			l.m.GetXAttr(nil, &h, aclAccess, nil) // of before or after
			l.fs.n = 0
			l.ask(one.what+" while it was asked for", one.there, 1)
		}
	})
}

// TestListsNotKept: nothing is kept where attributes are not (noac), and no list that is long.
func TestListsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newListed(t, Times{})
		l.stat()
		l.ask("noac", false, 1)
		l.ask("noac, again", false, 1)
		l = newListed(t, DefaultTimes)
		long := aclOf(1)
		for uid := uint32(2); len(long)*aclEntrySize <= maxKeptLists; uid++ {
			long = append(long, vfs.ACLEntry{Tag: vfs.ACLUser, ID: uid, Perm: 4})
		}
		l.set(long)
		l.stat()
		l.ask("a long list", true, 1)
		l.ask("a long list, again", true, 1)
	})
}
