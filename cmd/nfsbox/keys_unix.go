//go:build unix

package main

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/tools/top"
)

// keyLook is how often the reader of keys looks whether to end, and keyQueue how many keys
// may wait; at the bound it reads no more.
const (
	keyLook  = 100 * time.Millisecond
	keyQueue = 16
)

// pressed reads keys from a terminal as they are pressed, without echo, until stop, which
// leaves the terminal as it was. Signals (Ctrl-C) stay what they are.
func pressed(tty *os.File) (keys <-chan top.Key, stop func(), err error) {
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
	out, ended := make(chan top.Key, keyQueue), make(chan struct{})
	var end sync.WaitGroup
	end.Go(func() {
		defer close(out)
		readKeys(fd, out, ended)
	})
	return out, func() {
		close(ended)
		end.Wait()
		_ = unix.IoctlSetTermios(fd, setTermios, was) // the terminal may be gone
	}, nil
}

// readKeys reads until ended is closed, or the terminal is gone.
func readKeys(fd int, out chan<- top.Key, ended <-chan struct{}) {
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
		for _, k := range top.Keys(b[:n]) {
			select {
			case out <- k:
			case <-ended:
				return
			}
		}
	}
}
