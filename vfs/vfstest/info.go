package vfstest

import "github.com/nfsbox/nfsbox/vfs"

var infoTests = []test{
	{"limits", func(e *env) {
		i := e.info(vfs.InfoLimits)
		if i.ReadMax == 0 || i.WriteMax == 0 || i.ReadPref > i.ReadMax || i.WritePref > i.WriteMax {
			e.Errorf("reads of %d, at most %d; writes of %d, at most %d", i.ReadPref, i.ReadMax, i.WritePref, i.WriteMax)
		}
		if i.MaxFileSize < 1<<31-1 || i.TimeDelta <= 0 {
			e.Errorf("files of at most %d bytes, times of %v", i.MaxFileSize, i.TimeDelta)
		}
		if !i.HasLinks || !i.HasSymlinks {
			e.Errorf("hard links: %t, symbolic links: %t", i.HasLinks, i.HasSymlinks)
		}
	}},
	{"names", func(e *env) {
		i := e.info(vfs.InfoNames)
		if i.NameMax < vfs.MaxName || !i.CasePreserving && !i.CaseInsensitive {
			e.Errorf("names of at most %d bytes, case preserving: %t", i.NameMax, i.CasePreserving)
		}
	}},
	{"space", func(e *env) {
		i := e.info(vfs.InfoSpace)
		if i.FreeBytes > i.TotalBytes || i.AvailBytes > i.TotalBytes || i.FreeFiles > i.TotalFiles {
			e.Errorf("%d (%d) of %d bytes, %d of %d files are free", i.FreeBytes, i.AvailBytes, i.TotalBytes, i.FreeFiles, i.TotalFiles)
		}
	}},
	{"of-file", func(e *env) {
		_, err := e.fs.Info(e.ctx, e.mkfile(e.dir, "file", ""), vfs.InfoLimits|vfs.InfoNames|vfs.InfoSpace)
		e.ok(err)
	}},
	{"stale", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		e.remove(e.dir, "file", false)
		_, err := e.fs.Info(e.ctx, h, vfs.InfoSpace)
		e.wantStatus(err, vfs.ErrStale)
	}},
}

// info asks for parts of what is known of the FS, all of which must come.
func (e *env) info(want vfs.InfoMask) vfs.Info {
	e.Helper()
	info, err := e.fs.Info(e.ctx, e.dir, want)
	e.ok(err)
	if missing := want &^ info.Valid; missing != 0 {
		e.Fatalf("info left out %#x", missing)
	}
	return info
}
