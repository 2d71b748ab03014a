//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// source is a tree of source files in the image, and many the directory that the
// host has filled on the server, with manyFiles files.
const (
	source    = "/src"
	many      = "many"
	manyFiles = 10_000
)

// tarTree unpacks a tree onto the server, packs it up there, and compares.
func tarTree(s site) error {
	return all(
		func() error { return tool("/", "tar", "-C", source, "-cf", "/tmp/in.tar", ".") },
		func() error { return os.Mkdir(join(s.a, "tree"), 0o755) },
		func() error { return tool("/", "tar", "-C", join(s.a, "tree"), "-xf", "/tmp/in.tar") },
		func() error { return sameTree(source, join(s.b, "tree")) },
		func() error { return tool("/", "tar", "-C", join(s.b, "tree"), "-cf", join(s.a, "out.tar"), ".") },
		func() error { return os.Mkdir("/tmp/back", 0o755) },
		func() error { return tool("/", "tar", "-C", "/tmp/back", "-xf", join(s.b, "out.tar")) },
		func() error { return sameTree(source, "/tmp/back") },
		func() error { return os.RemoveAll("/tmp/back") },
		func() error { return os.RemoveAll(join(s.a, "tree")) },
	)
}

// sameTree compares two trees: names, types, modes, contents, both ways.
func sameTree(want, got string) error {
	n := 0
	err := filepath.WalkDir(want, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		n++
		rel, err := filepath.Rel(want, path)
		if err != nil {
			return err
		}
		return sameFile(path, join(got, rel), d)
	})
	if err != nil {
		return err
	}
	err = filepath.WalkDir(got, func(_ string, _ fs.DirEntry, err error) error {
		n--
		return err
	})
	if err == nil && n != 0 {
		err = fmt.Errorf("%s has %d entries less than %s", got, n, want)
	}
	return err
}

func sameFile(want, got string, d fs.DirEntry) error {
	a, err := d.Info()
	if err != nil {
		return err
	}
	b, err := os.Lstat(got)
	if err != nil {
		return err
	}
	if a.Mode() != b.Mode() {
		return fmt.Errorf("%s: mode %v, want %v", got, b.Mode(), a.Mode())
	}
	if !a.Mode().IsRegular() {
		return nil
	}
	x, err := os.ReadFile(want)
	if err != nil {
		return err
	}
	y, err := os.ReadFile(got)
	if err == nil && !bytes.Equal(x, y) {
		err = fmt.Errorf("%s: %d bytes that are not the %d of %s", got, len(y), len(x), want)
	}
	return err
}

// gitTree makes a repository of the tree on the server, clones it there, works in the clone,
// and runs git fsck.
func gitTree(s site) error {
	git := func(dir string, args ...string) func() error {
		args = append([]string{"-c", "user.name=guest", "-c", "user.email=guest@localhost", "-c", "safe.directory=*", "-c", "gc.auto=0"}, args...)
		return func() error { return tool(dir, "git", args...) }
	}
	origin, clone := join(s.a, "origin"), join(s.b, "clone")
	return all(
		func() error { return tool("/", "cp", "-r", source, origin) },
		git(origin, "init", "-q"),
		git(origin, "add", "."),
		git(origin, "commit", "-q", "-m", "all of it"),
		git(s.b, "clone", "-q", join(s.b, "origin"), clone),
		func() error { return put(join(clone, "new"), "a line\n") },
		git(clone, "add", "new"),
		git(clone, "commit", "-q", "-m", "more"),
		git(clone, "fsck", "--full", "--strict"),
		git(clone, "diff", "--exit-code", "HEAD~1", "--", ".", ":!new"),
		func() error {
			out, err := output(clone, "git", "-c", "safe.directory=*", "status", "--porcelain")
			if err == nil && out != "" {
				err = fmt.Errorf("git status: %s", out)
			}
			return err
		},
	)
}

// sqlite fills a data base on the server and has it check itself, by the other
// mount.
func sqlite(s site) error {
	var script strings.Builder
	script.WriteString("create table t (id integer primary key, x text, y blob); create index i on t (x);\n")
	for batch := range 10 {
		script.WriteString("begin;\n")
		for i := range 100 {
			fmt.Fprintf(&script, "insert into t values (%d, 'text %d', zeroblob(500));\n", batch*100+i, i)
		}
		script.WriteString("commit;\n")
	}
	script.WriteString("begin; delete from t where id % 3 = 0; rollback; delete from t where id % 5 = 0;\n")
	if err := put("/tmp/script", script.String()); err != nil {
		return err
	}
	if err := tool("/", "sqlite3", join(s.a, "db"), ".read /tmp/script"); err != nil {
		return err
	}
	out, err := output("/", "sqlite3", join(s.b, "db"), "pragma integrity_check; select count(*) from t;")
	if err == nil && out != "ok\n800\n" {
		err = fmt.Errorf("the data base says %q", out)
	}
	return err
}

// manyEntries lists a large directory while names come and go there: every file
// that stays is listed, once.
func manyEntries(site) error {
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			path := join("/mnt/b", many, fmt.Sprintf("passing-%d", i%50))
			if err := errors.Join(put(path, ""), os.Remove(path)); err != nil {
				done <- err
				return
			}
		}
	}()
	var err error
	for range 3 {
		if err = listMany(); err != nil {
			break
		}
	}
	close(stop)
	return errors.Join(err, <-done)
}

func listMany() error {
	d, err := os.Open(join("/mnt/a", many))
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	seen := make(map[string]bool)
	stay := 0
	for _, name := range names {
		if !strings.HasPrefix(name, "stays-") {
			continue
		}
		if seen[name] {
			return fmt.Errorf("%s is listed twice", name)
		}
		seen[name] = true
		stay++
	}
	if stay != manyFiles {
		return fmt.Errorf("%d files are listed of %d", stay, manyFiles)
	}
	return nil
}
