package mounted

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// user is a mounted directory as a user of this host has it, by system calls: as much of a vfs.FS as the matrix of rights
// uses. A handle is a path below the mount.
type user struct {
	vfs.FS // nil: the rest

	dir      string
	who      vfs.Caller
	readOnly bool // the export is
}

// as does something as another user, with that user's groups, on a thread of its own.
func as(who *vfs.Caller, do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := become(who)
		if err == nil {
			err = do()
		}
		if back := become(&vfs.Caller{}); back != nil {
			done <- errors.Join(err, back) // the thread ends with the goroutine
			return
		}
		runtime.UnlockOSThread()
		done <- err
	}()
	return <-done
}

// become makes this thread a user's, as far as files are concerned (setfsuid(2)). setgroups(2) is called past Go, which
// would change all threads.
func become(who *vfs.Caller) error {
	groups := append([]uint32{who.GID}, who.Groups...)
	if err := unix.Setfsuid(0); err != nil {
		return err
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&groups[0])), 0); errno != 0 {
		return errno
	}
	return errors.Join(unix.Setfsgid(int(who.GID)), unix.Setfsuid(int(who.UID)))
}

// path is what a handle stands for.
func (u *user) path(h vfs.Handle, names ...string) string {
	return filepath.Join(append([]string{u.dir, string(h.Bytes())}, names...)...)
}

// try does something as the user, and returns its error as the contract has it.
func (u *user) try(do func() error) error {
	err := as(&u.who, do)
	switch {
	case errors.Is(err, syscall.EACCES):
		return vfs.ErrAccess
	case errors.Is(err, syscall.EPERM):
		return vfs.ErrPerm
	case errors.Is(err, syscall.EROFS):
		return vfs.ErrROFS
	}
	return err
}

// change is try for what would change something. The kernel looks names up first, and an open or truncate(2) asks for its
// rights (ACCESS): what that refuses is refused, though the export is read-only as well.
func (u *user) change(do func() error) error {
	err := u.try(do)
	if u.readOnly && errors.Is(err, vfs.ErrAccess) {
		return vfs.ErrROFS
	}
	return err
}

func (u *user) Root(context.Context) (vfs.Handle, vfs.Attr, error) {
	h, err := vfs.MakeHandle([]byte("."))
	return h, vfs.Attr{}, err
}

func (u *user) Lookup(_ context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, dirAttr vfs.Attr, err error) {
	var st unix.Stat_t
	if err = u.try(func() error { return unix.Lstat(u.path(dir, name), &st) }); err == nil {
		h, err = vfs.MakeHandle([]byte(filepath.Join(string(dir.Bytes()), name)))
	}
	return h, a, dirAttr, err
}

func (u *user) Access(_ context.Context, h vfs.Handle, _ vfs.Access) (have vfs.Access, a vfs.Attr, err error) {
	var st unix.Stat_t
	if err := unix.Lstat(u.path(h), &st); err != nil {
		return 0, a, err
	}
	dir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	for _, x := range []struct {
		mode      uint32
		file, dir vfs.Access
	}{
		{unix.R_OK, vfs.AccessRead, vfs.AccessRead},
		{unix.W_OK, vfs.AccessModify | vfs.AccessExtend, vfs.AccessModify | vfs.AccessExtend | vfs.AccessDelete},
		{unix.X_OK, vfs.AccessExecute, vfs.AccessLookup},
	} {
		// Without the flag it is about the real user, which this thread has not changed.
		err := u.try(func() error { return unix.Faccessat2(unix.AT_FDCWD, u.path(h), x.mode, unix.AT_EACCESS) })
		switch {
		case err == nil && dir:
			have |= x.dir
		case err == nil:
			have |= x.file
		case !errors.Is(err, vfs.ErrAccess):
			return 0, a, err
		}
	}
	return have, a, nil
}

func (u *user) SetAttr(_ context.Context, h vfs.Handle, set *vfs.SetAttr, _ *time.Time) (wcc vfs.WCC, err error) {
	if set.Valid&vfs.MaskSize != 0 {
		return wcc, u.change(func() error { return unix.Truncate(u.path(h), int64(set.Size)) })
	}
	return wcc, u.change(func() error { return unix.Chmod(u.path(h), set.Mode) })
}

func (u *user) Create(_ context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (h vfs.Handle, a vfs.Attr, wcc vfs.WCC, err error) {
	return h, a, wcc, u.change(func() error {
		if how.Type == vfs.TypeDir {
			return unix.Mkdir(u.path(dir, name), 0o777)
		}
		return unix.Mknod(u.path(dir, name), unix.S_IFREG|0o666, 0)
	})
}

func (u *user) Link(_ context.Context, h, dir vfs.Handle, name string) (a vfs.Attr, wcc vfs.WCC, err error) {
	return a, wcc, u.change(func() error { return unix.Link(u.path(h), u.path(dir, name)) })
}

func (u *user) Remove(_ context.Context, dir vfs.Handle, name string, isDir bool) (wcc vfs.WCC, err error) {
	return wcc, u.change(func() error {
		if isDir {
			return unix.Rmdir(u.path(dir, name))
		}
		return unix.Unlink(u.path(dir, name))
	})
}

func (u *user) Rename(_ context.Context, from vfs.Handle, name string, to vfs.Handle, toName string) (a, b vfs.WCC, err error) {
	return a, b, u.change(func() error { return unix.Rename(u.path(from, name), u.path(to, toName)) })
}

func (u *user) ReadDir(_ context.Context, dir vfs.Handle, _ vfs.Pos, _ vfs.Mask, _ uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		err := u.try(func() error {
			fd, err := unix.Open(u.path(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			_, err = unix.Getdents(fd, make([]byte, 4096))
			return errors.Join(err, unix.Close(fd))
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

func (u *user) Open(_ context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	flags, path := unix.O_CLOEXEC, u.path(at.H)
	switch how.Access {
	case vfs.ShareRead:
		flags |= unix.O_RDONLY
	case vfs.ShareWrite:
		flags |= unix.O_WRONLY
	default:
		flags |= unix.O_RDWR
	}
	if how.Create != nil {
		flags, path = flags|unix.O_CREAT, u.path(at.Dir, at.Name)
	}
	f := &userFile{u: u}
	try := u.try
	if how.Access&vfs.ShareWrite != 0 {
		try = u.change
	}
	err := try(func() (err error) {
		f.fd, err = unix.Open(path, flags, 0o666)
		return err
	})
	if err != nil {
		return nil, vfs.Opened{}, err
	}
	return f, vfs.Opened{}, nil
}

// userFile is a file that a user has open.
type userFile struct {
	vfs.File

	u  *user
	fd int
}

func (f *userFile) ReadAt(_ context.Context, p []byte, off uint64, _ *vfs.Attr) (n int, eof bool, err error) {
	err = f.u.try(func() error {
		n, err = unix.Pread(f.fd, p, int64(off))
		return err
	})
	return n, n < len(p), err
}

func (f *userFile) WriteAt(_ context.Context, p []byte, off uint64, _ vfs.Stability, _ *vfs.Written) (n int, err error) {
	err = f.u.try(func() error {
		n, err = unix.Pwrite(f.fd, p, int64(off))
		return err
	})
	return n, err
}

func (f *userFile) Close(context.Context) error {
	return f.u.try(func() error { return unix.Close(f.fd) })
}
