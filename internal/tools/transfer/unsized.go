package transfer

import (
	"context"
	"fmt"
	"os"

	"github.com/nfsbox/nfsbox/vfs"
)

// Files of /proc, and of some file systems in user space, have a size of 0 and contents. So a
// file of no bytes is read to its end, if it is near ([vfs.Near]): that is one system call for
// an empty file. Over a network it would be a round trip, and a server that says 0 reads nothing.
//
// Files of /sys have a page as their size, whatever they hold (sysfs_add_file_mode_ns). They are
// told from a file that was cut short by three signs: no storage is used by the file, or had by its
// file system, and the size is a page.

// MayBeUnsized reports whether a file with these attributes may have another size than they say.
func MayBeUnsized(a *vfs.Attr) bool {
	return a.Size == 0 || a.Has(vfs.MaskUsed) && a.Used == 0 && a.Size == uint64(os.Getpagesize())
}

// sized reports whether the size of an open file says where it ends.
func sized(ctx context.Context, s *Source, f vfs.File, a *vfs.Attr) bool {
	if !MayBeUnsized(a) || !allNear([]vfs.File{f}) {
		return true
	}
	if a.Size == 0 {
		return false
	}
	i, err := s.FS.Info(ctx, s.Handle, vfs.InfoSpace)
	return err != nil || i.Valid&vfs.InfoSpace == 0 || i.TotalBytes != 0
}

// unsized copies a file to its end. If it has bytes, c.before gets their number.
func (c *copier) unsized(ctx context.Context) (after vfs.Attr, err error) {
	c.stated, c.before.Size = c.before.Size, 0
	c.sizeless = c.stated > 0
	buf := c.o.Pool.Get(int(c.o.chunk()))
	defer buf.Release()
	for {
		n, err := readFull(ctx, c.in, buf.B, c.before.Size, nil)
		if err == nil {
			err = c.o.Throttle.Take(ctx, n) // how many, only the read tells
		}
		if err != nil {
			return after, &sourceError{err: fmt.Errorf("read at %d: %w", c.before.Size, err)}
		}
		if n == 0 {
			return after, nil
		}
		c.sizeless = true
		if c.sum != nil {
			c.sum.write(buf.B[:n])
		}
		unstable, err := writeFull(ctx, c.out, buf.B[:n], c.before.Size, vfs.Unstable)
		if err != nil {
			return after, fmt.Errorf("write at %d: %w", c.before.Size, err)
		}
		c.unstable = c.unstable || unstable
		c.before.Size += uint64(n)
		c.moved.Add(int64(n))
		c.o.moved(int64(n))
	}
}

// CompareUnsized compares two files to their ends, if a is near and its size does not say where it
// ends. Otherwise unsized is false, and nothing was compared.
func CompareUnsized(ctx context.Context, a, b Source, o *Options) (cmp Comparison, unsized bool, err error) {
	how := &vfs.OpenHow{Access: vfs.ShareRead}
	fa, _, err := a.FS.Open(ctx, vfs.At{H: a.Handle, Label: a.Name}, how)
	if err != nil {
		return cmp, false, fmt.Errorf("open the source: %w", err)
	}
	defer func() { err = closeAfter(ctx, fa, err) }()
	if unsized, err = hasUnsized(ctx, &a, fa); !unsized || err != nil {
		return cmp, false, err
	}
	fb, _, err := b.FS.Open(ctx, vfs.At{H: b.Handle, Label: b.Name}, how)
	if err != nil {
		return cmp, false, fmt.Errorf("open the destination: %w", err)
	}
	defer func() { err = closeAfter(ctx, fb, err) }()
	bufA, bufB := o.Pool.Get(int(o.chunk())), o.Pool.Get(int(o.chunk()))
	defer bufA.Release()
	defer bufB.Release()
	for {
		na, err := readFull(ctx, fa, bufA.B, cmp.Bytes, nil)
		if err == nil {
			err = o.Throttle.Take(ctx, na)
		}
		if err != nil {
			return cmp, true, fmt.Errorf("read the source at %d: %w", cmp.Bytes, err)
		}
		nb, err := readFull(ctx, fb, bufB.B, cmp.Bytes, nil)
		if err != nil {
			return cmp, true, fmt.Errorf("read the destination at %d: %w", cmp.Bytes, err)
		}
		same := firstDifference(bufA.B[:min(na, nb)], bufB.B[:min(na, nb)])
		cmp.Bytes += uint64(same)
		o.moved(int64(same))
		if cmp.Offset, cmp.Differ = cmp.Bytes, same < max(na, nb); cmp.Differ || na == 0 {
			return cmp, true, nil
		}
	}
}

// hasUnsized reports whether the size of the open file f does not say where it ends: if it is 0, f has
// bytes, and still that size.
func hasUnsized(ctx context.Context, s *Source, f vfs.File) (bool, error) {
	if sized(ctx, s, f, &s.Attr) {
		return false, nil
	}
	if s.Attr.Size > 0 {
		return true, nil
	}
	n, _, err := f.ReadAt(ctx, make([]byte, 1), 0, nil)
	if err != nil || n == 0 {
		return false, err
	}
	now, err := s.FS.GetAttr(ctx, s.Handle, vfs.MaskV3)
	return err == nil && now.Size == 0, err
}
