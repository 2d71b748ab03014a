//go:build unix

package main

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// usualHeight, in lines, is assumed where usualWidth is.
const usualHeight = 24

// terminal returns a function for the size of the terminal f; nil if f is none, or cannot be drawn
// on.
func terminal(f *os.File) func() (width, height int) {
	if _, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err != nil || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return func() (width, height int) {
		w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil || w.Col == 0 || w.Row == 0 { // it is gone, or its size is not known
			return usualWidth, usualHeight
		}
		return int(w.Col), int(w.Row)
	}
}

// resizes returns a channel that receives when the terminal's size has changed, until stop.
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
			default: // the channel is full
			}
		}
	})
	return out, func() {
		signal.Stop(signals)
		close(ended)
		end.Wait()
	}
}
