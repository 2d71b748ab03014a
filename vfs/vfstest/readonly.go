package vfstest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// maxReadOnly bounds the objects of the tree that RunReadOnly looks at. A larger one fails.
const maxReadOnly = 20_000

// RunReadOnly proves, as subtests of t, an FS that nobody changes, by the tree that it has:
// attributes, look-ups, listings that are resumed anywhere, reads at any place, links, and
// that every change is refused and changes nothing. The tree must have a file of at least two
// bytes, and must stay as it is meanwhile. Files are read up to 8 MiB.
func RunReadOnly(t *testing.T, f vfs.FS) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	x := &fixture{group: t, fs: f}
	e := &env{T: t, fixture: x, ctx: ctx}
	var err error
	x.root, _, err = f.Root(ctx)
	e.ok(err)
	e.dir = x.root
	all := e.walk()
	for _, test := range []struct {
		name string
		run  func(*env, []found)
	}{
		{"attributes", wantAttributes},
		{"lookup", wantLookups},
		{"readdir", wantListings},
		{"read", wantReads},
		{"read-concurrently", wantReadsTogether},
		{"links", wantLinks},
		{"handles", wantHandles},
		{"info", wantInfo},
		{"cancel", wantCancelled},
		{"changes", wantRefused},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			t.Cleanup(cancel)
			test.run(&env{T: t, fixture: x, ctx: ctx, dir: x.root}, all)
		})
	}
}

// found is an object of the tree. The root is the first, and has no name.
type found struct {
	path, name  string
	dir, handle vfs.Handle
	listed      vfs.Entry // without its name
	attr        vfs.Attr
}

// walk lists the whole tree.
func (e *env) walk() []found {
	e.Helper()
	all := []found{{dir: e.root, handle: e.root, attr: e.attr(e.root)}}
	for i := 0; i < len(all); i++ {
		if all[i].attr.Type != vfs.TypeDir {
			continue
		}
		dir, first := all[i], len(all)
		for entry, err := range e.fs.ReadDir(e.ctx, dir.handle, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
			e.ok(err)
			if len(all) == maxReadOnly {
				e.Fatalf("the tree has more than %d objects", maxReadOnly)
			}
			o := found{name: string(entry.Name), dir: dir.handle, listed: *entry}
			o.path, o.listed.Name = path.Join(dir.path, o.name), nil
			all = append(all, o)
		}
		for j := range all[first:] {
			o := &all[first+j]
			o.handle = e.mustLookup(o.dir, o.name)
			o.attr = e.attr(o.handle)
		}
	}
	return all
}

// some returns the objects of a type, at most so many.
func some(all []found, typ vfs.Type, most int) (list []found) {
	for _, o := range all {
		if o.attr.Type == typ && len(list) < most {
			list = append(list, o)
		}
	}
	return list
}

func wantAttributes(e *env, all []found) {
	if all[0].attr.Type != vfs.TypeDir {
		e.Fatalf("the root is a %v", all[0].attr.Type)
	}
	dirs := make(map[uint64]string)
	for _, o := range all {
		again := e.attr(o.handle)
		again.Atime = o.attr.Atime // it may have been listed
		if again != o.attr {
			e.Errorf("%s: %+v, and then %+v", o.path, o.attr, again)
		}
		if o.attr.Mode&^0o7777 != 0 || o.attr.Nlink == 0 {
			e.Errorf("%s: mode %o, %d names", o.path, o.attr.Mode, o.attr.Nlink)
		}
		if other, ok := dirs[o.attr.FileID]; ok && o.attr.Type == vfs.TypeDir {
			e.Errorf("%s and %s have one file id", o.path, other)
		}
		if o.attr.Type == vfs.TypeDir {
			dirs[o.attr.FileID] = o.path
		}
		if o.name == "" {
			continue
		}
		if o.listed.FileID != o.attr.FileID {
			e.Errorf("%s: file id %d is listed, and is %d", o.path, o.listed.FileID, o.attr.FileID)
		}
		if a := o.listed.Attr; a.Has(vfs.MaskV3) && (a.Type != o.attr.Type || a.Size != o.attr.Size || !a.Mtime.Equal(o.attr.Mtime)) {
			e.Errorf("%s: %+v is listed, and it is %+v", o.path, a, o.attr)
		}
		if h := o.listed.Handle; !h.IsZero() && h != o.handle {
			e.Errorf("%s: the listing has one handle, and Lookup another", o.path)
		}
	}
}

