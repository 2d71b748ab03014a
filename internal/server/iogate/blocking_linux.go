//go:build gc && !nolinkname && !go1.27

package iogate

import (
	"syscall"
	_ "unsafe" // go:linkname takes it
)

// Blocking makes a system call that is known to wait for a disk, as [syscall.Syscall6]
// does. It gives the processor back to Go's scheduler before the call. In an ordinary
// system call a thread keeps its processor until the runtime's monitor takes it away,
// after 20 us to 10 ms. On a machine with few processors a few slow reads would keep all
// of them, and nothing else would run meanwhile.
//
// For a call that does not wait it costs a microsecond or more.
//
// The runtime makes its own blocking calls between the two functions below, and keeps
// their names and types for others. Both are to be called from one function that may not
// split its stack, and nothing between them may be Go. blocking_plain_linux.go takes the
// place of this file in a build with the tag nolinkname, and by a Go that is younger than
// the newest that this was tested with: there the linker may refuse. Decision 0031 says
// what this saves.
//
//go:uintptrescapes
//go:nosplit
//go:norace
func Blocking(trap, a1, a2, a3, a4 uintptr) (uintptr, syscall.Errno) {
	enterBlocking()
	r, _, errno := syscall.RawSyscall6(trap, a1, a2, a3, a4, 0, 0)
	exitBlocking()
	return r, errno
}

//go:linkname enterBlocking runtime.entersyscallblock
func enterBlocking()

//go:linkname exitBlocking runtime.exitsyscall
func exitBlocking()
