package sim

// Sys are the system calls that change a file system, as localfs makes them:
// see there for what each argument may be. A [Disk] is one, and stands upon one.
type Sys interface {
	Openat(dirfd int, name string, flags int, mode uint32) (fd int, err error)
	Mkdirat(dirfd int, name string, mode uint32) error
	Symlinkat(target string, dirfd int, name string) error
	Mknodat(dirfd int, name string, mode uint32, dev uint64) error
	Linkat(fromfd int, dirfd int, name string) error
	Unlinkat(dirfd int, name string, flags int) error
	Renameat(fromfd int, from string, tofd int, to string) error

	Pwrite(fd int, p []byte, off int64) (int, error)
	Ftruncate(fd int, size int64) error
	Fallocate(fd int, mode uint32, off, n int64) error

	Fchmod(fd int, mode uint32) error
	Fchown(fd int, uid, gid int) error
	Futimens(fd int, atimeSec, atimeNsec, mtimeSec, mtimeNsec int64) error

	Fdatasync(fd int) error
	Fsync(fd int) error
	Syncfs(fd int) error
}
