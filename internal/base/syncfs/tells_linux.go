package syncfs

import "golang.org/x/sys/unix"

// Tells reports whether syncfs(2) of the file system of the open file fd, which may be O_PATH, tells
// of every failure. Before Linux 5.8 it does not tell what of the data could not be written, and
// before 5.17 not that the file system's own sync has failed. Nor is it so where nobody has looked
// what it does and costs: that is known of ext4.
func Tells(fd int) bool {
	var st unix.Statfs_t
	return LinuxSince(5, 17) && unix.Fstatfs(fd, &st) == nil && int64(st.Type) == unix.EXT4_SUPER_MAGIC
}

// LinuxSince reports whether the kernel is of that release or a later one.
func LinuxSince(major, minor int) bool {
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
