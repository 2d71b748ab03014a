//go:build unix

package fileapi

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// checkSecret looks at the open file, not at its name, which could be given to
// another one meanwhile.
func checkSecret(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("mode %04o: others may read or change it; chmod 600 it", info.Mode().Perm())
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return errors.New("it belongs to another user")
	}
	return nil
}
