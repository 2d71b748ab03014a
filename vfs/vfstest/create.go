package vfstest

import "github.com/nfsbox/nfsbox/vfs"

var createTests = []test{
	{"new-file", func(e *env) {
		h := e.create(e.dir, "file", fileHow(0o640))
		a := e.attr(h)
		if a.Type != vfs.TypeReg || a.Mode != 0o640 || a.Nlink != 1 || a.Size != 0 {
			e.Errorf("a new %s of mode %o, %d names, size %d", a.Type, a.Mode, a.Nlink, a.Size)
		}
		e.same(e.mustLookup(e.dir, "file"), h)
		e.wantNames(e.dir, "file")
	}},
	{"initial-attributes", func(e *env) {
		how := fileHow(0o600)
		how.Set.Valid |= vfs.MaskSize
		how.Set.Size = 1000
		h, beside, _, err := e.fs.Create(e.ctx, e.dir, "file", how)
		e.ok(err)
		a := e.attr(h)
		if a.Size != 1000 || a.Mode != 0o600 {
			e.Errorf("size %d, mode %o; want 1000, 600", a.Size, a.Mode)
		}
		if beside.Has(vfs.MaskV3) && (beside.Size != a.Size || beside.FileID != a.FileID) {
			e.Errorf("create says %+v, getattr %+v", beside, a)
		}
		e.wantContent(h, zeros(1000))
	}},
	{"guarded-existing", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		e.mkdir(e.dir, "dir")
		e.symlink(e.dir, "link", "nowhere")
		how := fileHow(0o600)
		how.Set.Valid |= vfs.MaskSize
		for _, name := range []string{"file", "dir", "link"} {
			_, _, _, err := e.fs.Create(e.ctx, e.dir, name, how)
			e.wantStatus(err, vfs.ErrExist)
		}
		e.wantContent(h, "content")
		e.wantNames(e.dir, "file", "dir", "link")
	}},
	{"unchecked-keeps-content", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		how := fileHow(0o644)
		how.Mode = vfs.CreateUnchecked
		e.same(e.create(e.dir, "file", how), h)
		e.wantContent(h, "content")
		e.same(e.create(e.dir, "new", how), e.mustLookup(e.dir, "new"))
	}},
	{"unchecked-sets-size", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		how := fileHow(0o644)
		how.Mode = vfs.CreateUnchecked
		how.Set.Valid |= vfs.MaskSize
		e.same(e.create(e.dir, "file", how), h)
		e.wantContent(h, "")
	}},
	{"unchecked-sets-other-size", func(e *env) {
		// Asks for what no open(2) does. RFC 1813 leaves open what
		// initial attributes mean for a file that exists; the contract does not.
		h := e.mkfile(e.dir, "file", "content")
		how := fileHow(0o644)
		how.Mode = vfs.CreateUnchecked
		how.Set.Valid |= vfs.MaskSize
		for _, want := range []string{"con", "con" + zeros(7)} {
			how.Set.Size = uint64(len(want))
			e.create(e.dir, "file", how)
			e.wantContent(h, want)
		}
	}},
	{"unchecked-over-others", func(e *env) {
		e.mkdir(e.dir, "dir")
		e.symlink(e.dir, "link", "target")
		how := fileHow(0o644)
		how.Mode = vfs.CreateUnchecked
		for _, name := range []string{"dir", "link"} {
			_, _, _, err := e.fs.Create(e.ctx, e.dir, name, how)
			e.wantStatus(err, vfs.ErrExist, vfs.ErrIsDir, vfs.ErrInval)
		}
		e.gone(e.dir, "target")
	}},
	{"exclusive", func(e *env) {
		h := e.create(e.dir, "file", exclusiveHow("12345678"))
		e.set(h, vfs.SetAttr{Valid: vfs.MaskMode | vfs.MaskMtime | vfs.MaskAtime, Mode: 0o640, MtimeNow: true, AtimeNow: true})
		a := e.attr(h)
		if a.Type != vfs.TypeReg || a.Size != 0 || a.Mode != 0o640 {
			e.Errorf("a new %s of size %d, mode %o", a.Type, a.Size, a.Mode)
		}
		e.write(h, "content", 0)
		e.wantContent(e.mustLookup(e.dir, "file"), "content")
	}},
	{"exclusive-repeated", func(e *env) {
		h := e.create(e.dir, "file", exclusiveHow("first\x00\xff\x80"))
		e.same(e.create(e.dir, "file", exclusiveHow("first\x00\xff\x80")), h)
		_, _, _, err := e.fs.Create(e.ctx, e.dir, "file", exclusiveHow("second\x01\x02"))
		e.wantStatus(err, vfs.ErrExist)
		_, _, _, err = e.fs.Create(e.ctx, e.dir, "file", fileHow(0o644))
		e.wantStatus(err, vfs.ErrExist)
		e.wantNames(e.dir, "file")
	}},
	{"exclusive-over-others", func(e *env) {
		e.mkfile(e.dir, "file", "content")
		e.mkdir(e.dir, "dir")
		e.symlink(e.dir, "link", "target")
		for _, name := range []string{"file", "dir", "link"} {
			_, _, _, err := e.fs.Create(e.ctx, e.dir, name, exclusiveHow("12345678"))
			e.wantStatus(err, vfs.ErrExist)
		}
		e.gone(e.dir, "target")
	}},
	{"in-file", func(e *env) {
		file := e.mkfile(e.dir, "file", "")
		for _, typ := range []vfs.Type{vfs.TypeReg, vfs.TypeDir, vfs.TypeSymlink, vfs.TypeFIFO} {
			how := how(typ, 0o644)
			how.Target = "target"
			_, _, _, err := e.fs.Create(e.ctx, file, "name", how)
			e.wantStatus(err, vfs.ErrNotDir)
		}
	}},
	{"in-removed", func(e *env) {
		dir := e.mkdir(e.dir, "dir")
		_, err := e.fs.Remove(e.ctx, e.dir, "dir", true)
		e.ok(err)
		for _, typ := range []vfs.Type{vfs.TypeReg, vfs.TypeDir} {
			_, _, _, err = e.fs.Create(e.ctx, dir, "name", how(typ, 0o644))
			e.wantStatus(err, vfs.ErrStale, vfs.ErrNoEnt)
		}
	}},
	{"modifies-directory", func(e *env) {
		e.age(e.dir)
		before := e.attr(e.dir)
		_, _, wcc, err := e.fs.Create(e.ctx, e.dir, "file", fileHow(0o644))
		e.ok(err)
		e.wantModified(e.dir)
		after := e.attr(e.dir)
		if after.Ctime.Before(before.Ctime) {
			e.Errorf("ctime of the directory went from %v to %v", before.Ctime, after.Ctime)
		}
		e.checkWCC(&wcc, &before, &after)
		e.age(e.dir)
		_, _, _, err = e.fs.Create(e.ctx, e.dir, "file", fileHow(0o644))
		e.wantStatus(err, vfs.ErrExist)
		e.wantUnmodified(e.dir)
	}},
	{"bad-type", func(e *env) {
		for _, typ := range []vfs.Type{vfs.TypeNone, vfs.TypeFIFO + 1, 255} {
			_, _, _, err := e.fs.Create(e.ctx, e.dir, "name", how(typ, 0o644))
			e.wantStatus(err, vfs.ErrBadType, vfs.ErrInval)
		}
		e.wantNames(e.dir)
	}},
}

// exclusiveHow asks for a file that only the holder of that verifier may find.
func exclusiveHow(verf string) *vfs.CreateHow {
	how := &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateExclusive}
	copy(how.Verf[:], verf)
	return how
}
