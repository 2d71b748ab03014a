package search

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// IsStream reports whether a path names a device, a pipe or a descriptor of this host, which are read as they come.
func IsStream(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return false
	}
	return !info.Mode().IsRegular() || path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}

// Stream reads what open opens, such as a pipe to which nobody writes yet. When ctx ends, a read ends with its error, and what
// is under way is left behind. The caller calls end when it needs no more.
func Stream(ctx context.Context, open func() (io.ReadCloser, error)) (r io.Reader, end func()) {
	from, to := io.Pipe()
	go func() {
		f, err := open()
		if err == nil {
			_, err = io.Copy(to, f)
			_ = f.Close() // nothing was written
		}
		_ = to.CloseWithError(Unnamed(err)) // never fails
	}()
	stop := context.AfterFunc(ctx, func() { _ = to.CloseWithError(ctx.Err()) })
	return from, func() { stop(); _ = from.Close() }
}

// Unnamed is an error without the name of its file, for messages that begin with that name.
func Unnamed(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
