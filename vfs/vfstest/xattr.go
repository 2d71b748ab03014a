package vfstest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

// xattrTests are for an FS that is a vfs.Xattrer. They are skipped for others, and where the
// file system below has no extended attributes.
var xattrTests = []test{
	{"set", func(e *env) {
		e.xattrer()
		for _, h := range []vfs.Handle{e.mkfile(e.dir, "file", "content"), e.mkdir(e.dir, "dir")} {
			e.wantXattrs(h)
			e.setXattr(h, "user.a", "one")
			e.setXattr(h, "user.empty", "")
			e.setXattr(h, "user.Ä b", "\x00\xff\n")
			e.wantXattrs(h, "user.a=one", "user.empty=", "user.Ä b=\x00\xff\n")
			e.setXattr(h, "user.a", "another")
			e.wantXattrs(h, "user.a=another", "user.empty=", "user.Ä b=\x00\xff\n")
			e.ok(e.xattrer().RemoveXattr(e.ctx, h, "user.empty"))
			e.wantXattrs(h, "user.a=another", "user.Ä b=\x00\xff\n")
		}
	}},
	{"value-is-copied", func(e *env) {
		x, h := e.xattrer(), e.mkfile(e.dir, "file", "")
		value := []byte("value")
		e.ok(x.SetXattr(e.ctx, h, "user.a", value, vfs.XattrEither))
		value[0] = 'X'
		got, err := x.Xattr(e.ctx, h, "user.a")
		e.ok(err)
		got[1] = 'X'
		e.wantXattrs(h, "user.a=value")
	}},
	{"create-replace", func(e *env) {
		x, h := e.xattrer(), e.mkfile(e.dir, "file", "")
		e.wantStatus(x.SetXattr(e.ctx, h, "user.a", []byte("1"), vfs.XattrReplace), vfs.ErrNoXattr)
		e.wantXattrs(h)
		e.ok(x.SetXattr(e.ctx, h, "user.a", []byte("2"), vfs.XattrCreate))
		e.wantStatus(x.SetXattr(e.ctx, h, "user.a", []byte("3"), vfs.XattrCreate), vfs.ErrExist)
		e.wantXattrs(h, "user.a=2")
		e.ok(x.SetXattr(e.ctx, h, "user.a", []byte("4"), vfs.XattrReplace))
		e.wantXattrs(h, "user.a=4")
		e.wantStatus(x.SetXattr(e.ctx, h, "user.a", []byte("5"), vfs.XattrReplace+1), vfs.ErrInval)
		e.wantXattrs(h, "user.a=4")
	}},
	{"missing", func(e *env) {
		x, h := e.xattrer(), e.mkfile(e.dir, "file", "")
		e.setXattr(h, "user.a", "value")
		_, err := x.Xattr(e.ctx, h, "user.b")
		e.wantStatus(err, vfs.ErrNoXattr)
		e.wantStatus(x.RemoveXattr(e.ctx, h, "user.b"), vfs.ErrNoXattr)
		e.ok(x.RemoveXattr(e.ctx, h, "user.a"))
		_, err = x.Xattr(e.ctx, h, "user.a")
		e.wantStatus(err, vfs.ErrNoXattr)
	}},
	{"names", func(e *env) {
		x, h := e.xattrer(), e.mkfile(e.dir, "file", "")
		for name, want := range map[string]vfs.Status{
			"": vfs.ErrNotSupp, "a": vfs.ErrNotSupp, "user": vfs.ErrNotSupp, "User.a": vfs.ErrNotSupp,
			"security.selinux": vfs.ErrNotSupp, "system.posix_acl_access": vfs.ErrNotSupp, "system.nfs4_acl": vfs.ErrNotSupp,
			"user.": vfs.ErrInval, "user.a\x00b": vfs.ErrInval,
			vfs.XattrUser + strings.Repeat("n", vfs.MaxXattrName+1-len(vfs.XattrUser)): vfs.ErrNameTooLong,
		} {
			_, err := x.Xattr(e.ctx, h, name)
			e.wantStatus(err, want)
			e.wantStatus(x.SetXattr(e.ctx, h, name, []byte("value"), vfs.XattrEither), want)
			e.wantStatus(x.RemoveXattr(e.ctx, h, name), want)
		}
		e.wantXattrs(h)
		longest := vfs.XattrUser + strings.Repeat("n", vfs.MaxXattrName-len(vfs.XattrUser))
		e.setXattr(h, longest, "value")
		e.wantXattrs(h, longest+"=value")
	}},
	{"large", func(e *env) {
		// The largest value is taken or has no room; a larger one never is.
		x, h := e.xattrer(), e.mkfile(e.dir, "file", "")
		e.setXattr(h, "user.b", "value")
		e.wantStatus(x.SetXattr(e.ctx, h, "user.b", make([]byte, vfs.MaxXattr+1), vfs.XattrEither), vfs.ErrXattr2Big)
		e.wantXattrs(h, "user.b=value")
		largest := bytes.Repeat([]byte("0123456789abcdef"), vfs.MaxXattr/16)
		if err := x.SetXattr(e.ctx, h, "user.a", largest, vfs.XattrEither); err != nil {
			e.wantStatus(err, vfs.ErrNoSpace)
			e.wantXattrs(h, "user.b=value")
			return
		}
		e.wantXattrs(h, "user.a="+string(largest), "user.b=value")
	}},
	{"many", func(e *env) {
		// As many names are listed as were taken, also where there is no room for more.
		x, h := e.xattrer(), e.mkfile(e.dir, "file", "")
		var all []string
		for n := range 2 * vfs.MaxXattrNames / vfs.MaxXattrName {
			name := fmt.Sprintf("user.%0*d", vfs.MaxXattrName-len(vfs.XattrUser), n)
			if err := x.SetXattr(e.ctx, h, name, nil, vfs.XattrEither); err != nil {
				e.wantStatus(err, vfs.ErrNoSpace, vfs.ErrXattr2Big)
				break
			}
			all = append(all, name)
		}
		got, err := x.Xattrs(e.ctx, h)
		if err != nil {
			e.wantStatus(err, vfs.ErrXattr2Big)
			return
		}
		if slices.Sort(got); !slices.Equal(got, all) {
			e.Errorf("%d names are listed, %d were set", len(got), len(all))
		}
	}},
	{"changes", func(e *env) {
		x, h := e.xattrer(), e.mkfile(e.dir, "file", "content")
		e.setXattr(h, "user.gone", "value")
		e.age(h)
		for what, change := range map[string]func() error{
			"set":    func() error { return x.SetXattr(e.ctx, h, "user.a", []byte("value"), vfs.XattrEither) },
			"remove": func() error { return x.RemoveXattr(e.ctx, h, "user.gone") },
		} {
			before := e.attr(h)
			e.tick(&before)
			e.ok(change())
			if e.attr(h).Change == before.Change {
				e.Errorf("%s: the file has not changed, to those who look at Change", what)
			}
		}
		e.wantUnmodified(h)
		e.wantContent(h, "content")
	}},
	{"renamed", func(e *env) {
		e.xattrer()
		e.setXattr(e.mkfile(e.dir, "file", ""), "user.a", "value")
		e.setXattr(e.mkfile(e.dir, "new", ""), "user.a", "other")
		_, _, err := e.fs.Rename(e.ctx, e.dir, "file", e.dir, "new")
		e.ok(err)
		e.wantXattrs(e.mustLookup(e.dir, "new"), "user.a=value")
	}},
	{"linked", func(e *env) {
		e.xattrer()
		h := e.mkfile(e.dir, "file", "")
		e.setXattr(h, "user.a", "value")
		e.link(h, e.dir, "link")
		e.setXattr(e.mustLookup(e.dir, "link"), "user.b", "")
		e.wantXattrs(e.mustLookup(e.dir, "file"), "user.a=value", "user.b=")
	}},
	{"other-types", func(e *env) {
		// A symbolic link does not lead to its target's attributes.
		x, h := e.xattrer(), e.mkfile(e.dir, "file", "")
		e.setXattr(h, "user.a", "value")
		for _, other := range []vfs.Handle{e.symlink(e.dir, "link", "file"), e.create(e.dir, "fifo", how(vfs.TypeFIFO, 0o666))} {
			names, err := x.Xattrs(e.ctx, other)
			if err != nil || len(names) > 0 { // of users there are none, but there may be others
				e.wantStatus(err, vfs.ErrNotSupp)
			}
			_, err = x.Xattr(e.ctx, other, "user.a")
			e.wantStatus(err, vfs.ErrNotSupp)
			e.wantStatus(x.SetXattr(e.ctx, other, "user.a", nil, vfs.XattrEither), vfs.ErrNotSupp)
			e.wantStatus(x.RemoveXattr(e.ctx, other, "user.a"), vfs.ErrNotSupp)
		}
		e.wantXattrs(h, "user.a=value")
	}},
	{"stale", func(e *env) {
		x, h := e.xattrer(), e.mkfile(e.dir, "file", "")
		e.setXattr(h, "user.a", "value")
		e.remove(e.dir, "file", false)
		for _, gone := range []vfs.Handle{h, {}} {
			want := []vfs.Status{vfs.ErrStale}
			if gone.IsZero() {
				want = append(want, vfs.ErrBadHandle)
			}
			_, err := x.Xattrs(e.ctx, gone)
			e.wantStatus(err, want...)
			_, err = x.Xattr(e.ctx, gone, "user.a")
			e.wantStatus(err, want...)
			e.wantStatus(x.SetXattr(e.ctx, gone, "user.a", nil, vfs.XattrEither), want...)
			e.wantStatus(x.RemoveXattr(e.ctx, gone, "user.a"), want...)
		}
	}},
	{"survives-restart", func(e *env) {
		e.xattrer()
		h := e.mkfile(e.dir, "file", "")
		e.setXattr(h, "user.a", "value")
		e.restart()
		e.wantXattrs(h, "user.a=value")
	}},
	{"rights", xattrRights},
	{"concurrent", func(e *env) {
		// A value that is read is one of those that were set, as a whole.
		x, h := e.xattrer(), e.mkfile(e.dir, "file", "")
		e.setXattr(h, "user.a", strings.Repeat("a", 500))
		e.together(func(worker int) error {
			for range 20 {
				if err := x.SetXattr(e.ctx, h, "user.a", bytes.Repeat([]byte{'a' + byte(worker)}, 500+worker), vfs.XattrEither); err != nil {
					return err
				}
				got, err := x.Xattr(e.ctx, h, "user.a")
				if err != nil {
					return err
				}
				if n := len(got) - 500; n < 0 || n > workers || !bytes.Equal(got, bytes.Repeat([]byte{'a' + byte(n)}, len(got))) {
					return errors.New("a value that nobody has set")
				}
			}
			return nil
		})
	}},
	{"cancelled", func(e *env) {
		x, h, ctx := e.xattrer(), e.mkfile(e.dir, "file", ""), e.ended()
		e.setXattr(h, "user.a", "value")
		_, err := x.Xattrs(ctx, h)
		e.cancelled("xattrs", err)
		_, err = x.Xattr(ctx, h, "user.a")
		e.cancelled("xattr", err)
		e.cancelled("setxattr", x.SetXattr(ctx, h, "user.a", nil, vfs.XattrEither))
		e.cancelled("removexattr", x.RemoveXattr(ctx, h, "user.a"))
		e.wantXattrs(h, "user.a=value")
	}},
}

