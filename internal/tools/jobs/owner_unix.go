//go:build unix

package jobs

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// othersWrite are the mode bits by which others than the owner may write. An access control list that lets
// them shows in the group's.
const othersWrite = 0o022

// owned returns an error if another user owns what info describes, which is at path. With orRoot it may be
// root's.
func owned(info fs.FileInfo, path string, orRoot bool) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if me := os.Geteuid(); ok && int(st.Uid) != me && (!orRoot || st.Uid != 0) {
		return fmt.Errorf("%w: %s belongs to user %d, and this is user %d: remove it, or be that user", ErrForeign, path, st.Uid, me)
	}
	return nil
}

// ours is owned, and an error if others may write to it. The mode of a symbolic link says nothing.
func ours(info fs.FileInfo, path string, orRoot bool) error {
	if err := owned(info, path, orRoot); err != nil {
		return err
	}
	if mode := info.Mode(); mode.Type() != fs.ModeSymlink && mode.Perm()&othersWrite != 0 {
		return fmt.Errorf("%w: others may write to %s, of mode %04o: look at what it has, then chmod go-w it, or remove it", ErrForeign, path, mode.Perm())
	}
	return nil
}
