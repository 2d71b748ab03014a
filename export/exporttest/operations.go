package exporttest

import (
	"context"
	"errors"

	"github.com/nfsbox/nfsbox/vfs"
)

// operation is something that a caller tries.
type operation struct {
	name    string
	dir     bool   // with a directory; else with a file
	changes bool   // read-only exports refuse it
	needs   uint32 // rights on the object
	owner   bool   // the caller must own the object, whatever its rights
	do      func(ctx context.Context, fs vfs.FS, at target) error
}

// target holds the handles that an operation uses: of the object, and of another file
// to link. A directory holds a file named "file".
type target struct{ object, other vfs.Handle }

var operations = []operation{
	{name: "open and read", needs: read, do: func(ctx context.Context, fs vfs.FS, at target) error {
		return withFile(ctx, fs, at.object, vfs.ShareRead, func(f vfs.File) error {
			_, _, err := f.ReadAt(ctx, make([]byte, 1), 0, nil)
			return err
		})
	}},
	{name: "open and write", changes: true, needs: write, do: func(ctx context.Context, fs vfs.FS, at target) error {
		return withFile(ctx, fs, at.object, vfs.ShareWrite, func(f vfs.File) error {
			var w vfs.Written
			_, err := f.WriteAt(ctx, []byte("x"), 0, vfs.Unstable, &w)
			return err
		})
	}},
	{name: "open, read and write", changes: true, needs: read | write, do: func(ctx context.Context, fs vfs.FS, at target) error {
		return withFile(ctx, fs, at.object, vfs.ShareRead|vfs.ShareWrite, func(f vfs.File) error {
			var w vfs.Written
			_, _, err := f.ReadAt(ctx, make([]byte, 1), 0, nil)
			if err == nil {
				_, err = f.WriteAt(ctx, []byte("x"), 0, vfs.Unstable, &w)
			}
			return err
		})
	}},
	{name: "truncate", changes: true, needs: write, do: func(ctx context.Context, fs vfs.FS, at target) error {
		_, err := fs.SetAttr(ctx, at.object, &vfs.SetAttr{Valid: vfs.MaskSize, Size: 1}, nil)
		return err
	}},
	{name: "setattr of a file", changes: true, owner: true, do: chmod},
	{name: "setattr of a directory", dir: true, changes: true, owner: true, do: chmod},
	{name: "lookup", dir: true, needs: execute, do: func(ctx context.Context, fs vfs.FS, at target) error {
		_, _, _, err := fs.Lookup(ctx, at.object, "file")
		return err
	}},
	{name: "readdir", dir: true, needs: read, do: func(ctx context.Context, fs vfs.FS, at target) error {
		for _, err := range fs.ReadDir(ctx, at.object, vfs.Pos{}, 0, 4096) {
			return err
		}
		return nil
	}},
	{name: "create", dir: true, changes: true, needs: write | execute, do: func(ctx context.Context, fs vfs.FS, at target) error {
		_, _, _, err := fs.Create(ctx, at.object, "new", &vfs.CreateHow{Type: vfs.TypeReg})
		return err
	}},
	{name: "mkdir", dir: true, changes: true, needs: write | execute, do: func(ctx context.Context, fs vfs.FS, at target) error {
		_, _, _, err := fs.Create(ctx, at.object, "new", &vfs.CreateHow{Type: vfs.TypeDir})
		return err
	}},
	{name: "open and create", dir: true, changes: true, needs: write | execute, do: func(ctx context.Context, fs vfs.FS, at target) error {
		f, _, err := fs.Open(ctx, vfs.At{Dir: at.object, Name: "new"}, &vfs.OpenHow{
			Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg},
		})
		if err != nil {
			return err
		}
		return f.Close(ctx)
	}},
	{name: "remove", dir: true, changes: true, needs: write | execute, do: func(ctx context.Context, fs vfs.FS, at target) error {
		_, err := fs.Remove(ctx, at.object, "file", false)
		return err
	}},
	{name: "link", dir: true, changes: true, needs: write | execute, do: func(ctx context.Context, fs vfs.FS, at target) error {
		_, _, err := fs.Link(ctx, at.other, at.object, "new")
		return err
	}},
	{name: "rename", dir: true, changes: true, needs: write | execute, do: func(ctx context.Context, fs vfs.FS, at target) error {
		_, _, err := fs.Rename(ctx, at.object, "file", at.object, "new")
		return err
	}},
}

func chmod(ctx context.Context, fs vfs.FS, at target) error {
	_, err := fs.SetAttr(ctx, at.object, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o751}, nil)
	return err
}

func withFile(ctx context.Context, fs vfs.FS, h vfs.Handle, access vfs.Share, do func(vfs.File) error) error {
	f, _, err := fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: access})
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close(ctx))
}
