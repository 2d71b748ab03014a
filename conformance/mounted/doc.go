// Package mounted judges the mounts of the built command from outside: directories, as programs use them. One table of
// configurations (our server and nfs-ganesha, with and without a cache, with and without LOCALIO) meets one set of
// checks: what POSIX promises (internal/testkit/posixsuite), operations by chance beside a local twin, a source tree
// unpacked and packed again, a git repository, a data base with two writers, and the matrix of rights with several users
// of one mount. What a listing and an archive of a tree cost the server is counted in calls. A soak stops servers, and kills
// whoever waits for them.
//
//	go test ./conformance/mounted                         # builds the command, and judges it
//	NFSBOX_BINARY=path go test ./conformance/mounted      # judges another build
//	NFSBOX_SOAK=1 go test -timeout 2h ./conformance/mounted   # a million operations, whole trees
//
// It needs Linux, /dev/fuse and root, whose mount is everybody's; and git, sqlite3, tar and nfs-ganesha for their parts.
// What is missing is skipped, and said so.
//
// # Nothing stays mounted
//
// Each mount is a process in the foreground. A test asks it to end, and waits; what does not end in time is aborted
// (umount -f -l), killed, and an error. A configuration has a bound in all: at it its mounts are aborted, so that what
// waits there fails, and the tests go on. If the tests themselves die, the kernel tells each mount to end, which
// unmounts.
package mounted
