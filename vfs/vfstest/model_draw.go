package vfstest

import (
	"context"
	"fmt"
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

// draw makes the next operation. The weights keep the tree small and busy.
func (m *model) draw() *operation {
	switch n := m.random.IntN(100); {
	case n < 14:
		return m.drawCreate()
	case n < 24:
		return m.drawMkdir()
	case n < 28:
		return m.drawSymlink()
	case n < 35:
		return m.drawLink()
	case n < 45:
		return m.drawRemove()
	case n < 58:
		return m.drawRename()
	case n < 68:
		return m.drawWrite()
	case n < 74:
		return m.drawRead()
	case n < 81:
		return m.drawSetAttr()
	case n < 89:
		return m.drawLookup()
	case n < 93:
		return m.drawReadlink()
	}
	return m.drawReadDir()
}

// object draws an object, and how messages call it.
func (m *model) object() (pair, string) {
	i := m.random.IntN(len(m.objects))
	if m.random.IntN(5) == 0 {
		i = 0
	}
	return m.objects[i], m.call(i)
}

func (m *model) call(i int) string { return fmt.Sprintf("#%s", m.objects[i][theModel].String()[8:16]) }

// directory draws an object that is mostly a directory: most operations on
// anything else end at once.
func (m *model) directory() (pair, string) {
	for range 4 {
		i := m.random.IntN(len(m.objects))
		a, err := m.sides[theModel].GetAttr(m.ctx, m.objects[i][theModel], vfs.MaskType)
		if err == nil && a.Type == vfs.TypeDir {
			return m.objects[i], m.call(i)
		}
	}
	return m.object()
}

func (m *model) name() string { return string(rune('a' + m.random.IntN(modelNames))) }

func (m *model) drawCreate() *operation {
	dir, called := m.directory()
	name := m.name()
	how := fileHow(0o600 | uint32(m.random.IntN(0o100)))
	op := &operation{}
	if m.random.IntN(2) == 0 {
		how.Mode = vfs.CreateUnchecked
		op.either = []vfs.Status{vfs.ErrExist, vfs.ErrIsDir, vfs.ErrInval}
		if m.random.IntN(2) == 0 {
			how.Set.Valid |= vfs.MaskSize // to nothing, as O_TRUNC: some servers know no other
		}
	}
	op.what = fmt.Sprintf("create %s/%s mode %d, truncated: %t", called, name, how.Mode, how.Set.Valid&vfs.MaskSize != 0)
	op.do = m.creating(dir, name, how)
	return op
}

func (m *model) creating(dir pair, name string, how *vfs.CreateHow) func(vfs.FS, int) (outcome, error) {
	return func(f vfs.FS, side int) (outcome, error) {
		h, _, _, err := f.Create(m.ctx, dir[side], name, how)
		return outcome{made: h}, err
	}
}

func (m *model) drawMkdir() *operation {
	dir, called := m.directory()
	name := m.name()
	return &operation{
		what: fmt.Sprintf("mkdir %s/%s", called, name),
		do:   m.creating(dir, name, how(vfs.TypeDir, 0o700|uint32(m.random.IntN(0o100)))),
	}
}

func (m *model) drawSymlink() *operation {
	dir, called := m.directory()
	name, target := m.name(), m.name()+"/"+m.name()
	return &operation{
		what: fmt.Sprintf("symlink %s/%s to %s", called, name, target),
		do:   m.creating(dir, name, &vfs.CreateHow{Type: vfs.TypeSymlink, Target: target}),
	}
}

func (m *model) drawLink() *operation {
	h, called := m.object()
	dir, in := m.directory()
	name := m.name()
	return &operation{
		what:   fmt.Sprintf("link %s as %s/%s", called, in, name),
		either: []vfs.Status{vfs.ErrExist, vfs.ErrIsDir, vfs.ErrPerm, vfs.ErrInval, vfs.ErrNotDir, vfs.ErrStale},
		do: func(f vfs.FS, side int) (outcome, error) {
			_, _, err := f.Link(m.ctx, h[side], dir[side], name)
			return outcome{}, err
		},
	}
}

func (m *model) drawRemove() *operation {
	dir, called := m.directory()
	name, isDir := m.name(), m.random.IntN(2) == 0
	op := &operation{
		what:   fmt.Sprintf("remove %s/%s, directory: %t", called, name, isDir),
		either: []vfs.Status{vfs.ErrIsDir, vfs.ErrPerm},
		do: func(f vfs.FS, side int) (outcome, error) {
			_, err := f.Remove(m.ctx, dir[side], name, isDir)
			return outcome{}, err
		},
	}
	if isDir {
		op.either = []vfs.Status{vfs.ErrNotEmpty, vfs.ErrExist}
	}
	return op
}

func (m *model) drawRename() *operation {
	from, called := m.directory()
	to, in := m.directory()
	name, other := m.name(), m.name()
	return &operation{
		what:   fmt.Sprintf("rename %s/%s to %s/%s", called, name, in, other),
		either: []vfs.Status{vfs.ErrExist, vfs.ErrNotEmpty, vfs.ErrIsDir, vfs.ErrNotDir, vfs.ErrInval, vfs.ErrStale},
		do: func(f vfs.FS, side int) (outcome, error) {
			_, _, err := f.Rename(m.ctx, from[side], name, to[side], other)
			return outcome{}, err
		},
	}
}

// notAFile are the statuses of doing to something else what files are for.
var notAFile = []vfs.Status{vfs.ErrIsDir, vfs.ErrInval}

func (m *model) drawWrite() *operation {
	h, called := m.object()
	off := m.random.IntN(modelSize)
	data := pattern(1 + m.random.IntN(modelSize-off))
	return &operation{
		what:   fmt.Sprintf("write %s at %d, %d bytes", called, off, len(data)),
		either: notAFile,
		do: m.opened(h, vfs.ShareWrite, func(f vfs.File) (string, error) {
			_, err := vfs.WriteFull(m.ctx, f, []byte(data), uint64(off), vfs.FileSync, new(vfs.Written))
			return "", err
		}),
	}
}

func (m *model) drawRead() *operation {
	h, called := m.object()
	off, n := m.random.IntN(modelSize), m.random.IntN(modelSize)
	return &operation{
		what:   fmt.Sprintf("read %s at %d, %d bytes", called, off, n),
		either: notAFile,
		do: m.opened(h, vfs.ShareRead, func(f vfs.File) (string, error) {
			p := make([]byte, n)
			got, _, err := vfs.ReadFull(m.ctx, f, p, uint64(off))
			return string(p[:got]), err
		}),
	}
}

// opened opens an object for the time of one operation.
func (m *model) opened(h pair, access vfs.Share, do func(vfs.File) (string, error)) func(vfs.FS, int) (outcome, error) {
	return func(fs vfs.FS, side int) (outcome, error) {
		f, _, err := fs.Open(m.ctx, vfs.At{H: h[side]}, &vfs.OpenHow{Access: access})
		if err != nil {
			return outcome{}, err
		}
		text, err := do(f)
		if closing := f.Close(context.Background()); err == nil {
			err = closing
		}
		return outcome{text: text}, err
	}
}

// drawSetAttr sets a mode or a size. The mode of a symbolic link is left alone:
// whether it has one is up to the system.
func (m *model) drawSetAttr() *operation {
	h, called := m.object()
	set := &vfs.SetAttr{Valid: vfs.MaskSize, Size: uint64(m.random.IntN(modelSize))}
	a, err := m.sides[theModel].GetAttr(m.ctx, h[theModel], vfs.MaskType)
	if err == nil && a.Type != vfs.TypeSymlink && m.random.IntN(2) == 0 {
		set = &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o700 | uint32(m.random.IntN(0o100))}
	}
	return &operation{
		what:   fmt.Sprintf("setattr %s, mode %o, size %d", called, set.Mode, set.Size),
		either: notAFile,
		do: func(f vfs.FS, side int) (outcome, error) {
			_, err := f.SetAttr(m.ctx, h[side], set, nil)
			return outcome{}, err
		},
	}
}

