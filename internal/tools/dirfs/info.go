package dirfs

import (
	"context"
	"math"

	"github.com/nfsbox/nfsbox/vfs"
)

// dirPref is the preferred size of a listing's page, in bytes.
const dirPref = 64 << 10

// Info implements vfs.FS. It returns everything.
func (f *FS) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (i vfs.Info, err error) {
	if err := f.begin(ctx); err != nil {
		return i, err
	}
	defer f.end()
	x, o, err := f.take(h)
	if err != nil {
		return i, err
	}
	defer f.leave(o.s)
	defer x.close()
	i = vfs.Info{
		Valid:   vfs.InfoLimits | vfs.InfoNames | vfs.InfoSpace,
		ReadMax: MaxIO, ReadPref: MaxIO, ReadMult: 4096,
		WriteMax: MaxIO, WritePref: MaxIO, WriteMult: 4096,
		DirPref: dirPref, MaxFileSize: math.MaxInt64, TimeDelta: 1,
		HasLinks: true, HasSymlinks: true, CanSetTime: true,
		LinkMax: 255, NameMax: vfs.MaxName, NoTrunc: true, ChownRestricted: true, CasePreserving: true,
	}
	if err := x.info(&i); err != nil {
		return vfs.Info{}, fail("statfs", err)
	}
	if want&vfs.InfoNames != 0 && !i.CaseInsensitive {
		i.CaseInsensitive = o.folds()
	}
	return i, nil
}

// folds reports whether the directory, or the one that holds the file, ignores case.
func (o *place) folds() bool {
	if o.st.Type != vfs.TypeDir || o.name == "." {
		return o.dir.folds()
	}
	d, err := o.dir.sub(o.name)
	if err != nil {
		return false
	}
	defer d.close()
	return d.folds()
}
