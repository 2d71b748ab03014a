//go:build linux

package localfs

import (
	"context"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
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
	case magicVFAT, magicExFAT:
		return 1
	}
	return 255
}

// The magic numbers of file systems that linux/magic.h lists, and x/sys does not.
const (
	magicVFAT  = 0x4d44
	magicExFAT = 0x2011bab0
	magicHFS   = 0x482b // HFS+
	magicNTFS  = 0x7366746e
)

// maxFileSize is the size of the largest file. Of file systems that are not known it is
// what the kernel can do: a client that is told less refuses what would do.
func maxFileSize(magic int64, block uint64) uint64 {
	switch magic {
	case unix.EXT4_SUPER_MAGIC:
		return math.MaxUint32 * block // files of extents have so many blocks (ext4_max_size)
	case magicVFAT:
		return math.MaxUint32
	}
	return math.MaxInt64
}

// timeDelta is what times are rounded to. An ext4 whose inodes have room for no more
// has seconds, as ext3; its inodes do not tell the time of their birth either.
func timeDelta(magic int64, st *linux.Stat) time.Duration {
	switch {
	case magic == magicVFAT:
		return 2 * time.Second
	case magic == magicExFAT:
		return 10 * time.Millisecond
	case magic == magicNTFS:
		return 100 * time.Nanosecond
	case magic == magicHFS, magic == unix.EXT4_SUPER_MAGIC && st.Mask&unix.STATX_BTIME == 0:
		return time.Second
	}
	return 1
}

// casefold is FS_CASEFOLD_FL (linux/fs.h).
const casefold = 0x40000000

// foldsCase reports whether names in the directory d that differ in case alone are one
// (FS_CASEFOLD_FL, ioctl_iflags(2)).
func foldsCase(d *fdcache.Desc, magic int64) bool {
	switch magic {
	case magicVFAT, magicExFAT, magicHFS:
		return true
	case unix.EXT4_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
	default:
		return false
	}
	if d.Kind != unix.S_IFDIR {
		return false
	}
	fd, err := linux.Reopen(d.FD, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return false // and a caller that may not list it does not see two names either
	}
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	return linux.Close(fd, err) == nil && flags&casefold != 0
}

// Info implements vfs.FS. All of it costs a few system calls, and comes.
func (v *FS) Info(ctx context.Context, x vfs.Handle, _ vfs.InfoMask) (i vfs.Info, err error) {
	if err := v.begin(ctx, classMeta); err != nil {
		return i, err
	}
	defer v.end(classMeta)
	d, err := v.object(x)
	if err != nil {
		return i, err
	}
	defer v.fds.Unpin(d)
	var st unix.Statfs_t
	if err := linux.Again(func() error { return unix.Fstatfs(d.FD, &st) }); err != nil {
		return i, linux.Fail("fstatfs", err)
	}
	var at linux.Stat
	if err := at.Of(d.FD); err != nil {
		return i, linux.Fail("statx", err)
	}
	magic, folds := int64(st.Type), foldsCase(d, int64(st.Type))
	block := uint64(st.Frsize)
	if block == 0 {
		block = uint64(st.Bsize)
	}
	i = vfs.Info{
		Valid:   vfs.InfoLimits | vfs.InfoNames | vfs.InfoSpace,
		ReadMax: MaxIO, ReadPref: MaxIO, ReadMult: uint32(st.Bsize),
		WriteMax: MaxIO, WritePref: MaxIO, WriteMult: uint32(st.Bsize),
		DirPref: dirPref, MaxFileSize: maxFileSize(magic, uint64(st.Bsize)), TimeDelta: timeDelta(magic, &at),
		HasLinks: linkMax(magic) > 1, HasSymlinks: linkMax(magic) > 1, Homogeneous: !v.o.CrossMounts && !folds, CanSetTime: true,

		LinkMax: linkMax(magic), NameMax: min(uint32(st.Namelen), vfs.MaxName),
		NoTrunc: true, ChownRestricted: true, CasePreserving: true, CaseInsensitive: folds,

		TotalBytes: st.Blocks * block, FreeBytes: st.Bfree * block, AvailBytes: st.Bavail * block,
		TotalFiles: st.Files, FreeFiles: st.Ffree, AvailFiles: st.Ffree,
	}
	return i, nil
}