func (m *model) drawLookup() *operation {
	dir, called := m.object()
	name := m.name()
	if m.random.IntN(4) == 0 {
		name = ".."
	}
	return &operation{
		what:   fmt.Sprintf("lookup %s/%s", called, name),
		either: []vfs.Status{vfs.ErrNotDir, vfs.ErrInval},
		do: func(f vfs.FS, side int) (outcome, error) {
			h, _, _, err := f.Lookup(m.ctx, dir[side], name)
			return outcome{made: h}, err
		},
	}
}

func (m *model) drawReadlink() *operation {
	h, called := m.object()
	return &operation{
		what: "readlink " + called,
		do: func(f vfs.FS, side int) (outcome, error) {
			target, _, err := f.Readlink(m.ctx, h[side])
			return outcome{text: target}, err
		},
	}
}

func (m *model) drawReadDir() *operation {
	h, called := m.object()
	return &operation{
		what:   "readdir " + called,
		either: []vfs.Status{vfs.ErrNotDir, vfs.ErrInval},
		do: func(f vfs.FS, side int) (outcome, error) {
			var names []string
			for entry, err := range f.ReadDir(m.ctx, h[side], vfs.Pos{}, 0, 0) {
				if err != nil {
					return outcome{}, err
				}
				names = append(names, string(entry.Name))
			}
			slices.Sort(names)
			return outcome{text: fmt.Sprint(names)}, nil
		},
	}
}
