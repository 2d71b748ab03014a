package memfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Info returns all parts, whatever the mask.
func (f *FS) Info(ctx context.Context, h vfs.Handle, _ vfs.InfoMask) (vfs.Info, error) {
	if err := f.begin(ctx, "info", h); err != nil {
		return vfs.Info{}, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	if _, err := f.get(h); err != nil {
		return vfs.Info{}, err
	}
	opt := &f.opt
	free := f.freePages() * pageSize
	files := opt.MaxFiles - min(opt.MaxFiles, uint64(len(f.inodes)))
	return vfs.Info{
		Valid:   vfs.InfoLimits | vfs.InfoNames | vfs.InfoSpace,
		ReadMax: opt.ReadMax, ReadPref: opt.ReadMax, ReadMult: min(pageSize, opt.ReadMax),
		WriteMax: opt.WriteMax, WritePref: opt.WriteMax, WriteMult: min(pageSize, opt.WriteMax),
		DirPref: dirPageBytes, MaxFileSize: MaxFileSize, TimeDelta: opt.TimeDelta,
		HasLinks: true, HasSymlinks: true, Homogeneous: true, CanSetTime: true,
		LinkMax: opt.MaxLinks, NameMax: vfs.MaxName,
		NoTrunc: true, ChownRestricted: true, CasePreserving: true,
		TotalBytes: opt.MaxBytes, FreeBytes: free, AvailBytes: free,
		TotalFiles: opt.MaxFiles, FreeFiles: files, AvailFiles: files,
	}, nil
}
