// Package linux makes the system calls that localfs and its rooms need, and turns what the
// kernel answers into the errors of package vfs.
//
// It knows no trees, callers or policies. A call is here if x/sys/unix does not have it, if
// it needs a retry (EINTR; ENOMEM of open_by_handle_at), or if localfs makes it so often
// that a copy of its name counts. Names that a call takes as *byte end in a NUL.
//
// [OS] are the calls that change a disk. They stand behind an interface in localfs, so that
// a simulated disk can stand there; all others are made directly.
package linux