// xattrRights: who may read an object reads its attributes, and who may write to it changes them.
func xattrRights(e *env) {
	e.xattrer()
	if !e.config.Callers {
		e.Skip("this file system acts for one caller only")
	}
	dir := e.public(0o777)
	h := e.owned(dir, "file", fileHow(0o640))
	e.setXattr(h, "user.a", "value")
	as := func(c *vfs.Caller) vfs.Xattrer {
		x, ok := vfs.As[vfs.Xattrer](e.fs.As(c))
		if !ok {
			e.Fatal("the view of another caller has no extended attributes")
		}
		return x
	}
	for _, tt := range []struct {
		c           *vfs.Caller
		read, write bool
	}{{owner, true, true}, {member, true, false}, {other, false, false}} {
		got, err := as(tt.c).Xattrs(e.ctx, h)
		if e.ok(err); !slices.Equal(got, []string{"user.a"}) {
			e.Errorf("caller %d is shown %q", tt.c.UID, got)
		}
		_, err = as(tt.c).Xattr(e.ctx, h, "user.a")
		e.allowed(fmt.Sprintf("caller %d reads", tt.c.UID), err, tt.read)
		e.allowed(fmt.Sprintf("caller %d sets", tt.c.UID), as(tt.c).SetXattr(e.ctx, h, "user.b", nil, vfs.XattrEither), tt.write)
		e.allowed(fmt.Sprintf("caller %d removes", tt.c.UID), as(tt.c).RemoveXattr(e.ctx, h, "user.b"), tt.write)
	}
	e.wantXattrs(h, "user.a=value")
	e.set(dir, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o1777})
	e.wantStatus(as(other).SetXattr(e.ctx, dir, "user.a", nil, vfs.XattrEither), vfs.ErrPerm, vfs.ErrAccess)
	e.wantXattrs(dir)
}

