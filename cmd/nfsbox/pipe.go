package main

import (
	"errors"
	"io"
	"syscall"
)

// errPipe ends a command whose output has no reader any more, as in
// "nfsbox cp --json ... | head -1". The command ends as if interrupted, and cleans up.
var errPipe = errors.New("the reader of the output has gone")

// exitPipe is the status that a shell shows for a command that SIGPIPE has killed.
const exitPipe = 128 + int(syscall.SIGPIPE)

// pipe is an output whose reader may close it.
type pipe struct {
	io.Writer
	gone func() // called when that has happened
}

func (p pipe) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.gone()
	}
	return n, err
}
