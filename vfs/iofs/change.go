package iofs

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Mkdir makes a directory with the mode perm; there is no umask on this side.
func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	return f.at("mkdir", name, parent, func(w *walker) error {
		asked := time.Now()
		h, _, _, err := f.fs.Create(f.ctx, w.last.dir, w.last.name, &vfs.CreateHow{
			Type: vfs.TypeDir,
			Set:  vfs.SetAttr{Valid: vfs.MaskMode, Mode: modeBits(perm)},
		})
		if err == nil {
			f.memory.note(w.last.dir, w.last.name, h, f.who, asked)
		}
		return err
	})
}

// MkdirAll makes a directory, and those above it that do not exist. It is no error if
// all exist.
func (f *FS) MkdirAll(name string, perm fs.FileMode) error {
	if name == "." {
		return nil
	}
	err := f.Mkdir(name, perm)
	if errors.Is(err, vfs.ErrNoEnt) {
		if err := f.MkdirAll(path.Dir(name), perm); err != nil {
			return err
		}
		err = f.Mkdir(name, perm)
	}
	if err == nil {
		return nil
	}
	// Whatever the error was: if the directory exists, that is a success.
	if at, serr := f.find("mkdir", name, object); serr == nil {
		if at.attr.Type == vfs.TypeDir {
			return nil
		}
		return &fs.PathError{Op: "mkdir", Path: name, Err: vfs.ErrNotDir}
	}
	return err
}

// Remove removes a file, a link (not what it leads to), or an empty directory.
func (f *FS) Remove(name string) error {
	return f.at("remove", name, parent, func(w *walker) error {
		at, err := f.lookup(w.last.dir, w.last.name)
		if err != nil {
			return err
		}
		defer f.memory.forget(w.last.dir, w.last.name)
		return f.remove(w.last, at.attr.Type == vfs.TypeDir)
	})
}

func (f *FS) remove(at place, isDir bool) error {
	_, err := f.fs.Remove(f.ctx, at.dir, at.name, isDir)
	return err
}

// Rename renames from to to, and atomically replaces what is there: an empty directory
// if from is a directory, else anything but a directory. Programs that have the replaced
// file open can read on if they use the same client. Errors are *os.LinkError.
func (f *FS) Rename(from, to string) error {
	return f.both("rename", from, parent, to, func(a, b *walker) error {
		defer f.memory.forget(a.last.dir, a.last.name)
		defer f.memory.forget(b.last.dir, b.last.name)
		_, _, err := f.fs.Rename(f.ctx, a.last.dir, a.last.name, b.last.dir, b.last.name)
		return err
	})
}

// Link makes to a further name of the file from, or of the link itself if from is one.
// Errors are *os.LinkError.
func (f *FS) Link(from, to string) error {
	return f.both("link", from, itself, to, func(a, b *walker) error {
		_, _, err := f.fs.Link(f.ctx, a.here().handle, b.last.dir, b.last.name)
		return err
	})
}

// both walks two names, the second with the goal parent, and calls do with both walks.
func (f *FS) both(op, from string, g goal, to string, do func(a, b *walker) error) error {
	err := f.at(op, from, g, func(a *walker) error {
		return f.at(op, to, parent, func(b *walker) error { return do(a, b) })
	})
	for {
		pe, ok := errors.AsType[*fs.PathError](err)
		if !ok {
			break
		}
		err = pe.Err
	}
	if err != nil {
		return &os.LinkError{Op: op, Old: from, New: to, Err: err}
	}
	return nil
}

// Symlink makes name a symbolic link. target is stored as it is, byte for byte. A link
// that leads out of the tree can be made, but not followed.
func (f *FS) Symlink(target, name string) error {
	err := f.at("symlink", name, parent, func(w *walker) error {
		_, _, _, err := f.fs.Create(f.ctx, w.last.dir, w.last.name, &vfs.CreateHow{Type: vfs.TypeSymlink, Target: target})
		return err
	})
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return &os.LinkError{Op: pe.Op, Old: target, New: name, Err: pe.Err}
	}
	return err
}

// Sync makes stable what was created, renamed and removed in the directory that name
// leads to, if the file system below leaves that to its callers (a [vfs.Syncer], such
// as a directory of this host). NFS servers do it by themselves: there Sync does
// nothing but walk the path.
func (f *FS) Sync(name string) error {
	return f.at("sync", name, directory, func(w *walker) error {
		if s, ok := vfs.As[vfs.Syncer](f.fs); ok {
			return s.Sync(f.ctx, w.here().handle)
		}
		return nil
	})
}

// Chmod sets the permissions, set-uid, set-gid and sticky of what name leads to.
func (f *FS) Chmod(name string, mode fs.FileMode) error {
	return f.setAttr("chmod", name, object, vfs.SetAttr{Valid: vfs.MaskMode, Mode: modeBits(mode)})
}

// Chown sets the owner and the group of what name leads to; -1 leaves one as it
// is.
func (f *FS) Chown(name string, uid, gid int) error {
	return f.chown("chown", name, object, uid, gid)
}

// Lchown is Chown of name itself, even if it is a link.
func (f *FS) Lchown(name string, uid, gid int) error {
	return f.chown("lchown", name, itself, uid, gid)
}

func (f *FS) chown(op, name string, g goal, uid, gid int) error {
	if min(uid, gid) < -1 || int64(max(uid, gid)) > math.MaxUint32 {
		return &fs.PathError{Op: op, Path: name, Err: vfs.ErrInval}
	}
	set := vfs.SetAttr{UID: uint32(uid), GID: uint32(gid)}
	if uid != -1 {
		set.Valid |= vfs.MaskUID
	}
	if gid != -1 {
		set.Valid |= vfs.MaskGID
	}
	return f.setAttr(op, name, g, set)
}

// Chtimes sets the times of what name leads to; the zero time leaves one as it
// is. NFSv3 has times from 1970 to 2106.
func (f *FS) Chtimes(name string, atime, mtime time.Time) error {
	var set vfs.SetAttr
	if !atime.IsZero() {
		set.Valid, set.Atime = vfs.MaskAtime, atime
	}
	if !mtime.IsZero() {
		set.Valid, set.Mtime = set.Valid|vfs.MaskMtime, mtime
	}
	return f.setAttr("chtimes", name, object, set)
}

// Truncate sets the size of the file that name leads to.
func (f *FS) Truncate(name string, size int64) error {
	if size < 0 {
		return &fs.PathError{Op: "truncate", Path: name, Err: fs.ErrInvalid}
	}
	return f.setAttr("truncate", name, object, vfs.SetAttr{Valid: vfs.MaskSize, Size: uint64(size)})
}

func (f *FS) setAttr(op, name string, g goal, set vfs.SetAttr) error {
	return f.at(op, name, g, func(w *walker) error {
		_, err := f.fs.SetAttr(f.ctx, w.here().handle, &set, nil)
		return err
	})
}
