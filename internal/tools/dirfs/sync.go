package dirfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Sync implements vfs.Syncer. Where one sync of the whole file system may serve many objects
// (whole), it does. Else files and directories are synced one by one, and an object that cannot be
// opened for it (a link, pipe or device) takes a sync of its whole file system, which all waiting
// calls share. Windows does not allow all of it: see the package's doc.
func (f *FS) Sync(ctx context.Context, h vfs.Handle) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	defer f.end()
	_, o, err := f.find(h)
	if err != nil {
		return err
	}
	defer f.leave(o.s)
	err = fail("fsync", f.whole.or(o.st.FSID[0], func() error { return f.syncAlone(&o) }))
	if err != nil {
		f.verf.Add(1)
	}
	return err
}

func (f *FS) syncAlone(o *place) error {
	switch o.st.Type {
	case vfs.TypeReg:
		return f.syncFile(o)
	case vfs.TypeDir:
		return f.syncDir(o)
	}
	return f.syncAll(o)
}

func (f *FS) syncFile(o *place) error {
	file, _, err := o.openFile(syncBy)
	if err != nil {
		// Write-only, or not readable by us: sync the whole file system.
		return f.syncAll(o)
	}
	err = file.Sync()
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	return err
}

// syncAll syncs the file system of o, once for all calls that wait.
func (f *FS) syncAll(o *place) error {
	return f.rounds.Do(o.st.FSID[0], func(int) error { return o.dir.syncAll() })
}

func (f *FS) syncDir(o *place) error {
	if o.name == "." {
		return o.dir.sync()
	}
	d, err := o.dir.sub(o.name)
	if err != nil {
		return err
	}
	defer d.close()
	var st stat
	if err := d.self(&st); err != nil {
		return err
	}
	if st.id() != o.st.id() {
		return vfs.ErrStale
	}
	return d.sync()
}
