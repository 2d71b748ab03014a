package dir

// Sys is the interface through which a store makes all changes on disk. The default is
// the operating system; crash tests use a simulated disk that forgets what was not
// synced. Its signatures have only ints, strings and bytes, so an implementation needs
// no type of this package.
//
// Reads do not go through it. dirfd is the descriptor of a directory; a name is a
// single component. Errors are, or wrap, a syscall.Errno. All methods may be
// called concurrently.
type Sys interface {
	// Openat is openat(2) with O_CREAT|O_EXCL among flags.
	Openat(dirfd int, name string, flags int, mode uint32) (fd int, err error)
	Mkdirat(dirfd int, name string, mode uint32) error
	// Linkat makes a name for the file open as fromfd. It never replaces one.
	Linkat(fromfd int, dirfd int, name string) error
	Unlinkat(dirfd int, name string, flags int) error
	Renameat(fromfd int, from string, tofd int, to string) error

	// Pwrite may write less than p.
	Pwrite(fd int, p []byte, off int64) (int, error)

	// Fdatasync makes the data of a file stable, and its size; Fsync the names in
	// a directory; Syncfs all of the file system.
	Fdatasync(fd int) error
	Fsync(fd int) error
	Syncfs(fd int) error
}

// Anonymous is a Sys that can make files without a name, as O_TMPFILE does: they
// vanish with the process. Where that fails, or a Sys cannot, new objects have a
// temporary name.
type Anonymous interface {
	Tmpfile(dirfd int, mode uint32) (fd int, err error)
}
