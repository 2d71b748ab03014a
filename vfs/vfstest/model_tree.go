package vfstest

import (
	"context"
	"fmt"
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

// modelDepth bounds the walk over a tree: deeper than any that steps can make,
// unless a directory has become its own ancestor.
const modelDepth = 1000

// compareTrees compares all that can be reached from the roots.
func (m *model) compareTrees(root pair) error {
	var trees [2][]string
	for i, f := range m.sides {
		w := walker{ctx: m.ctx, fs: f}
		if err := w.walk(root[i], ".", modelDepth); err != nil {
			return fmt.Errorf("walk of side %d: %w", i, err)
		}
		trees[i] = w.lines
	}
	a, b := trees[theModel], trees[underTest]
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Errorf("the trees differ: %.300s, the model has %.300s", b[i], a[i])
		}
	}
	if len(a) != len(b) {
		return fmt.Errorf("the tree has %d objects, that of the model %d", len(b), len(a))
	}
	return nil
}

// walker writes a tree down, one line for each object.
type walker struct {
	ctx   context.Context
	fs    vfs.FS
	lines []string
}

func (w *walker) walk(h vfs.Handle, path string, depth int) error {
	if depth == 0 {
		return fmt.Errorf("%.200s... is too deep", path)
	}
	a, err := w.fs.GetAttr(w.ctx, h, vfs.MaskV3)
	if err != nil {
		return fmt.Errorf("getattr of %s: %w", path, err)
	}
	line := path
	if path != "." { // the model has not set the root's mode
		line = fmt.Sprintf("%s: %s", path, describe(&a))
	}
	switch a.Type {
	case vfs.TypeReg:
		content, err := w.content(h)
		if err != nil {
			return fmt.Errorf("read of %s: %w", path, err)
		}
		line += fmt.Sprintf(" %q", content)
	case vfs.TypeSymlink:
		target, _, err := w.fs.Readlink(w.ctx, h)
		if err != nil {
			return fmt.Errorf("readlink of %s: %w", path, err)
		}
		line += fmt.Sprintf(" %q", target)
	}
	w.lines = append(w.lines, line)
	if a.Type == vfs.TypeDir {
		return w.children(h, path, depth)
	}
	return nil
}

func (w *walker) children(h vfs.Handle, path string, depth int) error {
	var names []string
	for entry, err := range w.fs.ReadDir(w.ctx, h, vfs.Pos{}, 0, 0) {
		if err != nil {
			return fmt.Errorf("readdir of %s: %w", path, err)
		}
		names = append(names, string(entry.Name))
	}
	slices.Sort(names)
	for _, name := range names {
		child, _, _, err := w.fs.Lookup(w.ctx, h, name)
		if err != nil {
			return fmt.Errorf("lookup of %s/%s: %w", path, name, err)
		}
		if err := w.walk(child, path+"/"+name, depth-1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) content(h vfs.Handle) (string, error) {
	f, _, err := w.fs.Open(w.ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return "", err
	}
	content, err := readAll(w.ctx, f)
	if closing := f.Close(context.Background()); err == nil {
		err = closing
	}
	return content, err
}
