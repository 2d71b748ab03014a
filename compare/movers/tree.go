package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/nfsbox/nfsbox/compare/internal/disk"
)

const (
	smallSize = 4096 // bytes of a file of the second tree
	perDir    = 100  // files of a directory of it
)

// tree is a directory that is copied.
type tree struct {
	name, path string
	objects    int
	bytes      int64
}

// fill makes n small files.
func (t *tree) fill(n int) error {
	block := make([]byte, smallSize)
	for i := range block {
		block[i] = byte(i * 7)
	}
	for i := range n {
		dir := filepath.Join(t.path, fmt.Sprintf("d%05d", i/perDir))
		if i%perDir == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%02d", i%perDir)), block, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// count counts what is in the tree.
func (t *tree) count() (err error) {
	t.objects, t.bytes, err = disk.Size(t.path)
	return err
}

// same says if a copy has not as many objects and bytes as the tree.
func (t *tree) same(path string) error {
	objects, bytes, err := disk.Size(path)
	if err == nil && (objects != t.objects || bytes != t.bytes) {
		err = fmt.Errorf("the copy has %d objects of %d bytes, and the source %d of %d", objects, bytes, t.objects, t.bytes)
	}
	return err
}
