package mounted

import (
	"fmt"
	"go/build"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// program ends the test if this machine lacks a program of Debian's packages.
func program(t *testing.T, name string) {
	t.Helper()
	need.Tool(t, "fuse", name)
}

// testExec starts programs while files are open for writing, and bytes of them on their way. execve(2) closes them in the
// new process, in which nobody can read its state until that is done.
func testExec(t *testing.T, s *site) {
	p := s.place(t, "exec")
	for i := range 20 {
		f, err := os.Create(filepath.Join(p.Dir, fmt.Sprint("f", i)))
		expect.OK(t, err)
		defer func() { expect.OK(t, f.Close()) }()
		_, err = f.WriteString("text")
		expect.OK(t, err)
		tool(t, "/", "true")
	}
}

// source is a tree of source files: a part of Go's own, and all of it in a soak.
func source() string {
	if soak() {
		return filepath.Join(build.Default.GOROOT, "src")
	}
	return filepath.Join(build.Default.GOROOT, "src", "encoding")
}

// odd makes what a source tree has none of: hard links, holes, empty directories, odd names and modes, and symbolic links
// unless they are left out.
func odd(t *testing.T, dir string, links bool) {
	t.Helper()
	at := makeDir(t, dir, "odd")
	expect.OK(t, os.WriteFile(filepath.Join(at, "a name\n\xff"), []byte("text"), 0o600))
	expect.OK(t, os.WriteFile(filepath.Join(at, "run"), []byte("#!/bin/sh\n"), 0o755))
	expect.OK(t, syscall.Chmod(filepath.Join(at, "run"), 0o4755))
	expect.OK(t, os.Link(filepath.Join(at, "run"), filepath.Join(at, "walk")))
	expect.OK(t, syscall.Mkfifo(filepath.Join(at, "fifo"), 0o640))
	makeDir(t, at, "empty")
	expect.OK(t, os.WriteFile(filepath.Join(at, "hole"), []byte("end"), 0o644))
	expect.OK(t, os.Truncate(filepath.Join(at, "hole"), 3<<20))
	if links {
		expect.OK(t, os.Symlink("../odd/run", filepath.Join(at, "link")))
		expect.OK(t, os.Symlink("nowhere", filepath.Join(at, "broken")))
		expect.OK(t, unix.Lchown(filepath.Join(at, "link"), 1234, 4321))
	}
}

// pack are tar's arguments for an archive that is the same each time, with times as exact as disks have them.
func pack(file, dir string) []string {
	return []string{"--sort=name", "--format=posix", "--pax-option=delete=atime,delete=ctime", "--numeric-owner", "-cf", file, "-C", dir, "."}
}

// testTar unpacks a source tree by one mount, and packs it by the other: the archives are the same.
func testTar(t *testing.T, s *site) {
	program(t, "tar")
	p := s.place(t, "tar")
	tree, in, out := filepath.Join(s.home, "tree"), filepath.Join(s.home, "in.tar"), filepath.Join(s.home, "out.tar")
	tool(t, "/", "cp", "-a", source(), tree)
	odd(t, tree, !s.peer) // nfs-ganesha keeps no times of links
	tool(t, "/", "tar", pack(in, tree)...)
	tool(t, "/", "tar", "-xpf", in, "-C", p.Dir)
	tool(t, "/", "tar", pack(out, p.Other)...)
	tool(t, "/", "cmp", in, out)
	tool(t, "/", "tar", pack(out, p.Local)...)
	tool(t, "/", "cmp", in, out)
	tool(t, "/", "rm", "-r", p.Dir)
}

// git are the arguments of git(1) for a repository that belongs to whomever.
func git(args ...string) []string {
	return append([]string{"-c", "user.name=judge", "-c", "user.email=judge@localhost", "-c", "safe.directory=*", "-c", "gc.auto=0"}, args...)
}

// testGit makes a repository on one mount and clones it on the other. git finds nothing wrong with either.
func testGit(t *testing.T, s *site) {
	program(t, "git")
	p := s.place(t, "git")
	origin, clone := filepath.Join(p.Dir, "origin"), filepath.Join(p.Other, "clone")
	from := source()
	if !soak() {
		from = filepath.Join(from, "json")
	}
	tool(t, "/", "cp", "-r", from, origin)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "all of it"}} {
		tool(t, origin, "git", git(args...)...)
	}
	tool(t, p.Other, "git", git("clone", "-q", filepath.Join(p.Other, "origin"), clone)...)
	expect.OK(t, os.WriteFile(filepath.Join(clone, "new"), []byte("a line\n"), 0o644))
	tool(t, clone, "git", git("add", "new")...)
	tool(t, clone, "git", git("commit", "-q", "-m", "more")...)
	tool(t, clone, "git", git("diff", "--exit-code", "HEAD~1", "--", ".", ":!new")...)
	for _, dir := range []string{origin, clone, filepath.Join(p.Dir, "clone"), filepath.Join(p.Local, "clone")} {
		tool(t, dir, "git", git("fsck", "--full", "--strict")...)
		if out := tool(t, dir, "git", git("status", "--porcelain")...); out != "" {
			t.Errorf("%s: git status: %s", dir, out)
		}
	}
	tool(t, "/", "rm", "-r", filepath.Join(p.Dir, "origin"), filepath.Join(p.Dir, "clone"))
}

// testSQLite has two programs write to one data base at the same time: by two mounts where locks are the server's, else
// by one. It holds all that they have written, and finds itself sound.
func testSQLite(t *testing.T, s *site) {
	program(t, "sqlite3")
	p := s.place(t, "sqlite")
	dirs := []string{p.Dir, p.Other}
	if !p.Locks {
		dirs[1] = p.Dir
	}
	tool(t, "/", "sqlite3", filepath.Join(p.Dir, "db"), "create table t (id integer primary key, by int, x text, y blob); create index i on t (x);")
	rows := often(25, 1000)
	ends := make(chan error, len(dirs))
	for by, dir := range dirs {
		var script strings.Builder
		script.WriteString(".bail on\n.timeout 60000\n")
		for n := range rows {
			fmt.Fprintf(&script, "begin immediate; insert into t (by, x, y) values (%d, 'text %d', randomblob(3000)); commit;\n", by, n)
		}
		expect.OK(t, os.WriteFile(filepath.Join(s.home, fmt.Sprint("script", by)), []byte(script.String()), 0o644))
		go func() {
			_, err := run("/", "sqlite3", filepath.Join(dir, "db"), ".read "+filepath.Join(s.home, fmt.Sprint("script", by)))
			ends <- err
		}()
	}
	for range dirs {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	for _, dir := range append(dirs, p.Local) {
		const query = "pragma integrity_check; select count(*), sum(by) from t;"
		if out, want := tool(t, "/", "sqlite3", filepath.Join(dir, "db"), query), fmt.Sprintf("ok\n%d|%d\n", 2*rows, rows); out != want {
			t.Errorf("%s: the data base says %q, want %q", dir, out, want)
		}
	}
}
