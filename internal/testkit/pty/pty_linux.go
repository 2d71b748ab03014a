// Package pty makes terminals for tests (pty(7)). It is for Linux.
package pty

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Open makes a terminal of this size, in columns and lines: what is written to tty comes out of screen, and what is
// written to screen is typed. The test's end closes both.
func Open(t *testing.T, width, height uint16) (screen, tty *os.File) {
	t.Helper()
	open := func(name string) *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Skipf("NOT TESTED: no terminal can be had: %v", err)
		}
		t.Cleanup(func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
		return f
	}
	screen = open("/dev/ptmx")
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty = open(fmt.Sprintf("/dev/pts/%d", n))
	Resize(t, tty, width, height)
	return screen, tty
}

// Resize gives a terminal another size.
func Resize(t *testing.T, tty *os.File, width, height uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		t.Fatal(err)
	}
}
