//go:build linux

package outsider

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// write makes a file with this text, and the directories above it.
func (b *box) write(path, text string) {
	b.Helper()
	b.no(os.MkdirAll(filepath.Dir(path), 0o755))
	b.no(os.WriteFile(path, []byte(text), 0o644))
}

// text is what a file holds.
func (b *box) text(path string) string {
	b.Helper()
	text, err := os.ReadFile(path)
	b.no(err)
	return string(text)
}

// pattern is n bytes of which no two blocks are alike.
func pattern(n int, seed byte) []byte {
	var p bytes.Buffer
	for i := 0; p.Len() < n; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %d", seed, i))
		p.Write(sum[:])
	}
	return p.Bytes()[:n]
}

// names are all objects below dir, by their paths, sorted.
func (b *box) names(dir string) []string {
	b.Helper()
	var all []string
	b.no(filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); rel != "." {
			all = append(all, rel)
		}
		return err
	}))
	slices.Sort(all)
	return all
}

// fingerprint says what an object is: type, mode, mtime, contents or target.
func (b *box) fingerprint(path string) string {
	b.Helper()
	info, err := os.Lstat(path)
	b.no(err)
	mark := fmt.Sprintf("%v %d", info.Mode(), info.ModTime().UnixNano())
	switch {
	case info.Mode().IsRegular():
		data, err := os.ReadFile(path)
		b.no(err)
		return fmt.Sprintf("%s %d %x", mark, len(data), sha256.Sum256(data))
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		b.no(err)
		return "link to " + target // what its time is, not every file system keeps
	}
	return mark
}

// same compares two trees, object by object, without the command's help.
func (b *box) same(want, got string) {
	b.Helper()
	left, right := b.names(want), b.names(got)
	if !slices.Equal(left, right) {
		b.Fatalf("%s and %s hold other names:\n%s\n%s", want, got, strings.Join(left, " "), strings.Join(right, " "))
	}
	for _, name := range left {
		l, r := b.fingerprint(filepath.Join(want, name)), b.fingerprint(filepath.Join(got, name))
		if l != r {
			b.Errorf("%s: %s\ncopied as %s", name, l, r)
		}
	}
}

// inode is an object's inode number.
func (b *box) inode(path string) uint64 {
	b.Helper()
	info, err := os.Lstat(path)
	b.no(err)
	return info.Sys().(*syscall.Stat_t).Ino
}

// before is a time that no file has by chance.
func (b *box) before() time.Time { return time.Date(1999, 12, 31, 23, 59, 58, 123456789, time.UTC) }

// mtime is when an object was changed last.
func (b *box) mtime(path string) time.Time {
	b.Helper()
	info, err := os.Lstat(path)
	b.no(err)
	return info.ModTime()
}
