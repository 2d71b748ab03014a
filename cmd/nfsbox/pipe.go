package main

import (
	"errors"
	"io"
	"syscall"
)

// errPipe is why a command ends whose output nobody reads any more, as in
// "nfsbox cp --json ... | head -1". It ends as if interrupted, and so leaves nothing
// half done.
var errPipe = errors.New("the reader of the output has gone")

// exitPipe is the status that a shell shows of a command which SIGPIPE has ended.
const exitPipe = 128 + int(syscall.SIGPIPE)

// pipe is an output whose reader may go.
type pipe struct {
	io.Writer
	gone func() // is told of it
}

func (p pipe) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.gone()
	}
	return n, err
}
