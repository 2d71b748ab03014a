//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Size returns a function for the size of the terminal f, in columns and lines. It returns nil if f is no terminal, or one that cannot be
// drawn on: TERM is "dumb".
func Size(f *os.File) func() (width, height int) {
	if _, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err != nil || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return func() (width, height int) {
		w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil || w.Col == 0 || w.Row == 0 { // it is gone, or its size is not known
			return UsualWidth, UsualHeight
		}
		return int(w.Col), int(w.Row)
	}
}

// Resizes returns a channel that receives when the terminal's size has changed, until stop is called. Several changes at once
// may be one.
func Resizes() (changed <-chan struct{}, stop func()) {
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
