package iofs

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// unstable are the writes whose bytes may not be on the server's disk.
type unstable struct {
	any   bool
	verf  vfs.Verifier
	mixed bool // they came with different verifiers, so that some are lost
}

// add takes over what a write said.
func (u *unstable) add(w *vfs.Written) {
	if w.Committed != vfs.Unstable {
		return
	}
	if u.any && u.verf != w.Verf {
		u.mixed = true
	}
	u.any, u.verf = true, w.Verf
}

// Write writes p where the last Read or Write ended, or at the end of a file that
// was opened with O_APPEND. That it returns does not mean that p is on the
// server's disk, but for O_SYNC: see Sync.
func (o *File) Write(p []byte) (int, error) {
	o.offset.Lock()
	defer o.offset.Unlock()
	if o.append {
		return o.appendNext(p)
	}
	n, err := o.writeAt(p, o.off)
	o.off += int64(n)
	return n, err
}

// appendNext is Write at the end: in one step as far as this client is concerned, if
// the file below can. The caller holds offset.
func (o *File) appendNext(p []byte) (int, error) {
	if err := o.use(vfs.ShareWrite); err != nil {
		return 0, o.fail("write", err)
	}
	below, ok := vfs.As[vfs.Appender](o.file)
	if !ok {
		end, err := o.size()
		if err != nil {
			return 0, o.fail("write", err)
		}
		n, err := o.writeAt(p, end)
		o.off = end + int64(n)
		return n, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	var w vfs.Written
	off, n, err := below.Append(o.fs.ctx, p, o.stable, &w)
	if n > 0 {
		o.off = int64(off) + int64(n)
	}
	return o.wrote(n, &w, err)
}

// WriteString is Write.
func (o *File) WriteString(s string) (int, error) { return o.Write([]byte(s)) }

// WriteAt writes p at off, and does not move the offset of Write. It is an error
// on a file that was opened with O_APPEND.
func (o *File) WriteAt(p []byte, off int64) (int, error) {
	if o.append {
		return 0, o.fail("write", fmt.Errorf("WriteAt on a file opened with O_APPEND: %w", fs.ErrInvalid))
	}
	return o.writeAt(p, off)
}

func (o *File) writeAt(p []byte, off int64) (int, error) {
	if err := o.use(vfs.ShareWrite); err != nil {
		return 0, o.fail("write", err)
	}
	switch {
	case off < 0:
		return 0, o.fail("write", fs.ErrInvalid)
	case int64(len(p)) > math.MaxInt64-off:
		return 0, o.fail("write", vfs.ErrFBig)
	case len(p) == 0:
		return 0, nil
	}
	var w vfs.Written
	n, err := vfs.WriteFull(o.fs.ctx, o.file, p, uint64(off), o.stable, &w)
	return o.wrote(n, &w, err)
}

// wrote takes over what came of writing: n bytes, and perhaps an error.
func (o *File) wrote(n int, w *vfs.Written, err error) (int, error) {
	o.state.Lock()
	defer o.state.Unlock()
	o.toldAt = time.Time{}
	if n > 0 {
		o.unstable.add(w)
	}
	if err == nil {
		return n, nil
	}
	err = o.fail("write", err)
	o.failed = firstOf(o.failed, err)
	return n, err
}

func firstOf(first, err error) error {
	if first != nil {
		return first
	}
	return err
}

// Truncate sets the size of the file, which grows by zeros. The offset stays.
func (o *File) Truncate(size int64) error {
	if err := o.use(vfs.ShareWrite); err != nil {
		return o.fail("truncate", err)
	}
	if size < 0 {
		return o.fail("truncate", fs.ErrInvalid)
	}
	_, err := o.file.Truncate(o.fs.ctx, uint64(size))
	o.state.Lock()
	defer o.state.Unlock()
	o.toldAt = time.Time{}
	if err != nil {
		return o.fail("truncate", err)
	}
	return nil
}

// Sync returns when all that was written before is on the server's disk, or says
// why it may not be. An error of a write or of Sync stays: no later Sync or Close
// succeeds.
func (o *File) Sync() error {
	if err := o.use(0); err != nil {
		return o.fail("sync", err)
	}
	return o.commit("sync")
}

// errForgotten is what a raw FS cannot repair and [File] does not: it keeps no
// bytes. nfsbox.Dial puts a wrapper between that does.
var errForgotten = fmt.Errorf("the server has restarted, and may have lost what was written: %w", vfs.ErrIO)

// commit makes stable what was written. One waits for the other: what it finds
// nothing of may be on its way.
func (o *File) commit(op string) error {
	o.commits <- struct{}{}
	defer func() { <-o.commits }()
	o.state.Lock()
	todo, failed := o.unstable, o.failed
	o.unstable = unstable{}
	o.state.Unlock()
	if failed != nil || !todo.any {
		return failed
	}
	var w vfs.Written
	err := o.file.Commit(o.fs.ctx, 0, 0, &w)
	if err == nil && (todo.mixed || w.Verf != todo.verf) {
		err = errForgotten
	}
	o.state.Lock()
	defer o.state.Unlock()
	if err != nil {
		o.failed = firstOf(o.failed, o.fail(op, err))
	}
	return o.failed
}

// Close does what Sync does, and ends the use of the file. Its error is the first
// of any write to it: a program that has written looks at it.
func (o *File) Close() error {
	o.state.Lock()
	closed := o.closed
	o.closed = true
	o.state.Unlock()
	if closed {
		return o.fail("close", fs.ErrClosed)
	}
	err := o.commit("close")
	below := o.file.Close(o.fs.ctx)
	if err == nil && below != nil {
		err = o.fail("close", below)
	}
	return err
}

// maxStableWrite is the most that WriteFile writes in one stable WRITE. Longer
// data is written as Write does, and a COMMIT follows.
const maxStableWrite = 64 << 10

// WriteFile makes data the contents of a file, which is made with the mode perm
// if there is none. It returns when data is on the server's disk. If it fails, or
// the program does, some of it may be there: see the example of how a file is
// replaced as a whole.
func (f *FS) WriteFile(name string, data []byte, perm fs.FileMode) error {
	flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if len(data) <= maxStableWrite {
		flag |= os.O_SYNC
	}
	file, err := f.OpenFile(name, flag, perm)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if cerr := file.Close(); err == nil {
		err = cerr // which is the write's, if that failed
	}
	return err
}
