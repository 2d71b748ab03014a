//go:build unix

package daemon

import (
	"io/fs"
	"os"
	"syscall"
)

// owned reports whether a file is ours. What belongs to another user is no secret
// from that one, whoever we are.
func owned(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