func wantLookups(e *env, all []found) {
	for _, o := range all {
		if o.name != "" && e.mustLookup(o.dir, o.name) != o.handle {
			e.Errorf("%s has a new handle", o.path)
		}
		if o.attr.Type != vfs.TypeDir {
			_, _, _, err := e.fs.Lookup(e.ctx, o.handle, "name")
			e.wantStatus(err, vfs.ErrNotDir)
			continue
		}
		if h := e.mustLookup(o.handle, ".."); h != o.dir {
			e.Errorf("%s: .. is another directory", o.path)
		}
		e.gone(o.handle, "there-is-no-such-name")
		for _, name := range []string{"", ".", "/", "a/b", "../x", "..\x00", strings.Repeat("n", vfs.MaxName+1)} {
			if _, _, _, err := e.fs.Lookup(e.ctx, o.handle, name); err == nil {
				e.Errorf("%s has the name %.20q", o.path, name)
			}
		}
	}
}

func wantListings(e *env, all []found) {
	for _, o := range all {
		if o.attr.Type != vfs.TypeDir {
			e.wantStatus(e.listError(o.handle, vfs.Pos{}), vfs.ErrNotDir)
			continue
		}
		whole := e.places(o.handle, vfs.Pos{}, 0)
		names := namesOf(whole)
		sorted := slices.Sorted(slices.Values(names))
		if len(slices.Compact(sorted)) != len(names) {
			e.Errorf("%s: a name is listed twice", o.path)
		}
		for i, p := range whole {
			if err := vfs.CheckName(p.name); err != nil {
				e.Errorf("%s: lists %.20q: %v", o.path, p.name, err)
			}
			if i%(len(whole)/12+1) != 0 {
				continue // of a large directory, some places
			}
			if rest := namesOf(e.places(o.handle, p.next, 0)); !slices.Equal(rest, names[i+1:]) {
				e.Errorf("%s: behind %q are %.200q, want %.200q", o.path, p.name, rest, names[i+1:])
			}
		}
	}
}

func wantReads(e *env, all []found) {
	longest := 0
	for _, o := range some(all, vfs.TypeReg, 200) {
		want := e.content(o.handle)
		if uint64(len(want)) != min(o.attr.Size, maxContent) {
			e.Fatalf("%s: %d bytes, and its size is %d", o.path, len(want), o.attr.Size)
		}
		longest = max(longest, len(want))
		f := e.open(o.handle, vfs.ShareRead)
		for _, n := range []int{1, 1000, 5000} {
			for off := 0; off <= len(want); off += 1 + len(want)/7 {
				p := make([]byte, n)
				m, eof, err := vfs.ReadFull(e.ctx, f, p, uint64(off))
				e.ok(err)
				wantBytes(e, string(p[:m]), want[off:min(off+n, len(want))])
				if end := off+m == len(want); eof && !end && len(want) < maxContent || m < n && !eof {
					e.Fatalf("%s: %d of %d bytes at %d, eof %t", o.path, m, n, off, eof)
				}
			}
		}
		for _, off := range []uint64{o.attr.Size, o.attr.Size + 1, 1 << 40, 1 << 63, 1<<64 - 1} {
			if n, eof, err := f.ReadAt(e.ctx, make([]byte, 10), off, nil); n != 0 || !eof || err != nil {
				e.Errorf("%s: at %d: %d bytes, eof %t, %v; want the end", o.path, off, n, eof, err)
			}
		}
	}
	if longest < 2 {
		e.Fatal("the tree has no file of two bytes")
	}
	for _, o := range some(all, vfs.TypeDir, 3) {
		e.wantStatus(e.openError(vfs.At{H: o.handle}), vfs.ErrIsDir, vfs.ErrInval)
	}
}

