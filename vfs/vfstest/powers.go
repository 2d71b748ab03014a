package vfstest

import (
	"errors"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// PowersConfig says of which stack the powers are proved.
type PowersConfig struct {
	// New makes the stack over a file system, and returns the view of its superuser,
	// or of the process's own user. It is cleaned up by t.Cleanup. Its top directory
	// is that of the file system.
	New func(t *testing.T, over vfs.FS) vfs.FS
	// Bottom makes what is at the end, which the suite watches; nil: files in memory.
	Bottom func(t *testing.T) vfs.FS
}

// RunPowers proves, as subtests of t, every power that vfs.As finds in a stack and in
// its open files, by its effect on the file system below. It runs once over a file
// system with all powers, where no change is stable before it is synced, and once over
// one with none, where every change is stable. The group "powers" of [Run] proves what
// can be seen without access to the file system below.
func RunPowers(t *testing.T, c PowersConfig) {
	for _, able := range []bool{true, false} {
		name := map[bool]string{true: "over-all-powers", false: "over-none"}[able]
		t.Run(name, func(t *testing.T) {
			var inner vfs.FS = memfs.New(memfs.Options{Mode: 0o777}) // for the process, whatever its user
			if c.Bottom != nil {
				inner = c.Bottom(t)
			}
			b := newBottom(inner, able, func() (*os.File, error) { return os.CreateTemp(t.TempDir(), "") })
			x := &fixture{group: t, fs: c.New(t, b), below: b}
			var err error
			if x.root, _, err = x.fs.Root(t.Context()); err != nil {
				t.Fatalf("root: %v", err)
			}
			for _, test := range powersTests {
				t.Run(test.name, func(t *testing.T) { test.run(newEnv(t, x, test.name)) })
			}
		})
	}
}

// powersTests prove one power each, and are skipped where there is none.
var powersTests = []test{
	{"syncer", powersSyncer},
	{"putter", func(e *env) {
		// The file is there, with all its bytes.
		p := power[vfs.Putter](e, e.fs)
		h, _, err := p.Put(e.ctx, e.dir, "file", 0o640, []byte("content"))
		e.can(err)
		e.same(e.mustLookup(e.dir, "file"), h)
		e.wantContent(h, "content")
		if e.below != nil && e.contentBelow("file") != "content" {
			e.Error("the bytes have not come to the bottom")
		}
		_, _, err = p.Put(e.ctx, e.dir, "file", 0o640, nil)
		e.wantStatus(err, vfs.ErrExist)
	}},
	{"maker", powersMaker},
	{"walker", powersWalker},
	{"locker", func(e *env) {
		// A lock excludes others, at the bottom too. What was written under it is
		// there for the next holder.
		l := power[vfs.Locker](e, e.fs)
		h, f := e.dirty("file", "before")
		err := l.Lock(e.ctx, h, alone(ann, 0, 0))
		if e.below != nil && !e.below.able && errors.Is(err, syscall.ENOLCK) {
			e.Skip("what lies at the bottom has no locks, and its server says so")
		}
		e.can(err)
		e.locked(h, alone(ben, 0, 1))
		if e.below != nil && e.below.able {
			_, free, err := power[vfs.Locker](e, e.below).TestLock(e.ctx, e.under("file"), alone(ben, 0, 1))
			if e.ok(err); free {
				e.Error("the file is not locked at the bottom")
			}
		}
		e.unstable(f, "behind")
		e.unlock(h, ann, 0, 0)
		e.wantFree(h, alone(ben, 0, 1))
		if e.below != nil && e.contentBelow("file") != "behind" {
			e.Error("what was written under the lock is not seen by who takes it next")
		}
	}},
	{"acler", func(e *env) {
		// A list is what was set, at the bottom too, and the mode follows.
		p := power[vfs.ACLer](e, e.fs)
		h, _ := e.dirty("file", "content")
		if e.below != nil {
			if _, err := e.below.ACL(e.ctx, e.under("file")); err != nil {
				e.Skip("what lies at the bottom has no access control lists")
			}
		}
		_, err := p.ACL(e.ctx, h)
		e.can(err)
		want := vfs.ACL{Access: aclOf(6, 4, 0, aclUser(1000, 4), aclMasked(6))}
		e.can(p.SetACL(e.ctx, h, want))
		if e.below != nil && e.contentBelow("file") != "content" {
			e.Error("what was written before may be refused behind it")
		}
		e.wantACL(h, want)
		if mode := e.attr(h).Mode; mode != 0o660 {
			e.Errorf("mode %o, want 660", mode)
		}
		if e.below == nil {
			return
		}
		got, err := e.below.ACL(e.ctx, e.under("file"))
		if e.ok(err); !sameList(got.Access, want.Access) {
			e.Errorf("at the bottom: %+v, want %+v", got, want)
		}
	}},
	{"xattrer", func(e *env) {
		// An attribute is what was set, at the bottom too.
		p := power[vfs.Xattrer](e, e.fs)
		h, _ := e.dirty("file", "content")
		e.can(p.SetXattr(e.ctx, h, "user.a", []byte("value"), vfs.XattrCreate))
		e.wantXattrs(h, "user.a=value")
		if e.below == nil {
			return
		}
		below := power[vfs.Xattrer](e, e.below)
		got, err := below.Xattr(e.ctx, e.under("file"), "user.a")
		if e.ok(err); string(got) != "value" {
			e.Errorf("at the bottom: %q", got)
		}
		e.ok(p.RemoveXattr(e.ctx, h, "user.a"))
		if _, err = below.Xattr(e.ctx, e.under("file"), "user.a"); !errors.Is(err, vfs.ErrNoXattr) {
			e.Errorf("at the bottom, behind its removal: %v", err)
		}
	}},
	{"host-opener", func(e *env) {
		// What a descriptor reads is what the file holds.
		p := power[vfs.HostOpener](e, e.fs)
		h, _ := e.dirty("file", "content")
		self := vfs.Caller{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
		host, a, err := p.OpenHost(e.ctx, h, &vfs.HostOpen{Access: vfs.ShareRead, Trusted: true, Peer: self})
		e.can(err)
		e.wantHost(host, "content")
		e.ok(host.Close())
		if a.FileID != e.attr(h).FileID {
			e.Error("the attributes are those of another file")
		}
	}},
	{"watcher", func(e *env) {
		// A watcher knows of a change before the caller that made it has the answer.
		p := power[vfs.Watcher](e, e.fs)
		h := e.mkfile(e.dir, "file", "content")
		var told atomic.Uint32
		stop, err := p.Watch(h, func(c vfs.Change) { told.Or(uint32(c)) })
		e.can(err)
		defer func() { stop() }()
		e.set(h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600})
		if vfs.Change(told.Load())&vfs.ChangeRights == 0 {
			e.Error("the mode is another, and nobody was told")
		}
		e.link(h, e.dir, "link")
		e.remove(e.dir, "link", false)
		if vfs.Change(told.Load())&vfs.ChangeGone == 0 {
			e.Error("a name is gone, and nobody was told")
		}
		stop()
		stop = func() {}
		told.Store(0)
		e.set(h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o640})
		if told.Load() != 0 {
			e.Error("told behind the end of the watch")
		}
	}},
	{"forgetter", func(e *env) {
		// What was forgotten is found again.
		p := power[vfs.Forgetter](e, e.fs)
		e.mkfile(e.dir, "file", "content")
		p.Forget(e.dir)
		e.wantNames(e.dir, "file")
		e.wantContent(e.mustLookup(e.dir, "file"), "content")
	}},
	{"hole-seeker", func(e *env) {
		// Bytes that are not committed are no hole.
		h := e.create(e.dir, "file", fileHow(0o644))
		f := e.open(h, vfs.ShareRead|vfs.ShareWrite)
		p := power[vfs.HoleSeeker](e, f)
		const at = 1 << 20
		var w vfs.Written
		_, err := vfs.WriteFull(e.ctx, f, []byte("content"), at, vfs.Unstable, &w)
		e.ok(err)
		data, err := p.NextData(e.ctx, at)
		e.can(err)
		if data != at {
			e.Errorf("the next data behind %d is at %d", at, data)
		}
		hole, err := p.NextHole(e.ctx, at)
		if e.ok(err); hole < at+uint64(len("content")) {
			e.Errorf("a hole at %d, in what was written", hole)
		}
	}},
	{"host-filer", func(e *env) {
		// What the descriptor reads is what the file holds.
		_, f := e.dirty("file", "content")
		host, release, ok := power[vfs.HostFiler](e, f).HostFile()
		if !ok {
			if e.below != nil && e.below.able {
				e.Fatal("the power is there, and gives nothing")
			}
			e.Skip("there is no descriptor just now")
		}
		e.wantHost(host, "content")
		release()
	}},
	{"dropper", func(e *env) {
		// The call reaches the bottom, and drops no bytes that are not stable.
		_, f := e.dirty("file", "content")
		p := power[vfs.Dropper](e, f)
		e.can(p.Drop(e.ctx, 0, 0))
		if got := e.contentOf(f); got != "content" {
			e.Fatalf("the file holds %q", got)
		}
		e.commit(f)
		e.ok(p.Drop(e.ctx, 0, 0))
		if got := e.contentOf(f); got != "content" {
			e.Fatalf("the file holds %q", got)
		}
		if e.below != nil && e.below.able && e.below.dropped.Load() == 0 {
			e.Error("nobody at the bottom has heard of it")
		}
	}},
	{"appender", powersAppender},
}