// xattrer is the power of e.fs, or the end of the test.
func (e *env) xattrer() vfs.Xattrer {
	e.Helper()
	x, ok := vfs.As[vfs.Xattrer](e.fs)
	if !ok {
		e.Skip("this file system has no extended attributes")
	}
	if err := x.SetXattr(e.ctx, e.dir, "user.vfstest", nil, vfs.XattrEither); err != nil {
		if s, _ := vfs.StatusOf(err); s == vfs.ErrNotSupp {
			e.Skip("what lies below has no extended attributes")
		}
		e.Fatalf("setxattr: %v", err)
	}
	return x
}

func (e *env) setXattr(h vfs.Handle, name, value string) {
	e.Helper()
	e.ok(e.xattrer().SetXattr(e.ctx, h, name, []byte(value), vfs.XattrEither))
}

// wantXattrs ends the test unless h has these attributes ("user.name=value"), and no more.
func (e *env) wantXattrs(h vfs.Handle, want ...string) {
	e.Helper()
	x, ok := vfs.As[vfs.Xattrer](e.fs)
	if !ok {
		e.Fatal("the power is gone")
	}
	names, err := x.Xattrs(e.ctx, h)
	e.ok(err)
	got := make([]string, 0, len(names))
	for _, name := range names {
		value, err := x.Xattr(e.ctx, h, name)
		e.ok(err)
		got = append(got, name+"="+string(value))
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		e.Fatalf("extended attributes %.300q, want %.300q", got, want)
	}
}
