package paths

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// TakesFiles is an error if no file can be made in dir, or in what is there of its way:
// the file system is read-only, or full. It makes none.
func TakesFiles(dir string) error {
	there, err := existing(dir)
	if err != nil {
		return err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(there, &st); err != nil {
		return fmt.Errorf("%s: %w", there, os.NewSyscallError("statfs", err))
	}
	free := st.Bavail
	if os.Geteuid() == 0 {
		free = st.Bfree
	}
	switch {
	case st.Flags&unix.ST_RDONLY != 0:
		return fmt.Errorf("%s is on a file system that is read-only", there)
	case st.Blocks > 0 && free == 0: // some have no number of blocks
		return fmt.Errorf("%s is on a file system that is full", there)
	case st.Files > 0 && st.Ffree == 0:
		return fmt.Errorf("%s is on a file system that has no room for another file", there)
	}
	return nil
}
