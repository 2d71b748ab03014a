package iofs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// File is an open regular file, like os.File. All methods may be called concurrently.
// Read, Write and Seek share an offset and wait for each other; ReadAt and WriteAt do
// not. Calls end with the context of the FS that opened the file.
type File struct {
	fs     *FS
	file   vfs.File
	handle vfs.Handle
	owner  vfs.Owner // of its locks
	name   string    // as opened, for errors
	access vfs.Share
	append bool
	stable vfs.Stability // of each write
	opened vfs.Attr      // as it was when it was opened

	offset  sync.Mutex // guards off
	off     int64
	commits chan struct{} // full while a commit is under way
	state   sync.Mutex    // taken after the others, and not held over a call

	// Guarded by state.
	toldAt   time.Time // when the server sent opened; zero: opened is outdated
	unstable unstable
	failed   error // the first error of a write
	closed   bool
	locked   bool // a lock was asked for
}

var (
	_ fs.File           = (*File)(nil)
	_ io.ReadSeekCloser = (*File)(nil)
	_ io.ReaderAt       = (*File)(nil)
	_ io.WriterTo       = (*File)(nil)
	_ io.WriteSeeker    = (*File)(nil)
	_ io.WriterAt       = (*File)(nil)
	_ io.ReaderFrom     = (*File)(nil)
	_ io.StringWriter   = (*File)(nil)
)

// Name is the name as it was given to the call that opened the file.
func (o *File) Name() string { return o.name }

func (o *File) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: o.name, Err: err}
}

// use is nil if the file can be used in that way. It checks the context, too: what the
// file system below answers from memory would not notice its end.
func (o *File) use(access vfs.Share) error {
	o.state.Lock()
	defer o.state.Unlock()
	switch {
	case o.closed:
		return fs.ErrClosed
	case o.access&access != access:
		return vfs.ErrAccess
	}
	return o.fs.ctx.Err()
}

// Stat describes the file as it is now, with all that was written. It asks the
// server, except that the first Stat within three seconds of opening uses the
// attributes that came with the open, if nothing was written since.
func (o *File) Stat() (fs.FileInfo, error) {
	if err := o.use(0); err != nil {
		return nil, o.fail("stat", err)
	}
	attr, ok := o.news()
	if !ok {
		var err error
		if attr, err = o.fs.fs.GetAttr(o.fs.ctx, o.handle, vfs.MaskV3); err != nil {
			return nil, o.fail("stat", err)
		}
	}
	return info{path.Base(o.name), attr}, nil
}

// news are the attributes that came with the open, once.
func (o *File) news() (vfs.Attr, bool) {
	o.state.Lock()
	defer o.state.Unlock()
	ok := time.Since(o.toldAt) <= trusted
	o.toldAt = time.Time{}
	return o.opened, ok
}

func (o *File) size() (int64, error) {
	attr, err := o.fs.fs.GetAttr(o.fs.ctx, o.handle, vfs.MaskSize)
	switch {
	case err != nil:
		return 0, err
	case !attr.Has(vfs.MaskSize):
		return 0, fmt.Errorf("the server sends no size: %w", vfs.ErrServerFault)
	case attr.Size > math.MaxInt64:
		return 0, vfs.ErrFBig
	}
	return int64(attr.Size), nil
}

// Read reads the next bytes, and is io.EOF at the end.
func (o *File) Read(p []byte) (int, error) {
	n, err := o.next(p)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// next is Read, but returns io.EOF together with the last bytes.
func (o *File) next(p []byte) (int, error) {
	o.offset.Lock()
	defer o.offset.Unlock()
	n, eof, err := o.readAt(p, o.off)
	o.off += int64(n)
	if err == nil && eof {
		err = io.EOF
	}
	return n, err
}

// ReadAt reads from off until p is full. At the end of the file it reads less, with
// io.EOF.
func (o *File) ReadAt(p []byte, off int64) (int, error) {
	n, eof, err := o.readAt(p, off)
	if err == nil && eof && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (o *File) readAt(p []byte, off int64) (n int, eof bool, err error) {
	if err := o.use(vfs.ShareRead); err != nil {
		return 0, false, o.fail("read", err)
	}
	if off < 0 {
		return 0, false, o.fail("read", fs.ErrInvalid)
	}
	n, eof, err = vfs.ReadFull(o.fs.ctx, o.file, p, uint64(off))
	if err != nil {
		return n, false, o.fail("read", err)
	}
	return n, eof, nil
}

// Seek says where the next Read or Write begins. For io.SeekEnd it asks the server for
// the size.
func (o *File) Seek(offset int64, whence int) (int64, error) {
	if err := o.use(0); err != nil {
		return 0, o.fail("seek", err)
	}
	o.offset.Lock()
	defer o.offset.Unlock()
	var from int64
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		from = o.off
	case io.SeekEnd:
		var err error
		if from, err = o.size(); err != nil {
			return 0, o.fail("seek", err)
		}
	default:
		return 0, o.fail("seek", fs.ErrInvalid)
	}
	if offset > math.MaxInt64-from || offset+from < 0 {
		return 0, o.fail("seek", fs.ErrInvalid)
	}
	o.off = from + offset
	return o.off, nil
}

// other is an open device, pipe or the like: it has Stat, and cannot be read.
type other struct{ info info }

func (f *other) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *other) Close() error               { return nil }
func (f *other) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: vfs.ErrInval}
}
