//go:build linux

package localfs

import (
	"context"
	"math"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// dirPref is the page of a listing that suits us best.
const dirPref = 64 << 10

// linkMax is what file systems allow in hard links, which nothing but their
// documentation tells. Of others we promise 255: at least.
func linkMax(magic int64) uint32 {
	switch magic {
	case unix.EXT4_SUPER_MAGIC:
		return 65000
	case unix.BTRFS_SUPER_MAGIC:
		return 65535
	case unix.XFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return math.MaxInt32
	}
	return 255
}

// Info implements vfs.FS. All of it costs one system call, and comes.
func (v *FS) Info(ctx context.Context, x vfs.Handle, _ vfs.InfoMask) (i vfs.Info, err error) {
	if err := v.begin(ctx, classMeta); err != nil {
		return i, err
	}
	defer v.end(classMeta)
	d, err := v.object(x)
	if err != nil {
		return i, err
	}
	defer v.fds.unpin(d)
	var st unix.Statfs_t
	if err := again(func() error { return unix.Fstatfs(d.fd, &st) }); err != nil {
		return i, fail("fstatfs", err)
	}
	block := uint64(st.Frsize)
	if block == 0 {
		block = uint64(st.Bsize)
	}
	i = vfs.Info{
		Valid:   vfs.InfoLimits | vfs.InfoNames | vfs.InfoSpace,
		ReadMax: MaxIO, ReadPref: MaxIO, ReadMult: uint32(st.Bsize),
		WriteMax: MaxIO, WritePref: MaxIO, WriteMult: uint32(st.Bsize),
		DirPref: dirPref, MaxFileSize: math.MaxInt64, TimeDelta: 1,
		HasLinks: true, HasSymlinks: true, Homogeneous: !v.o.CrossMounts, CanSetTime: true,

		LinkMax: linkMax(int64(st.Type)), NameMax: min(uint32(st.Namelen), vfs.MaxName),
		NoTrunc: true, ChownRestricted: true, CasePreserving: true,

		TotalBytes: st.Blocks * block, FreeBytes: st.Bfree * block, AvailBytes: st.Bavail * block,
		TotalFiles: st.Files, FreeFiles: st.Ffree, AvailFiles: st.Ffree,
	}
	return i, nil
}