// powersWalker: a walk finds what one Lookup after the other finds, and stops before what
// one does not find, or what is no way on.
func powersWalker(e *env) {
	w := power[vfs.Walker](e, e.fs)
	a := e.mkdir(e.dir, "a")
	b := e.mkdir(a, "b")
	file := e.mkfile(b, "file", "content")
	e.symlink(a, "link", "b")
	for _, tt := range []struct {
		names string
		want  int
		last  vfs.Handle
		dir   vfs.Handle
	}{
		{"a/b/file", 3, file, b},
		{"a/b", 2, b, a},
		{"a", 1, a, e.dir},
		{"a/b/none/file", 2, b, a},
		{"a/b/file/more", 3, file, b},
		{"a/link/file", 1, a, e.dir},
		{"a/link", 1, a, e.dir},
		{"a/../a", 1, a, e.dir},
		{"a/./b", 1, a, e.dir},
		{"a//b", 1, a, e.dir},
		{"none/b", 0, vfs.Handle{}, vfs.Handle{}},
		{"../a", 0, vfs.Handle{}, vfs.Handle{}},
		{strings.Repeat("x", vfs.MaxName+1) + "/b", 0, vfs.Handle{}, vfs.Handle{}},
	} {
		names := strings.Split(tt.names, "/")
		n, at := w.Walk(e.ctx, e.dir, names)
		if n != tt.want {
			e.Errorf("%.20s: %d names are found, want %d", tt.names, n, tt.want)
			continue
		}
		if n == 0 {
			continue
		}
		e.same(at.Handle, tt.last)
		e.same(at.Dir, tt.dir)
		_, attr, _, err := e.fs.Lookup(e.ctx, tt.dir, names[n-1])
		if e.ok(err); at.Name != names[n-1] || at.Attr.FileID != attr.FileID || at.Attr.Type != attr.Type || at.Attr.Valid != attr.Valid {
			e.Errorf("%s: found %+v, want %+v", tt.names, at, attr)
		}
	}
	if n, _ := w.Walk(e.ctx, file, []string{"a"}); n != 0 {
		e.Error("it walks through a file")
	}
	if n, _ := w.Walk(e.ended(), e.dir, []string{"a"}); n != 0 {
		e.Error("it walks although its context has ended")
	}
	e.dirty("written", "more than there was")
	if n, at := w.Walk(e.ctx, e.dir, []string{"written"}); n != 1 || at.Attr.Size != uint64(len("more than there was")) {
		e.Errorf("%d names are found, the last with %d bytes", n, at.Attr.Size)
	}
	e.walksAsFar(a)
}

