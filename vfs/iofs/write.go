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

// add adds a write.
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
// was opened with O_APPEND. When it returns, p is on the server's disk only if the
// file was opened with O_SYNC: see Sync.
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

// appendNext is Write at the end of the file, in one step within this client if the file
// below is a vfs.Appender. The caller holds offset.
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

// wrote records the outcome of a write: n bytes, and perhaps an error.
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

// Sync returns when all that was written before is on the server's disk, or returns
// the error why it may not be. After an error of a write or of Sync, no later Sync or
// Close succeeds.
func (o *File) Sync() error {
	if err := o.use(0); err != nil {
		return o.fail("sync", err)
	}
	return o.commit("sync")
}

// errForgotten is the error if a raw FS has lost bytes: File keeps none to send again.
// The wrapper that nfsbox.Dial adds does.
var errForgotten = fmt.Errorf("the server has restarted, and may have lost what was written: %w", vfs.ErrIO)

// commit makes stable what was written. Calls wait for each other: bytes that one does
// not find in unstable may be in the commit of another.
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

// Close does what Sync does, frees the locks, and ends the use of the file. Its error is the first error
// of any write, so a program that has written must look at it.
func (o *File) Close() error {
	o.state.Lock()
	closed := o.closed
	o.closed = true
	o.state.Unlock()
	if closed {
		return o.fail("close", fs.ErrClosed)
	}
	err := o.commit("close")
	if e := o.unlock(Range{}); err == nil {
		err = e
	}
	below := o.file.Close(o.fs.ctx)
	if err == nil && below != nil {
		err = o.fail("close", below)
	}
	return err
}

// maxStableWrite is the most that WriteFile writes in one stable WRITE. Longer
// data is written as Write does, and a COMMIT follows.
const maxStableWrite = 64 << 10

// WriteFile replaces the contents of a file by data, and creates it with the mode perm
// if there is none. It returns when data is on the server's disk. If it fails, or the
// program ends, a part may be there: the example shows how to replace a file as a whole.
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
		err = cerr
	}
	return err
}
