package place

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestArguments: what the end of an argument says of what it names.
func TestArguments(t *testing.T) {
	for arg, want := range map[string]struct {
		isDir, contents bool
		of              string
	}{
		"a":              {false, false, "a/."},
		"a/":             {true, false, "a/."},
		"a/.":            {true, true, "a/."},
		"a/./":           {true, true, "a/./"},
		"a/..":           {true, true, "a/.."},
		".":              {true, true, "."},
		"..":             {true, true, ".."},
		"a.":             {false, false, "a./."},
		"a/...":          {false, false, "a/.../."},
		"nfs://h/e":      {false, false, "nfs://h/e/."},
		"nfs://h/e/?a=b": {true, false, "nfs://h/e/.?a=b"},
		"nfs://h/e?a=/.": {false, false, "nfs://h/e/.?a=/."},
		"nfs://h/e/.?a":  {true, true, "nfs://h/e/.?a"},
	} {
		if got := MeansDir(arg); got != want.isDir {
			t.Errorf("%q means a directory: %v", arg, got)
		}
		if got := NamesContents(arg); got != want.contents {
			t.Errorf("%q names contents: %v", arg, got)
		}
		if got := ContentsOf(arg); got != want.of {
			t.Errorf("the contents of %q are %q, want %q", arg, got, want.of)
		}
	}
	for path, want := range map[string]string{"a": "a", "a/": "a", "a/././/": "a", "a/..": "a/..", "/a/.": "/a", "a.": "a.", "/": "/", "/.": "/."} {
		if got := withoutEnd(path); got != want {
			t.Errorf("%q without its end is %q, want %q", path, got, want)
		}
	}
}

// TestDivided: what a URL names is known by its name in a directory, unless its end says that a
// directory is meant, or what holds it lies above the export.
func TestDivided(t *testing.T) {
	for arg, want := range map[string][2]string{
		"nfs://h/e/n":             {"nfs://h/e/", "n"},
		"nfs://h/n":               {"nfs://h/", "n"},
		"nfs://h/e/a%2F":          {},
		"nfs://h/e/a%2Fb":         {},
		"nfs://h/e/%2E":           {},
		"nfs://h/e/a%20%3F?uid=0": {"nfs://h/e/?uid=0", "a ?"},
		"nfs://h/e/n?export=/e":   {"nfs://h/e/?export=/e", "n"},
		"nfs://h/e/n?export=/e/n": {},
		"nfs://h/e/n/":            {},
		"nfs://h/e/n/.":           {},
		"nfs://h/":                {},
		"nfs://h":                 {},
		"/e/n":                    {},
		"s3://h/n":                {},
	} {
		if dir, name, ok := divided(arg); ok != (want[1] != "") || ok && want != [2]string{dir, name} {
			t.Errorf("%q is %q in %q, %v, want %q", arg, name, dir, ok, want)
		}
	}
}

// TestReached: what a server or this host answers about a path is an answer; everything
// else says that neither could be asked.
func TestReached(t *testing.T) {
	for _, err := range []error{
		vfs.ErrNoEnt, vfs.ErrNotDir, vfs.ErrAccess, vfs.ErrPerm, vfs.ErrNameTooLong, vfs.ErrOutside,
		syscall.ENOENT, syscall.ENOTDIR, syscall.EACCES, syscall.ELOOP, fs.ErrNotExist,
	} {
		if got := Reached(fmt.Errorf("wrapped: %w", err)); errors.Is(got, ErrUnreachable) {
			t.Errorf("%v: %v", err, got)
		}
	}
	for _, err := range []error{vfs.ErrIO, vfs.ErrStale, vfs.ErrNoAnswer, vfs.ErrServerFault, syscall.EIO, errors.New("else")} {
		if got := Reached(fmt.Errorf("wrapped: %w", err)); !errors.Is(got, ErrUnreachable) || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
	if Reached(nil) != nil {
		t.Error("no error is one")
	}
}
