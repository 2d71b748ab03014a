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

// TestACL: an access control list is not copied, is counted, and does not widen the
// rights of the group.
func TestACL(t *testing.T) {
	base := []vfs.ACLEntry{entry(vfs.ACLUserObj, 0, 6), entry(vfs.ACLGroupObj, 0, 4), entry(vfs.ACLOther, 0, 0)}
	with := func(e ...vfs.ACLEntry) []vfs.ACLEntry { return append(base[:len(base):len(base)], e...) }
	named := with(entry(vfs.ACLUser, 1000, 6), entry(vfs.ACLMask, 0, 6))
	for _, c := range []struct {
		name string
		typ  vfs.Type
		acl  vfs.ACL
		mode uint32
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
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		from := src.make("x", vfs.CreateHow{Type: c.typ, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o640}})
		if len(c.acl.Access) > 0 {
			if err := src.fs.(vfs.ACLer).SetACL(t.Context(), from.Handle, c.acl); err != nil {
				t.Fatal(err)
			}
			from = src.source("x")
		}
		var lost Lost
		var err error
		switch c.typ {
		case vfs.TypeDir:
			made := dst.make("x", vfs.CreateHow{Type: vfs.TypeDir})
			o, want, acl := options(t), from.Attr, false
			if want.Mode, acl, err = o.DirMode(t.Context(), &from); err == nil {
				_, lost, err = SetAttrs(t.Context(), dst.fs, made.Handle, &want, &made.Attr, o.Owners)
			}
			lost.ACL = acl
		case vfs.TypeReg:
			var res Result
			res, err = File(t.Context(), from, dst.target("x"), options(t))
			lost = res.Lost
		default:
			var res Result
			res, err = Node(t.Context(), from, dst.target("x"), options(t))
			lost = res.Lost
		}
		if got := dst.source("x").Attr.Mode; err != nil || got != c.mode || lost != (Lost{ACL: c.lost}) {
			t.Errorf("%s: the source's mode is %o, the copy's %o, want %o; lost %+v, %v", c.name, from.Attr.Mode, got, c.mode, lost, err)
		}
	}
}

// TestACLIsAskedForOnce: not where the mode gives the group nothing, and only once
// where there are none.
func TestACLIsAskedForOnce(t *testing.T) {
	for _, supported := range []bool{true, false} {
		for _, mode := range []uint32{0o644, 0o604} {
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
			want := map[bool]map[uint32]int{true: {0o644: 5}, false: {0o644: 1}}[supported][mode]
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