func wantReadsTogether(e *env, all []found) {
	for _, o := range some(all, vfs.TypeReg, 10) {
		want := e.content(o.handle)
		e.together(func(int) error {
			f, _, err := e.fs.Open(e.ctx, vfs.At{Dir: o.dir, Name: o.name}, &vfs.OpenHow{Access: vfs.ShareRead})
			if err != nil {
				return err
			}
			got, err := readAll(e.ctx, f)
			if err == nil && got != want {
				err = fmt.Errorf("%s: other bytes", o.path)
			}
			return errors.Join(err, f.Close(e.ctx))
		})
	}
}

func wantLinks(e *env, all []found) {
	for _, o := range all {
		target, _, err := e.fs.Readlink(e.ctx, o.handle)
		if o.attr.Type != vfs.TypeSymlink {
			e.wantStatus(err, vfs.ErrInval)
			continue
		}
		e.ok(err)
		if target == "" || uint64(len(target)) != o.attr.Size {
			e.Errorf("%s leads to %q, and its size is %d", o.path, target, o.attr.Size)
		}
		e.wantStatus(e.openError(vfs.At{H: o.handle}), vfs.ErrInval)
	}
}

func wantHandles(e *env, all []found) {
	paths := make(map[vfs.Handle]string)
	for _, o := range all {
		if o.handle.Len() > vfs.MaxHandleV3 {
			e.Errorf("%s: a handle of %d bytes", o.path, o.handle.Len())
		}
		if other, ok := paths[o.handle]; ok && o.attr.Type == vfs.TypeDir {
			e.Errorf("%s and %s have one handle", o.path, other)
		}
		paths[o.handle] = o.path
	}
	for _, n := range []int{0, 1, 8, 16, 24, vfs.MaxHandleV3, vfs.MaxHandle} {
		var h vfs.Handle // of no FS
		if n > 0 {
			var err error
			h, err = vfs.MakeHandle(slices.Repeat([]byte{0x5a}, n))
			e.ok(err)
		}
		_, err := e.fs.GetAttr(e.ctx, h, vfs.MaskV3)
		e.wantStatus(err, vfs.ErrBadHandle, vfs.ErrStale)
		_, _, _, err = e.fs.Lookup(e.ctx, h, "name")
		e.wantStatus(err, vfs.ErrBadHandle, vfs.ErrStale)
		e.wantStatus(e.openError(vfs.At{H: h}), vfs.ErrBadHandle, vfs.ErrStale)
		e.wantStatus(e.listError(h, vfs.Pos{}), vfs.ErrBadHandle, vfs.ErrStale)
	}
}

func wantInfo(e *env, _ []found) {
	i := e.info(vfs.InfoLimits | vfs.InfoNames | vfs.InfoSpace)
	if i.MaxFileSize < 1<<31-1 || i.TimeDelta <= 0 || i.NameMax == 0 || i.FreeBytes > i.TotalBytes {
		e.Errorf("%+v", i)
	}
}

