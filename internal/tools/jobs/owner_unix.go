//go:build unix

package jobs

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ours returns an error if another user owns what info describes.
func ours(info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if me := os.Geteuid(); ok && int(st.Uid) != me {
		return fmt.Errorf("it belongs to user %d, and this is user %d", st.Uid, me)
	}
	return nil
}
