//go:build linux

package localfs

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// Link implements vfs.FS. A directory is ErrIsDir.
func (v *FS) Link(ctx context.Context, x, dir vfs.Handle, name string) (a vfs.Attr, wcc vfs.WCC, err error) {
	if err := vfs.CheckName(name); err != nil {
		return a, wcc, err
	}
	if err := v.beginChange(ctx, classMeta); err != nil {
		return a, wcc, err
	}
	defer v.end(classMeta)
	o, err := v.object(x)
	if err != nil {
		return a, wcc, err
	}
	defer v.fds.Unpin(o)
	if o.Kind == unix.S_IFDIR {
		return a, wcc, vfs.ErrIsDir
	}
	d, err := v.dir(dir)
	if err != nil {
		return a, wcc, err
	}
	defer v.fds.Unpin(d)
	var st linux.Stat
	if err := v.mayChange(d, &st, mayWrite|mayExec); err != nil {
		return a, wcc, err
	}
	news, err := v.expect(d, name, x)
	if err != nil {
		return a, wcc, err
	}
	defer v.unlock2(v.lock2(o, d))
	defer v.after(d, &wcc.After)
	err = v.stat(d, &st)
	if err == nil {
		wcc.Before = v.before(&st)
		err = v.stat(o, &st)
	}
	if err == nil {
		err = v.as(func() error { return linux.Fail("link", v.sys.Linkat(o.FD, d.FD, name)) })
	}
	if err == nil {
		err = v.touched(o)
	}
	if err != nil {
		v.unexpect(d, name, news)
		return a, wcc, err
	}
	v.after(o, &a)
	return a, wcc, nil
}

// Readlink implements vfs.FS. Anything but a symbolic link is ErrInval.
func (v *FS) Readlink(ctx context.Context, x vfs.Handle) (target string, a vfs.Attr, err error) {
	if err := v.begin(ctx, classMeta); err != nil {
		return "", a, err
	}
	defer v.end(classMeta)
	d, err := v.object(x)
	if err != nil {
		return "", a, err
	}
	defer v.fds.Unpin(d)
	var st linux.Stat
	if err := v.stat(d, &st); err != nil {
		return "", a, err
	}
	v.attr(&st, &a)
	if d.Kind != unix.S_IFLNK {
		return "", a, vfs.ErrInval
	}
	var buf [vfs.MaxPath + 1]byte
	n, err := unix.Readlinkat(d.FD, "", buf[:])
	if err != nil {
		return "", a, linux.Fail("readlink", err)
	}
	if n > vfs.MaxPath {
		return "", a, vfs.ErrNameTooLong
	}
	return string(buf[:n]), a, nil
}
