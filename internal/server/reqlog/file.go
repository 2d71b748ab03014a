package reqlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"
)

const (
	// MaxSize bounds FileOptions.Size, MaxKeep FileOptions.Keep, MaxDays
	// FileOptions.Days. More is refused.
	MaxSize = 1 << 40
	MaxKeep = 10_000 // files
	MaxDays = 3650   // ten years

	// megabyte is the unit of a file's size, which is rounded up to it.
	megabyte = 1 << 20

	// rotateAfter is the age at which a file is rotated if Days is set: otherwise the
	// lines of a small log would never get old enough to be removed.
	rotateAfter = 24 * time.Hour
)

// FileOptions say where a log is and which old files are kept. Path and Size are
// required.
type FileOptions struct {
	Path     string
	Size     int64 // bytes, in whole MiB, after which the file is put aside
	Keep     int   // files put aside to keep; 0: all
	Days     int   // for how many days; 0: for ever
	Compress bool  // those put aside, with gzip
	Now      func() time.Time
}

// File is a log file that is rotated at its size or, if Days is set, after a day. It is
// then renamed to "name-TIME.ext", and old files beyond Keep and Days are removed. All
// methods may be called concurrently.
//
// A goroutine that the library starts with the first line removes and compresses files.
// It never ends, so a process should have only a few Files, and keep them.
type File struct {
	now  func() time.Time
	days bool

	max int64 // bytes

	mu    sync.Mutex
	out   lumberjack.Logger // guarded by mu, like all below
	open  bool              // out has the file open
	size  int64             // of the file, then
	began time.Time
	torn  bool // the last write has left a part of a line
}

var _ io.WriteCloser = (*File)(nil)

// OpenFile makes a File. It fails at once if lines could not be written later: the folder
// must exist, and the name must not be that of anything but a regular file. An existing
// file is continued. Only its owner can read a new one.
func OpenFile(o FileOptions) (*File, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	units := int((o.Size + megabyte - 1) / megabyte)
	f := &File{now: o.Now, days: o.Days > 0, max: int64(units) * megabyte, began: o.Now(), out: lumberjack.Logger{
		Filename: o.Path, MaxSize: units, MaxAge: o.Days, MaxBackups: o.Keep, Compress: o.Compress,
	}}
	if err := f.find(); err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return f, nil
}

// Check reports what is wrong with o and with the place of the file, as far as that can be
// known without making the file.
func (o FileOptions) Check() error {
	switch {
	case !filepath.IsAbs(o.Path):
		return fmt.Errorf("log: %q is not an absolute path", o.Path) // a server changes its working directory
	case o.Size <= 0 || o.Size > MaxSize:
		return fmt.Errorf("log: a size of %d bytes is not between 1 and %d", o.Size, int64(MaxSize))
	case o.Keep < 0 || o.Keep > MaxKeep:
		return fmt.Errorf("log: %d files to keep are not between 0 and %d", o.Keep, MaxKeep)
	case o.Days < 0 || o.Days > MaxDays:
		return fmt.Errorf("log: %d days are not between 0 and %d", o.Days, MaxDays)
	}
	info, err := os.Stat(o.Path)
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("log: %s is not a regular file", o.Path)
	}
	if errors.Is(err, os.ErrNotExist) {
		_, err = os.Stat(filepath.Dir(o.Path))
	}
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}

// find makes the file if there is none, and notes its size. The library opens an existing
// file with O_APPEND, but not one that it has made itself. Without O_APPEND, lines would
// leave a hole after the file was truncated, and overwrite those of another process.
func (f *File) find() (err error) {
	file, err := os.OpenFile(f.out.Filename, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	f.size = info.Size()
	return nil
}

// Write writes p, which is whole lines, to one file. p must not be longer than Size. If
// only a part could be written, the next Write begins a new line.
func (f *File) Write(p []byte) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); f.days && now.Sub(f.began) >= rotateAfter {
		if err := f.rotate(now); err != nil {
			return 0, err
		}
	}
	if f.torn {
		if _, err := f.write([]byte{'\n'}); err != nil {
			return 0, err
		}
	}
	n, err = f.write(p)
	f.torn = n > 0 && err != nil
	return n, err
}

// write writes p at the end of the file, which it first rotates if it would get too large.
func (f *File) write(p []byte) (n int, err error) {
	if !f.open {
		if err := f.find(); err != nil {
			return 0, err
		}
	}
	after := f.size + int64(len(p))
	if f.size > 0 && (after > f.max || after == f.max && !f.open) { // as the library would, when it opens it
		if err := f.rotate(f.now()); err != nil {
			return 0, err
		}
	}
	n, err = f.out.Write(p)
	f.open = err == nil
	f.size += int64(n)
	return n, err
}

// Rotate rotates the file now.
func (f *File) Rotate() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rotate(f.now())
}

func (f *File) rotate(now time.Time) error {
	f.began, f.open, f.size = now, false, 0
	return errors.Join(f.out.Rotate(), f.out.Close())
}

// Close closes the file. A later Write opens it again, and makes a new one if another
// program has moved it.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = false
	return f.out.Close()
}
