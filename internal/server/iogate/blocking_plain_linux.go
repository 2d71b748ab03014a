//go:build !gc || nolinkname || go1.27

package iogate

import "syscall"

// Blocking makes a system call that is known to wait for a disk, as [syscall.Syscall6]
// does. This build cannot tell Go's scheduler beforehand: see blocking_linux.go.
//
//go:uintptrescapes
func Blocking(trap, a1, a2, a3, a4 uintptr) (uintptr, syscall.Errno) {
	r, _, errno := syscall.Syscall6(trap, a1, a2, a3, a4, 0, 0)
	return r, errno
}