// walksAsFar: a walk ends at a directory that its caller may not search.
func (e *env) walksAsFar(a vfs.Handle) {
	c := &vfs.Caller{UID: 1000, GID: 1000}
	e.set(e.dir, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o711})
	for mode, want := range map[uint32]int{0o711: 2, 0o700: 1} {
		e.set(a, vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode})
		as := e.fs.As(c)
		_, _, _, err := as.Lookup(e.ctx, a, "b")
		if (err == nil) != (want == 2) {
			e.Skip("NOT TESTED: callers have the rights of the process")
		}
		n, _ := power[vfs.Walker](e, as).Walk(e.ctx, e.dir, []string{"a", "b"})
		if n != want {
			e.Errorf("through a directory of mode %o %d names are found, want %d", mode, n, want)
		}
	}
}

// powersMaker: a file has no name before it is published, and then all its bytes and attributes, whatever had the name.
func powersMaker(e *env) {
	p := power[vfs.Maker](e, e.fs)
	want := vfs.Attr{
		Valid: vfs.MaskMode | vfs.MaskUID | vfs.MaskGID | vfs.MaskMtime | vfs.MaskSize,
		Mode:  0o4751, UID: 1001, GID: 1002, Mtime: time.Unix(-5, 123456789), Size: 7,
	}
	write := func(text string) vfs.Making {
		m, err := p.Make(e.ctx, e.dir, "file", &want, "")
		e.can(err)
		for off := range text { // in any order
			at := (off + 3) % len(text)
			_, err := vfs.WriteFull(e.ctx, m, []byte(text[at:at+1]), uint64(at), vfs.Unstable, new(vfs.Written))
			e.ok(err)
		}
		return m
	}
	first := write("content")
	_, _, _, err := e.fs.Lookup(e.ctx, e.dir, "file")
	e.wantStatus(err, vfs.ErrNoEnt)
	h, _, err := first.Publish(e.ctx)
	e.ok(err)
	e.ok(first.Close(e.ctx))
	e.same(e.mustLookup(e.dir, "file"), h)
	e.wantContent(h, "content")
	a := e.attr(h)
	if a.Type != vfs.TypeReg || a.Mode != want.Mode || a.UID != want.UID || a.GID != want.GID || !a.Mtime.Equal(want.Mtime) || a.Size != 7 {
		e.Errorf("%+v, want %+v", a, want)
	}
	e.ok(write("another").Close(e.ctx))
	e.wantContent(e.mustLookup(e.dir, "file"), "content")

	_, _, err = p.MakeLink(e.ctx, e.dir, "file", "target", &want)
	e.ok(err)
	h = e.mustLookup(e.dir, "file")
	target, a, err := e.fs.Readlink(e.ctx, h)
	if e.ok(err); target != "target" || e.attr(h).Type != vfs.TypeSymlink || !a.Mtime.Equal(want.Mtime) {
		e.Errorf("a link to %q: %+v", target, a)
	}
	again := write("replace")
	_, _, err = again.Publish(e.ctx)
	e.ok(err)
	e.ok(again.Close(e.ctx))
	e.wantContent(e.mustLookup(e.dir, "file"), "replace")

	e.mkdir(e.dir, "dir")
	_, err = p.Make(e.ctx, e.dir, "dir", &want, "")
	e.wantStatus(err, vfs.ErrIsDir)
	_, _, err = p.MakeLink(e.ctx, e.dir, "dir", "target", &want)
	e.wantStatus(err, vfs.ErrIsDir)
}

