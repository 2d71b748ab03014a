//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package terminal

import "golang.org/x/sys/unix"

// The requests by which a terminal's settings are read and made.
const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)
