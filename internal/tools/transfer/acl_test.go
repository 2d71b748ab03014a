package transfer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

func entry(tag vfs.ACLTag, id, perm uint32) vfs.ACLEntry {
	return vfs.ACLEntry{Tag: tag, ID: id, Perm: perm}
}

// TestACL: an access control list is copied. Where the destination has none, it is counted, and
// does not widen the rights of the group.
func TestACL(t *testing.T) {
	base := []vfs.ACLEntry{entry(vfs.ACLUserObj, 0, 6), entry(vfs.ACLGroupObj, 0, 4), entry(vfs.ACLOther, 0, 0)}
	with := func(e ...vfs.ACLEntry) []vfs.ACLEntry { return append(base[:len(base):len(base)], e...) }
	named := with(entry(vfs.ACLUser, 1000, 6), entry(vfs.ACLMask, 0, 6))
	for _, c := range []struct {
		name string
		typ  vfs.Type
		acl  vfs.ACL
		mode uint32 // without the list
		lost bool
	}{
		{"none", vfs.TypeReg, vfs.ACL{}, 0o640, false},
		{"a user", vfs.TypeReg, vfs.ACL{Access: named}, 0o640, true},
		{"a group", vfs.TypeReg, vfs.ACL{Access: with(entry(vfs.ACLGroup, 1000, 7), entry(vfs.ACLMask, 0, 7))}, 0o640, true},
		{"a mask that is narrower than the group", vfs.TypeReg,
			vfs.ACL{Access: with(entry(vfs.ACLUser, 1000, 6), entry(vfs.ACLMask, 0, 2))}, 0o600, true},
		{"a mask alone", vfs.TypeReg, vfs.ACL{Access: with(entry(vfs.ACLMask, 0, 7))}, 0o640, false},
		{"a pipe", vfs.TypeFIFO, vfs.ACL{Access: named}, 0o640, true},
		{"a directory", vfs.TypeDir, vfs.ACL{Access: named}, 0o640, true},
		{"a default list", vfs.TypeDir, vfs.ACL{Access: base, Default: named}, 0o640, true},
	} {
		for _, holds := range []bool{true, false} {
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
			from := src.make("x", vfs.CreateHow{Type: c.typ, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o640}})
			if len(c.acl.Access) > 0 {
				if err := src.fs.(vfs.ACLer).SetACL(t.Context(), from.Handle, c.acl); err != nil {
					t.Fatal(err)
				}
				from = src.source("x")
			}
			to := dst.target("x")
			mode, want := from.Attr.Mode, Lost{}
			if !holds {
				to.FS, mode, want.ACL = &listless{dst.fs, new(hooks)}, c.mode, c.lost
			}
			lost, err := copied(t, from, dst, to)
			if got := dst.source("x").Attr.Mode; err != nil || got != mode || lost != want {
				t.Errorf("%s, kept %v: the source's mode is %o, the copy's %o, want %o; lost %+v, %v", c.name, holds, from.Attr.Mode, got, mode, lost, err)
			}
			if a, b := src.acl("x"), dst.acl("x"); holds && !SameLists(a, b) {
				t.Errorf("%s: the copy has the lists\n%+v, want\n%+v", c.name, b, a)
			}
		}
	}
}

// copied copies from, and says what the copy lacks.
func copied(t *testing.T, from Source, dst *end, to Target) (Lost, error) {
	t.Helper()
	o := options(t)
	o.Owners = new(Owners)
	switch from.Attr.Type {
	case vfs.TypeDir:
		made := dst.make("x", vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o700}})
		l, err := o.DirLists(t.Context(), &from)
		if err != nil {
			return Lost{}, err
		}
		_, lost, err := o.SetAll(t.Context(), to.FS, made.Handle, &from.Attr, &made.Attr, &l, to.lists())
		return lost, err
	case vfs.TypeReg:
		res, err := File(t.Context(), from, to, o)
		return res.Lost, err
	}
	res, err := Node(t.Context(), from, to, o)
	return res.Lost, err
}

// acl are the lists of what is called name.
func (e *end) acl(name string) vfs.ACL {
	e.t.Helper()
	acl, err := e.fs.(vfs.ACLer).ACL(context.Background(), e.source(name).Handle)
	if err != nil {
		e.t.Fatal(err)
	}
	return acl
}

