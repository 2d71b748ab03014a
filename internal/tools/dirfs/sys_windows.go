package dirfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/windows"

	"github.com/nfsbox/nfsbox/vfs"
)

// dirsArePaths says that open directories are only paths: they have to be found again when a
// directory above them was renamed.
const dirsArePaths = true

// hostDir is a directory: the root, and the path below it. os.Root opens each part of the
// path for a call, and keeps none open.
type hostDir struct {
	root *os.Root
	path string
}

func openTop(path string) (*hostDir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &hostDir{root, "."}, nil
}

// checkName is vfs.CheckName, and refuses names that mean more than a name on Windows.
func checkName(name string) error {
	if err := vfs.CheckName(name); err != nil {
		return err
	}
	if strings.ContainsAny(name, `\:`) || !filepath.IsLocal(name) {
		return vfs.ErrInval
	}
	return nil
}

func (d *hostDir) at(name string) string { return filepath.Join(d.path, name) }

// sub is the directory name in d. A link is an error.
func (d *hostDir) sub(name string) (*hostDir, error) {
	info, err := d.root.Lstat(d.at(name))
	if err == nil && !info.IsDir() {
		err = vfs.ErrNotDir
	}
	if err != nil {
		return nil, err
	}
	return &hostDir{d.root, d.at(name)}, nil
}

func (d *hostDir) up() (*hostDir, error) { return nil, vfs.ErrNotSupp }

func (d *hostDir) close() {
	if d.path == "." {
		_ = d.root.Close() // nothing was written by it
	}
}

func (d *hostDir) self(st *stat) error { return d.stat(".", st) }

// stat fills st with the attributes of name in d; a link is not followed.
func (d *hostDir) stat(name string, st *stat) error {
	info, err := d.root.Lstat(d.at(name))
	if err != nil {
		return err
	}
	st.of(info)
	if st.Type != vfs.TypeReg && st.Type != vfs.TypeDir {
		return nil
	}
	f, err := d.root.Open(d.at(name))
	if errors.Is(err, fs.ErrPermission) {
		return nil // an object that cannot be opened has no number
	}
	if err != nil {
		return err
	}
	return errors.Join(statFile(f, st), f.Close())
}

// follow fills st with the attributes of what name in d leads to.
func (d *hostDir) follow(name string, st *stat) error {
	f, err := os.Open(filepath.Join(d.root.Name(), d.at(name)))
	if err != nil {
		return err
	}
	return errors.Join(statFile(f, st), f.Close())
}

// of fills st with what info says.
func (st *stat) of(info fs.FileInfo) {
	m := info.ModTime()
	st.mount = 0
	st.Attr = vfs.Attr{
		Valid: vfs.MaskV3, Type: typeOf(info.Mode()), Mode: uint32(info.Mode().Perm()), Nlink: 1,
		Size: uint64(info.Size()), Used: uint64(info.Size()), Change: uint64(m.UnixNano()), Atime: m, Mtime: m, Ctime: m,
	}
	if x, ok := info.Sys().(*syscall.Win32FileAttributeData); ok {
		st.Atime, st.Btime = time.Unix(0, x.LastAccessTime.Nanoseconds()), time.Unix(0, x.CreationTime.Nanoseconds())
		st.Valid |= vfs.MaskBtime
	}
}

func typeOf(mode fs.FileMode) vfs.Type {
	switch {
	case mode.IsRegular():
		return vfs.TypeReg
	case mode.IsDir():
		return vfs.TypeDir
	case mode&fs.ModeSymlink != 0:
		return vfs.TypeSymlink
	case mode&fs.ModeCharDevice != 0:
		return vfs.TypeChar
	case mode&fs.ModeNamedPipe != 0:
		return vfs.TypeFIFO
	}
	return vfs.TypeSocket
}

// statFile fills st with the attributes of an open file or directory.
func statFile(f *os.File, st *stat) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	st.of(info)
	var x windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &x); err != nil {
		return err
	}
	st.FileID = uint64(x.FileIndexHigh)<<32 | uint64(x.FileIndexLow)
	st.FSID[0], st.mount, st.Nlink = uint64(x.VolumeSerialNumber), uint64(x.VolumeSerialNumber), x.NumberOfLinks
	return nil
}

func (d *hostDir) open(name string, flags int, mode uint32) (*os.File, error) {
	if flags&os.O_CREATE == 0 {
		info, err := d.root.Lstat(d.at(name))
		if err == nil && !info.Mode().IsRegular() {
			err = vfs.ErrInval
		}
		if err != nil {
			return nil, err
		}
	}
	return d.root.OpenFile(d.at(name), flags, fs.FileMode(mode&0o777))
}

func (d *hostDir) mkdir(name string, mode uint32) error {
	return d.root.Mkdir(d.at(name), fs.FileMode(mode&0o777))
}

func (d *hostDir) symlink(target, name string) error { return d.root.Symlink(target, d.at(name)) }

func (d *hostDir) rename(name string, to *hostDir, toName string) error {
	return d.root.Rename(d.at(name), to.at(toName))
}

