package ops

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// shortPath calls f with a path of a socket that fits into an address (unix(7): 108
// bytes), however long the path is: by a descriptor of its folder.
func shortPath(path string, f func(string) error) (err error) {
	const most = len(unix.RawSockaddrUnix{}.Path) - 1
	if len(path) <= most {
		return f(path)
	}
	dir, err := os.OpenFile(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

func isRefused(err error) bool { return errors.Is(err, unix.ECONNREFUSED) }
