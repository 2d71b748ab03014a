package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/nfsbox/nfsbox/compare/internal/disk"
)

const (
	maxSmall  = 16 << 10 // bytes of a small file, at most
	largeSize = 64 << 20 // bytes of a large one
	perDir    = 100      // small files of a directory
)

// tree is what is backed up.
type tree struct {
	path         string
	files, large int
	objects      int
	bytes        int64
}

// fill makes the tree, the same one each time.
func (t *tree) fill() error {
	from := rand.NewChaCha8([32]byte{})
	sizes := rand.New(from)
	for i := range t.files {
		dir := filepath.Join(t.path, fmt.Sprintf("small/d%05d", i/perDir))
		if i%perDir == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		if err := write(filepath.Join(dir, fmt.Sprintf("f%02d", i%perDir)), from, 1+sizes.Int64N(maxSmall)); err != nil {
			return err
		}
	}
	dir := filepath.Join(t.path, "large")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i := range t.large {
		if err := write(filepath.Join(dir, fmt.Sprintf("f%03d", i)), from, largeSize); err != nil {
			return err
		}
	}
	var err error
	t.objects, t.bytes, err = disk.Size(t.path)
	return err
}

// write makes a file of n bytes.
func write(path string, from io.Reader, n int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, from, n)
	return errors.Join(err, f.Close())
}

// same says if what was restored has not as many objects and bytes as the tree.
func (t *tree) same(path string) error {
	objects, bytes, err := disk.Size(path)
	if err == nil && (objects != t.objects || bytes != t.bytes) {
		err = fmt.Errorf("%d objects of %d bytes were restored, of %d of %d", objects, bytes, t.objects, t.bytes)
	}
	return err
}