// unproved are the powers without a test of their own, each with the reason.
var unproved = map[string]string{
	"Closer": "whoever has made a stack closes it, and everything with it",
	"Near":   "a wish about time: nothing else comes of it",
	"Passer": "it changes by which layer a question is answered, and no answer: the suite over a wrapper sees each",
	"Making": "the test of the power Maker proves it",
	"Keeper": "what is asked past it differs only where others have changed something, which its own tests do",
}

// power is a power of v, or the end of the test: there is none.
func power[T any](e *env, v any) T {
	e.Helper()
	p, ok := vfs.As[T](v)
	if !ok {
		e.Skipf("there is no %T", &p)
	}
	return p
}

// can ends the test if err is not nil. It is a skip if err is ErrNotSupp and the file
// system at the bottom is not known to have the power, else a failure.
func (e *env) can(err error) {
	e.Helper()
	switch s, _ := vfs.StatusOf(err); {
	case err == nil:
	case s == vfs.ErrNotSupp && (e.below == nil || !e.below.able):
		e.Skip("what lies below cannot do it")
	default:
		e.Fatalf("the power is there, and fails: %v", err)
	}
}

// under is the object at the bottom that the names lead to.
func (e *env) under(names ...string) vfs.Handle {
	e.Helper()
	h, _, err := e.below.all.Root(e.ctx)
	e.ok(err)
	for _, name := range append([]string{path.Base(e.Name())}, names...) {
		h, _, _, err = e.below.all.Lookup(e.ctx, h, name)
		e.ok(err)
	}
	return h
}

// contentBelow is what a file at the bottom holds.
func (e *env) contentBelow(names ...string) string {
	e.Helper()
	below := *e
	below.fixture = &fixture{fs: e.below.all}
	return below.content(e.under(names...))
}

// dirty makes a file and leaves it open, with content that is not committed.
func (e *env) dirty(name, content string) (vfs.Handle, vfs.File) {
	e.Helper()
	h := e.create(e.dir, name, fileHow(0o644))
	f := e.open(h, vfs.ShareRead|vfs.ShareWrite)
	e.unstable(f, content)
	return h, f
}