func wantCancelled(e *env, all []found) {
	ctx := e.ended()
	_, err := e.fs.GetAttr(ctx, e.root, vfs.MaskV3)
	e.cancelled("getattr", err)
	_, _, err = e.fs.Access(ctx, e.root, vfs.AccessRead)
	e.cancelled("access", err)
	_, _, _, err = e.fs.Lookup(ctx, e.root, "name")
	e.cancelled("lookup", err)
	_, err = e.fs.Info(ctx, e.root, vfs.InfoSpace)
	e.cancelled("info", err)
	for _, err = range e.fs.ReadDir(ctx, e.root, vfs.Pos{}, 0, 0) {
		if err != nil {
			break
		}
	}
	e.cancelled("readdir", err)
	for _, o := range some(all, vfs.TypeReg, 1) {
		_, _, err = e.fs.Open(ctx, vfs.At{H: o.handle}, &vfs.OpenHow{Access: vfs.ShareRead})
		e.cancelled("open", err)
		f := e.open(o.handle, vfs.ShareRead)
		_, _, err = f.ReadAt(ctx, make([]byte, 1), 0, nil)
		e.cancelled("read", err)
	}
}

// wantRefused tries every change, and compares the tree with what it was.
func wantRefused(e *env, all []found) {
	refused := func(o *found, what string, err error) {
		e.Helper()
		if s, ok := vfs.StatusOf(err); err == nil || !ok ||
			!slices.Contains([]vfs.Status{vfs.ErrROFS, vfs.ErrNotSupp, vfs.ErrAccess, vfs.ErrNotDir, vfs.ErrIsDir, vfs.ErrInval}, s) {
			e.Errorf("%s of %q: %v, want a refusal", what, o.path, err)
		}
	}
	for i := range all[:min(len(all), 50)] {
		o := &all[i]
		_, err := e.fs.SetAttr(e.ctx, o.handle, &vfs.SetAttr{Valid: vfs.MaskMode | vfs.MaskSize}, nil)
		refused(o, "setattr", err)
		for _, typ := range []vfs.Type{vfs.TypeReg, vfs.TypeDir, vfs.TypeFIFO} {
			_, _, _, err = e.fs.Create(e.ctx, o.handle, "new", how(typ, 0o755))
			refused(o, "create "+typ.String(), err)
		}
		_, _, err = e.fs.Link(e.ctx, o.handle, e.root, "new")
		refused(o, "link", err)
		_, _, err = e.fs.Rename(e.ctx, o.dir, o.name, e.root, "new")
		refused(o, "rename", err)
		_, err = e.fs.Remove(e.ctx, o.dir, o.name, o.attr.Type == vfs.TypeDir)
		refused(o, "remove", err)
		_, _, err = e.fs.Open(e.ctx, vfs.At{H: o.handle}, &vfs.OpenHow{Access: vfs.ShareWrite})
		refused(o, "open to write", err)
		_, _, err = e.fs.Open(e.ctx, vfs.At{Dir: e.root, Name: "new"}, &vfs.OpenHow{Access: vfs.ShareRead, Create: fileHow(0o644)})
		refused(o, "open to create", err)
		if o.attr.Type == vfs.TypeReg {
			refusedByFile(e, o, refused)
		}
	}
	after := e.walk()
	if len(after) != len(all) {
		e.Fatalf("%d objects, and %d before", len(after), len(all))
	}
	for i, o := range after {
		if b := all[i]; o.path != b.path || o.attr.Type != b.attr.Type || o.attr.Size != b.attr.Size || !o.attr.Ctime.Equal(b.attr.Ctime) {
			e.Errorf("%s is %+v, and was %s: %+v", o.path, o.attr, b.path, b.attr)
		}
	}
}

func refusedByFile(e *env, o *found, refused func(*found, string, error)) {
	before := e.content(o.handle)
	f, _, err := e.fs.Open(e.ctx, vfs.At{H: o.handle}, &vfs.OpenHow{Access: vfs.ShareRead})
	e.ok(err)
	var w vfs.Written
	_, err = f.WriteAt(e.ctx, []byte("x"), 0, vfs.FileSync, &w)
	refused(o, "write", err)
	_, err = f.Truncate(e.ctx, 0)
	refused(o, "truncate", err)
	e.ok(f.Close(e.ctx))
	e.wantStatus(f.Close(e.ctx), vfs.ErrInval)
	e.wantContent(o.handle, before)
}