func (d *hostDir) unlink(name string, _ bool) error { return d.root.Remove(d.at(name)) }

func (d *hostDir) mknod(string, vfs.Type, uint32, uint64) error { return vfs.ErrNotSupp }

func (d *hostDir) decides() bool { return false }

// syncBy opens a file to be synced: FlushFileBuffers takes a handle that may write.
const syncBy = os.O_RDWR

// sync flushes the directory. Some file systems, and directories to which we may not write,
// do not allow it; then names there are as stable as the file system keeps them by itself.
// The path is not followed below the root as os.Root does it: what is flushed is compared.
func (d *hostDir) sync() error {
	var want stat
	if err := d.self(&want); err != nil {
		return err
	}
	path := filepath.Join(d.root.Name(), d.path)
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	const flags = windows.FILE_FLAG_BACKUP_SEMANTICS | windows.FILE_FLAG_OPEN_REPARSE_POINT
	h, err := windows.CreateFile(name, windows.GENERIC_WRITE, share, nil, windows.OPEN_EXISTING, flags, 0)
	if err != nil {
		return unlessDenied(err)
	}
	dir := os.NewFile(uintptr(h), path)
	var st stat
	if err = statFile(dir, &st); err == nil && st.id() != want.id() {
		err = vfs.ErrStale
	}
	if err == nil {
		err = unlessDenied(windows.FlushFileBuffers(h))
	}
	return errors.Join(err, dir.Close())
}

// unlessDenied is err, unless it says that the directory cannot be flushed.
func unlessDenied(err error) error {
	for _, no := range [...]error{windows.ERROR_ACCESS_DENIED, windows.ERROR_INVALID_FUNCTION, windows.ERROR_NOT_SUPPORTED, windows.ERROR_WRITE_PROTECT} {
		if errors.Is(err, no) {
			return nil
		}
	}
	return err
}

// syncAll does nothing: it takes an administrator to flush a volume.
func (d *hostDir) syncAll() error { return nil }

func (d *hostDir) folds() bool { return true }

func (d *hostDir) list() (*os.File, error) { return d.root.Open(d.path) }

// hostObject is an object by its name, which may come to lead to something else.
type hostObject struct {
	dir  *hostDir
	name string
}

func (d *hostDir) object(name string, st *stat) (hostObject, error) {
	return hostObject{d, name}, d.stat(name, st)
}

func (x *hostObject) close()              {}
func (x *hostObject) stat(st *stat) error { return x.dir.stat(x.name, st) }

func (x *hostObject) readlink() (string, error) { return x.dir.root.Readlink(x.dir.at(x.name)) }

func (x *hostObject) chmod(mode uint32) error {
	return x.dir.root.Chmod(x.dir.at(x.name), fs.FileMode(mode&0o777))
}

func (x *hostObject) chown(int, int) error { return vfs.ErrNotSupp }

func (x *hostObject) utimes(set *vfs.SetAttr) error {
	var st stat
	if err := x.stat(&st); err != nil {
		return err
	}
	if st.Type == vfs.TypeSymlink {
		return vfs.ErrNotSupp // os.Root would set its target's
	}
	times := [2]time.Time{st.Atime, st.Mtime}
	for i, t := range [...]struct {
		valid, now bool
		to         time.Time
	}{{set.Valid&vfs.MaskAtime != 0, set.AtimeNow, set.Atime}, {set.Valid&vfs.MaskMtime != 0, set.MtimeNow, set.Mtime}} {
		if t.valid && t.now {
			times[i] = time.Now()
		} else if t.valid {
			times[i] = t.to
		}
	}
	return x.dir.root.Chtimes(x.dir.at(x.name), times[0], times[1])
}

func (x *hostObject) link(dir *hostDir, name string) error {
	return x.dir.root.Link(x.dir.at(x.name), dir.at(name))
}

// may goes by the one bit of a mode that Windows has.
func (x *hostObject) may(rights uint32) error {
	var st stat
	if err := x.stat(&st); err != nil {
		return err
	}
	if rights&mayWrite != 0 && st.Type == vfs.TypeReg && st.Mode&0o200 == 0 {
		return vfs.ErrAccess
	}
	return nil
}

func (x *hostObject) info(i *vfs.Info) error {
	path, err := windows.UTF16PtrFromString(x.dir.root.Name())
	if err != nil {
		return err
	}
	i.CaseInsensitive, i.LinkMax, i.TimeDelta, i.NFSTimes = true, 1023, 100, true // it may be a share of NFSv3
	return windows.GetDiskFreeSpaceEx(path, &i.AvailBytes, &i.TotalBytes, &i.FreeBytes)
}

func (f *FS) newFile(x *os.File, access vfs.Share, dev uint64) vfs.File {
	return &file{f, x, access, dev}
}

func syncData(f *os.File) error { return f.Sync() }

// descriptorsLeft is more than an FS takes: Windows has no such limit.
func descriptorsLeft() int { return 2*maxShare + reserved }
