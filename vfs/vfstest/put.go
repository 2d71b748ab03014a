package vfstest

import "github.com/nfsbox/nfsbox/vfs"

// putTests are for an FS that is a vfs.Putter. They are skipped for others, and where Put
// is ErrNotSupp.
var putTests = []test{
	{"whole", func(e *env) {
		p := e.putter()
		e.put(p, "small", 0o640, "content")
		e.put(p, "large", 0o604, pattern(1<<20+1))
		e.put(p, "for all", 0o777, "content") // whatever the umask
		e.wantNames(e.dir, "small", "large", "for all")
	}},
	{"nothing", func(e *env) { e.put(e.putter(), "file", 0o600, "") }},
	{"existing", func(e *env) {
		p := e.putter()
		h := e.mkfile(e.dir, "file", "content")
		e.mkdir(e.dir, "dir")
		e.symlink(e.dir, "link", "nowhere")
		for _, name := range []string{"file", "dir", "link"} {
			_, _, err := p.Put(e.ctx, e.dir, name, 0o600, []byte("other"))
			e.wantStatus(err, vfs.ErrExist)
		}
		e.wantContent(h, "content")
		e.wantNames(e.dir, "file", "dir", "link")
	}},
	{"in-file", func(e *env) {
		p := e.putter()
		_, _, err := p.Put(e.ctx, e.mkfile(e.dir, "file", ""), "name", 0o600, []byte("content"))
		e.wantStatus(err, vfs.ErrNotDir)
	}},
	{"in-removed", func(e *env) {
		p := e.putter()
		dir := e.mkdir(e.dir, "dir")
		e.remove(e.dir, "dir", true)
		_, _, err := p.Put(e.ctx, dir, "name", 0o600, []byte("content"))
		e.wantStatus(err, vfs.ErrStale, vfs.ErrNoEnt)
	}},
	{"modifies-directory", func(e *env) {
		p := e.putter()
		e.age(e.dir)
		e.put(p, "file", 0o600, "content")
		e.wantModified(e.dir)
	}},
	{"goes-on", func(e *env) {
		// Uses the file as any other.
		h := e.put(e.putter(), "file", 0o600, "content")
		e.write(h, "C", 0)
		e.wantContent(h, "Content")
		_, _, err := e.fs.Rename(e.ctx, e.dir, "file", e.dir, "other")
		e.ok(err)
		e.wantNames(e.dir, "other")
		e.remove(e.dir, "other", false)
		e.wantNames(e.dir)
	}},
	{"cancelled", func(e *env) {
		p := e.putter()
		_, _, err := p.Put(e.ended(), e.dir, "file", 0o600, []byte("content"))
		e.cancelled("put", err)
		e.wantNames(e.dir)
	}},
	{"rights", func(e *env) {
		// Checks which callers may make names.
		if !e.config.Callers {
			e.Skip("this file system acts for one caller only")
		}
		e.putter()
		dir := e.owned(e.public(0o777), "dir", how(vfs.TypeDir, 0o700))
		e.byMode(0, 3, func(c *vfs.Caller, mode uint32) error {
			e.set(dir, vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode})
			p, ok := vfs.As[vfs.Putter](e.fs.As(c))
			if !ok {
				e.Fatal("a caller's view has not got the power")
			}
			h, _, err := p.Put(e.ctx, dir, "file", 0o600, []byte("content"))
			if err != nil {
				return err
			}
			if a := e.attr(h); a.UID != c.UID || a.GID != c.GID {
				e.Errorf("what %d:%d has made belongs to %d:%d", c.UID, c.GID, a.UID, a.GID)
			}
			e.remove(dir, "file", false)
			return nil
		})
	}},
	{"set-id-bits", func(e *env) {
		// Asks for bits that a write would clear: the mode must be set after the bytes.
		if !e.config.Callers {
			e.Skip("this file system acts for one caller only")
		}
		e.putter()
		dir := e.public(0o777)
		p, ok := vfs.As[vfs.Putter](e.fs.As(&vfs.Caller{UID: 1000, GID: 1000}))
		if !ok {
			e.Fatal("a caller's view has not got the power")
		}
		for _, data := range []string{"", "content"} {
			h, _, err := p.Put(e.ctx, dir, "file"+data, 0o4711, []byte(data))
			e.ok(err)
			if a := e.attr(h); a.Mode != 0o4711 {
				e.Errorf("%q: mode %o", data, a.Mode)
			}
		}
	}},
}

// putter is the power of e.fs, or the end of the test.
func (e *env) putter() vfs.Putter {
	e.Helper()
	p, ok := vfs.As[vfs.Putter](e.fs)
	if !ok {
		e.Skip("this file system makes no files together with their bytes")
	}
	probe := e.mkdir(e.dir, "probe")
	_, _, err := p.Put(e.ctx, probe, "file", 0o600, nil)
	if s, _ := vfs.StatusOf(err); s == vfs.ErrNotSupp {
		e.Skip("files cannot be made together with their bytes here")
	}
	e.ok(err)
	e.remove(probe, "file", false)
	e.remove(e.dir, "probe", true)
	return p
}

func (e *env) put(p vfs.Putter, name string, mode uint32, data string) vfs.Handle {
	e.Helper()
	h, a, err := p.Put(e.ctx, e.dir, name, mode, []byte(data))
	e.ok(err)
	now := e.attr(h)
	if now.Type != vfs.TypeReg || now.Mode != mode || now.Nlink != 1 || now.Size != uint64(len(data)) {
		e.Errorf("%s: a %s of mode %o, %d names, size %d", name, now.Type, now.Mode, now.Nlink, now.Size)
	}
	if a.Has(vfs.MaskV3) && (a.FileID != now.FileID || a.Nlink != 1 || a.Size != now.Size || !a.Ctime.Equal(now.Ctime)) {
		e.Errorf("%s: put says %+v, getattr %+v", name, a, now)
	}
	e.same(e.mustLookup(e.dir, name), h)
	e.wantContent(h, data)
	return h
}
