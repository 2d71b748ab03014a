//go:build linux

package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// image is an initramfs that is being written: a cpio archive in the "newc"
// format of the kernel's initramfs documentation.
type image struct {
	w    *bufio.Writer
	file *os.File
	ino  int
	have map[string]bool
	err  error // the first; the rest is then left out
}

func newImage(name string) (*image, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return &image{w: bufio.NewWriterSize(f, 1<<20), file: f, have: make(map[string]bool)}, nil
}

func (m *image) close() error {
	m.entry("TRAILER!!!", 0, nil)
	if m.err == nil {
		m.err = m.w.Flush()
	}
	return errors.Join(m.err, m.file.Close())
}

// entry writes one member: a header of numbers in hexadecimal, the name, the
// data, the last two padded to a multiple of four.
func (m *image) entry(name string, mode uint32, data []byte) {
	if m.err != nil {
		return
	}
	m.ino++
	head := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		m.ino, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
	for _, part := range []string{head, string(data)} {
		if _, m.err = io.WriteString(m.w, part+"\x00\x00\x00"[:-len(part)&3]); m.err != nil {
			return
		}
	}
}

// Types of members.
const (
	typeDir  = 0o040000
	typeFile = 0o100000
	typeLink = 0o120000
)

func (m *image) parents(name string) {
	if dir := path.Dir(name); dir != "." && dir != "/" {
		m.dir(dir)
	}
}

func (m *image) dir(name string) {
	if name = strings.Trim(name, "/"); m.have[name] {
		return
	}
	m.have[name] = true
	m.parents(name)
	m.entry(name, typeDir|0o755, nil)
}

func (m *image) add(name string, mode uint32, data []byte) {
	if name = strings.Trim(name, "/"); m.have[name] {
		return
	}
	m.have[name] = true
	m.parents(name)
	m.entry(name, mode, data)
}

func (m *image) copy(name, from string) {
	info, err := os.Stat(from)
	if err == nil {
		var data []byte
		if data, err = os.ReadFile(from); err == nil {
			m.add(name, typeFile|uint32(info.Mode().Perm()), data)
		}
	}
	m.err = errors.Join(m.err, err)
}

// library finds the paths in what ldd(1) prints.
var library = regexp.MustCompile(`(?m)(/\S+) \(0x`)

// program adds a program of this machine, found in the path or at a path, with
// the libraries that it is linked to.
func (m *image) program(ctx context.Context, name string) {
	from, err := exec.LookPath(name)
	if err != nil {
		m.err = errors.Join(m.err, err)
		return
	}
	m.copy("/usr/bin/"+filepath.Base(name), from)
	out, err := run(ctx, "", "ldd", from)
	if err != nil {
		return // it is static
	}
	if strings.Contains(out, "not found") {
		m.err = errors.Join(m.err, fmt.Errorf("%s lacks libraries: %s", name, out))
	}
	for _, lib := range library.FindAllStringSubmatch(out, -1) {
		m.copy(lib[1], lib[1])
	}
}

// tree adds the files below a directory that keep says yes to.
func (m *image) tree(name, from string, keep func(path string, d fs.DirEntry) bool) {
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && !keep(p, d):
			return filepath.SkipDir
		case !d.Type().IsRegular() || !keep(p, d):
			return nil
		}
		rel, err := filepath.Rel(from, p)
		if err == nil {
			m.copy(path.Join(name, filepath.ToSlash(rel)), p)
		}
		return err
	})
	m.err = errors.Join(m.err, err)
}