// TestNobodyGetsMore: before each call to the destination, and in the end, no caller has a right
// to what is being made that it does not have to the source: with and without lists, below a
// directory that gives lists to what is made in it, and where the list is refused.
func TestNobodyGetsMore(t *testing.T) {
	named := []vfs.ACLEntry{
		entry(vfs.ACLUserObj, 0, 6), entry(vfs.ACLUser, 1000, 6), entry(vfs.ACLGroupObj, 0, 4), entry(vfs.ACLGroup, 60, 2),
		entry(vfs.ACLMask, 0, 6), entry(vfs.ACLOther, 0, 0),
	}
	denied := []vfs.ACLEntry{
		entry(vfs.ACLUserObj, 0, 6), entry(vfs.ACLUser, 1000, 0), entry(vfs.ACLGroupObj, 0, 4), entry(vfs.ACLGroup, 60, 2),
		entry(vfs.ACLMask, 0, 6), entry(vfs.ACLOther, 0, 7),
	}
	masked := []vfs.ACLEntry{ // the mode is 604, as if nobody were named
		entry(vfs.ACLUserObj, 0, 6), entry(vfs.ACLUser, 1000, 7), entry(vfs.ACLGroupObj, 0, 0), entry(vfs.ACLGroup, 60, 7),
		entry(vfs.ACLMask, 0, 0), entry(vfs.ACLOther, 0, 4),
	}
	inherited := vfs.ACL{Access: named, Default: []vfs.ACLEntry{
		entry(vfs.ACLUserObj, 0, 7), entry(vfs.ACLUser, 2000, 7), entry(vfs.ACLGroupObj, 0, 7), entry(vfs.ACLGroup, 61, 7),
		entry(vfs.ACLMask, 0, 7), entry(vfs.ACLOther, 0, 7),
	}}
	for n := range 1 << 6 {
		typ := []vfs.Type{vfs.TypeReg, vfs.TypeFIFO}[n&1]
		list := [][]vfs.ACLEntry{nil, named, denied, masked}[n>>1&3]
		listed, inherits, refuses, default0 := list != nil, n&8 != 0, n&16 != 0, n&32 != 0
		if default0 {
			typ = vfs.TypeDir
		}
		var out hooks
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: out.fault})
		from := src.make("x", vfs.CreateHow{Type: typ, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o664}})
		src.set(from.Handle, vfs.SetAttr{Valid: vfs.MaskUID | vfs.MaskGID, UID: 500, GID: 50})
		if listed {
			if err := src.fs.(vfs.ACLer).SetACL(t.Context(), from.Handle, vfs.ACL{Access: list}); err != nil {
				t.Fatal(err)
			}
		}
		if inherits {
			if err := dst.fs.(vfs.ACLer).SetACL(t.Context(), dst.root, inherited); err != nil {
				t.Fatal(err)
			}
		}
		from = src.source("x")
		to := dst.target("x")
		to.Listed = func() bool { return inherits }
		if refuses {
			to.FS = refusing{dst.fs}
		}
		what := fmt.Sprintf("%v, list %v, inherits %v, refused %v", typ, list, inherits, refuses)
		looking := false
		look := func(op string) {
			if !looking {
				looking = true
				moreRights(t, what+", before "+op, from, dst)
				looking = false
			}
		}
		out.before = look
		lost, err := copied(t, from, dst, to)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		look("the end")
		if want := listed && refuses; lost.ACL != want {
			t.Errorf("%s: lost %+v", what, lost)
		}
		if !refuses && !SameLists(dst.acl("x"), src.acl("x")) {
			t.Errorf("%s: the copy has the lists\n%+v, want\n%+v", what, dst.acl("x"), src.acl("x"))
		}
	}
}

// refusing lets nobody set a list.
type refusing struct{ vfs.FS }

func (f refusing) ACL(ctx context.Context, h vfs.Handle) (vfs.ACL, error) {
	return f.FS.(vfs.ACLer).ACL(ctx, h)
}
func (refusing) SetACL(context.Context, vfs.Handle, vfs.ACL) error { return vfs.ErrPerm }

// boasting claims to have set a list.
type boasting struct{ refusing }

func (boasting) SetACL(context.Context, vfs.Handle, vfs.ACL) error { return nil }

// TestListNotSet: a list that a server claims to have set, and has not, is lost. So are the group's
// rights, which could be those of a list that nobody knows.
func TestListNotSet(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("f", pattern(10))
	list := []vfs.ACLEntry{
		entry(vfs.ACLUserObj, 0, 6), entry(vfs.ACLUser, 1000, 6), entry(vfs.ACLGroupObj, 0, 4), entry(vfs.ACLMask, 0, 6), entry(vfs.ACLOther, 0, 4),
	}
	if err := src.fs.(vfs.ACLer).SetACL(t.Context(), src.source("f").Handle, vfs.ACL{Access: list}); err != nil {
		t.Fatal(err)
	}
	to := dst.target("f")
	to.FS = boasting{refusing{dst.fs}}
	res, err := File(t.Context(), src.source("f"), to, options(t))
	if got := dst.source("f").Attr.Mode; err != nil || res.Lost != (Lost{ACL: true, Mode: true}) || got != 0o604 {
		t.Errorf("mode %o, lost %+v, %v", got, res.Lost, err)
	}
}

