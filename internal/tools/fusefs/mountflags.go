//go:build linux

package fusefs

import "golang.org/x/sys/unix"

// mountFlags are the options that mount(2) takes as bits.
var mountFlags = map[string]uintptr{
	"ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC,
	"noatime": unix.MS_NOATIME, "nodiratime": unix.MS_NODIRATIME, "relatime": unix.MS_RELATIME,
	"strictatime": unix.MS_STRICTATIME, "sync": unix.MS_SYNCHRONOUS, "dirsync": unix.MS_DIRSYNC,
}

// split divides options into those bits, and the rest.
func split(options []string) (flags uintptr, rest []string) {
	flags = unix.MS_MGC_VAL // says that there are flags, be there none
	for _, o := range options {
		if bit, ok := mountFlags[o]; ok {
			flags |= bit
		} else {
			rest = append(rest, o)
		}
	}
	return flags, rest
}
