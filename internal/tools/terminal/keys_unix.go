//go:build unix

package terminal

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// keyLook is how often the reader of keys looks whether to end, and keyQueue how many keys
// may wait; at the bound it reads no more.
const (
	keyLook  = 100 * time.Millisecond
	keyQueue = 16
)

// Keys reads keys from a terminal as they are pressed, without echo, until stop is called, which
// leaves the terminal as it was. Signals (Ctrl-C) stay what they are. What was read, parse makes keys of.
func Keys[K any](tty *os.File, parse func([]byte) []K) (keys <-chan K, stop func(), err error) {
	fd := int(tty.Fd())
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, nil, err
	}
	raw := *was
	raw.Lflag &^= unix.ICANON | unix.ECHO
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, setTermios, &raw); err != nil {
		return nil, nil, err
	}
	out, ended := make(chan K, keyQueue), make(chan struct{})
	var end sync.WaitGroup
	end.Go(func() {
		defer close(out)
		readKeys(fd, parse, out, ended)
	})
	return out, func() {
		close(ended)
		end.Wait()
		_ = unix.IoctlSetTermios(fd, setTermios, was) // the terminal may be gone
	}, nil
}

// readKeys reads until ended is closed, or the terminal is gone.
func readKeys[K any](fd int, parse func([]byte) []K, out chan<- K, ended <-chan struct{}) {
	var b [64]byte
	for {
		select {
		case <-ended:
			return
		default:
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(keyLook.Milliseconds()))
		if err == unix.EINTR || err == nil && n == 0 {
			continue
		}
		if err == nil {
			n, err = unix.Read(fd, b[:])
		}
		if err == unix.EAGAIN || err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		for _, k := range parse(b[:n]) {
			select {
			case out <- k:
			case <-ended:
				return
			}
		}
	}
}