// moreRights fails the test for rights to anything in dst that its callers do not have to from.
func moreRights(t *testing.T, what string, from Source, dst *end) {
	t.Helper()
	const all = vfs.AccessRead | vfs.AccessModify | vfs.AccessExecute | vfs.AccessLookup
	for _, name := range dst.names() {
		h := dst.source(name).Handle
		for _, c := range []*vfs.Caller{
			{UID: 1000, GID: 1000}, {UID: 2000, GID: 2000}, {UID: 3000, GID: 50}, {UID: 3000, GID: 60}, {UID: 3000, GID: 61}, {UID: 3000, GID: 0}, {UID: 3000, GID: 3000},
		} {
			may, _, err := from.FS.As(c).Access(context.Background(), from.Handle, all)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := dst.fs.As(c).Access(context.Background(), h, all)
			if err != nil {
				t.Fatal(err)
			}
			if got&^may != 0 {
				t.Errorf("%s: %d of group %d has the rights %#x to %s, and %#x to the source", what, c.UID, c.GID, got, name, may)
			}
		}
	}
}

// TestACLIsAskedForOnce: not where the mode gives nobody but the owner anything, and only once
// where there are none.
func TestACLIsAskedForOnce(t *testing.T) {
	for _, supported := range []bool{true, false} {
		for _, mode := range []uint32{0o644, 0o604, 0o600} {
			var in hooks
			src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{})
			o := options(t)
			in.start(0, nil)
			for i := range 5 {
				src.file(fmt.Sprint(i), pattern(10))
				src.set(src.source(fmt.Sprint(i)).Handle, vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode})
				from := src.source(fmt.Sprint(i))
				if !supported {
					from.FS = &listless{from.FS, &in}
				}
				if res, err := File(t.Context(), from, dst.target(fmt.Sprint(i)), o); err != nil || res.Lost.ACL {
					t.Fatal(res, err)
				}
			}
			want := map[bool]map[uint32]int{true: {0o644: 5, 0o604: 5}, false: {0o644: 1, 0o604: 1}}[supported][mode]
			if n := in.count("acl"); n != want {
				t.Errorf("lists: %v, mode %o: asked %d times, want %d", supported, mode, n, want)
			}
		}
	}
}

// listless is a file system without access control lists.
type listless struct {
	vfs.FS
	k *hooks
}

func (f *listless) ACL(ctx context.Context, h vfs.Handle) (vfs.ACL, error) {
	_ = f.k.fault(ctx, "acl", h)
	return vfs.ACL{}, vfs.ErrNotSupp
}

func (f *listless) SetACL(context.Context, vfs.Handle, vfs.ACL) error { return vfs.ErrNotSupp }

// TestACLFromForeignServers: a server that does not know the question, and says so in
// its own way or not at all, has no lists; it is waited for once.
func TestACLFromForeignServers(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error // nil: no answer
		asked int   // about five files
		want  error
	}{
		{"silent", nil, 1, nil},
		{"not supported", vfs.ErrNotSupp, 1, nil},
		{"server fault", vfs.ErrServerFault, 5, nil},
		{"no right to ask", vfs.ErrAccess, 5, nil},
		{"a disk that fails", vfs.ErrIO, 1, vfs.ErrIO},
	} {
		synctest.Test(t, func(t *testing.T) {
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
			o, asked, begun := options(t), 0, time.Now()
			for i := range 5 {
				from := src.file(fmt.Sprint(i), pattern(10))
				from.FS = &foreign{from.FS, c.err, &asked}
				_, err := File(t.Context(), from, dst.target(fmt.Sprint(i)), o)
				if !errors.Is(err, c.want) {
					t.Errorf("%s: %v", c.name, err)
				}
				if err != nil {
					break
				}
			}
			if took := time.Since(begun); asked != c.asked || took > firstList {
				t.Errorf("%s: asked %d times in %v, want %d times", c.name, asked, took, c.asked)
			}
		})
	}
}

// foreign answers questions for lists with an error, or not.
type foreign struct {
	vfs.FS
	err   error
	asked *int
}

func (f *foreign) ACL(ctx context.Context, _ vfs.Handle) (vfs.ACL, error) {
	*f.asked++
	if f.err == nil {
		<-ctx.Done()
		return vfs.ACL{}, ctx.Err()
	}
	return vfs.ACL{}, f.err
}

func (f *foreign) SetACL(context.Context, vfs.Handle, vfs.ACL) error { return vfs.ErrNotSupp }
