//go:build unix

package main

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// usualWidth and usualHeight are the size of a terminal that does not know its own,
// such as a serial line.
const (
	usualWidth  = 80
	usualHeight = 24
)

// terminal is how to learn the size of the terminal that f is; nil: it is none,
// or one that cannot be drawn on.
func terminal(f *os.File) func() (width, height int) {
	if _, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err != nil || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return func() (width, height int) {
		w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil || w.Col == 0 || w.Row == 0 { // gone, or of a size that nobody has told
			return usualWidth, usualHeight
		}
		return int(w.Col), int(w.Row)
	}
}

// resizes tells that the terminal has another size, until stop is called.
func resizes() (told <-chan struct{}, stop func()) {
	signals, out, ended := make(chan os.Signal, 1), make(chan struct{}, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGWINCH)
	var end sync.WaitGroup
	end.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-signals:
			}
			select {
			case out <- struct{}{}:
			default: // one is on its way already
			}
		}
	})
	return out, func() {
		signal.Stop(signals)
		close(ended)
		end.Wait()
	}
}
