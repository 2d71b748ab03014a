package bufpool

import "context"

// Writer is a file that keeps what is written to it, and can keep the buffer instead of a copy.
// It is looked for with vfs.As.
type Writer interface {
	// WriteBuffer writes all of b.B at off, unstably, as File.WriteAt of package vfs does, and
	// with the same errors: some of the bytes may be written then. The file may share b, also
	// beside an error, and change it. From the call on the caller may only release b, which it
	// still has to do.
	WriteBuffer(ctx context.Context, b *Buffer, off uint64) error
}
