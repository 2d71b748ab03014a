package paths

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// PlaceOf is where dir leads now; isMount says whether a file system is mounted there.
func PlaceOf(dir string) (p Place, isMount bool, err error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_BASIC_STATS|unix.STATX_BTIME|unix.STATX_MNT_ID, &st); err != nil {
		return p, false, fmt.Errorf("serve %s: %w", dir, os.NewSyscallError("statx", err))
	}
	p = Place{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino, mount: st.Mnt_id}
	if st.Mask&unix.STATX_BTIME != 0 {
		p.born = uint64(st.Btime.Sec)*1e9 + uint64(st.Btime.Nsec)
	}
	return p, st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}

// mountOf is the number of the mount that shows path itself, a symbolic link included;
// 0 if that is unknown.
func mountOf(path string) uint64 {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st); err != nil {
		return 0
	}
	return st.Mnt_id
}

// VolumeOf names the file system of dir if it has a name that survives a restart of the
// host. Where the kernel makes that of the device's number, there is none.
func VolumeOf(dir string) ([]byte, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return nil, fmt.Errorf("serve %s: %w", dir, os.NewSyscallError("statfs", err))
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		id := binary.LittleEndian.AppendUint32(nil, uint32(st.Fsid.Val[0]))
		return binary.LittleEndian.AppendUint32(id, uint32(st.Fsid.Val[1])), nil
	}
	return nil, nil
}
