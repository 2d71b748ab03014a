package localfs

// Sys are the system calls by which localfs changes anything on disk: the tree that it
// serves as well as its own map of handles. By default they are the operating system's. In
// crash tests a simulated disk stands here, which forgets what was not synced. It needs no
// type of this package, since every signature is made of ints, strings and bytes.
//
// Looking (openat without O_CREAT, statx, getdents, pread, lseek) does not pass here: what
// is not yet stable is visible all the same.
//
// Descriptors are those of the operating system. dirfd is a directory's, often one opened
// with O_PATH, or unix.AT_FDCWD beside an absolute name. Any other name is a single
// component, which is never followed if it is a symbolic link. Errors are, or wrap, a
// syscall.Errno. A call may run under the credentials of the calling thread, so an
// implementation must do its work on the goroutine that calls it. All methods may be called
// concurrently.
type Sys interface {
	// Openat is openat(2) with O_CREAT|O_EXCL among flags: it makes a regular
	// file and never opens what exists. O_TRUNC is never used.
	Openat(dirfd int, name string, flags int, mode uint32) (fd int, err error)
	// Mkdirat, Symlinkat, Mknodat and Linkat make a name. fromfd is the object
	// to link, perhaps an O_PATH descriptor.
	Mkdirat(dirfd int, name string, mode uint32) error
	Symlinkat(target string, dirfd int, name string) error
	Mknodat(dirfd int, name string, mode uint32, dev uint64) error
	Linkat(fromfd int, dirfd int, name string) error
	// Unlinkat removes a name; flags is 0 or unix.AT_REMOVEDIR.
	Unlinkat(dirfd int, name string, flags int) error
	// Renameat moves a name, replacing a target as rename(2) does.
	Renameat(fromfd int, from string, tofd int, to string) error

	// Pwrite may write less than p.
	Pwrite(fd int, p []byte, off int64) (int, error)
	Ftruncate(fd int, size int64) error
	Fallocate(fd int, mode uint32, off, n int64) error

	// Fchmod, Fchown and Futimens change the object behind fd, which may be an
	// O_PATH descriptor, a symbolic link's as well. An id of -1 leaves it as it
	// is; nanoseconds may be unix.UTIME_NOW or unix.UTIME_OMIT.
	Fchmod(fd int, mode uint32) error
	Fchown(fd int, uid, gid int) error
	Futimens(fd int, atimeSec, atimeNsec, mtimeSec, mtimeNsec int64) error

	// Fdatasync makes the data of a file stable, and the size it needs; Fsync
	// all of a file, or the names in a directory; Syncfs the file system.
	Fdatasync(fd int) error
	Fsync(fd int) error
	Syncfs(fd int) error
}
