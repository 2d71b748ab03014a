//go:build unix

package job

import (
	"fmt"
	"os"
	"syscall"
)

// lockFile takes the lock that keeps a second run of the job out. The system releases it
// when the file is closed or the process ends.
func lockFile(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lerr error
	if err := conn.Control(func(fd uintptr) {
		lerr = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB)
	}); err != nil {
		return err
	}
	if lerr != nil {
		return fmt.Errorf("it is in use by another run: %w", lerr)
	}
	return nil
}
