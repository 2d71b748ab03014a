package dirfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// start opens top's directory for syncs of its file system, whose device is dev. It is none where
// syncfs(2) may hide a failure: before Linux 5.8 it does not tell what of the data could not be
// written, and before 5.17 not that the file system's own sync has failed. Nor is it where nobody
// has looked what it does and costs: that is known of ext4.
func (w *whole) start(top *hostDir, dev uint64) {
	var st unix.Statfs_t
	if !linuxSince(5, 17) || unix.Fstatfs(top.fd, &st) != nil || int64(st.Type) != unix.EXT4_SUPER_MAGIC {
		return
	}
	fd, err := top.readable() // syncfs refuses O_PATH
	if err != nil {
		return
	}
	w.file = os.NewFile(uintptr(fd), "")
	w.dev, w.sync = dev, func() error { return control(w.file, unix.Syncfs) }
}

// linuxSince reports whether the kernel is of that release or a later one.
func linuxSince(major, minor int) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var is [2]int
	part := 0
	for _, c := range u.Release {
		switch {
		case c >= '0' && c <= '9':
			is[part] = is[part]*10 + int(c-'0')
		case part == 0 && c == '.':
			part++
		default:
			return is[0] > major || is[0] == major && is[1] >= minor
		}
	}
	return false
}
