package memfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Root returns the top directory.
func (f *FS) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	h := f.handle(f.root)
	if err := f.begin(ctx, "root", h); err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return h, f.attr(f.root), nil
}

// GetAttr returns all attributes, whatever the mask.
func (f *FS) GetAttr(ctx context.Context, h vfs.Handle, _ vfs.Mask) (vfs.Attr, error) {
	if err := f.begin(ctx, "getattr", h); err != nil {
		return vfs.Attr{}, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.get(h)
	if err != nil {
		return vfs.Attr{}, err
	}
	return f.attr(n), nil
}

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
