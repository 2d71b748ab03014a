package mounted

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/internal/testkit/ganesha"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/posixsuite"
)

// configuration is a way from a program to a served directory.
type configuration struct {
	name    string
	peer    bool   // nfs-ganesha serves; else we do
	localio string // as our server has it; "": off
	options string // of the mounts
	cache   bool   // each mount has one of its own
	whole   bool   // what takes long is done on every day, too; elsewhere in a soak alone
	rare    bool   // it is judged in a soak alone
}

var configurations = []configuration{
	{name: "nfsbox", options: "localio=off"},
	{name: "nfsbox, noac", options: "localio=off,noac,lookupcache=none", rare: true},
	{name: "nfsbox, cache", options: "localio=off", cache: true, whole: true},
	{name: "nfsbox, LOCALIO", localio: "on", options: "localio=require"},
	{name: "nfsbox, LOCALIO, cache", localio: "on", options: "localio=require", cache: true},
	{name: "nfsbox, LOCALIO trusted", localio: "trusted", options: "localio=trusted", rare: true},
	{name: "ganesha", peer: true, options: "localio=off,nolock", whole: true},
	{name: "ganesha, cache", peer: true, options: "localio=off,nolock", cache: true},
}

// checks are what each of them is held to.
var checks = []struct {
	name  string
	check func(*testing.T, *site)
	long  bool
}{
	{"POSIX", func(t *testing.T, s *site) {
		at := s.place(t, "posix")
		if s.peer {
			at.Local = "" // nfs-ganesha does not notice what others change
		}
		posixsuite.Run(t, at)
	}, false},
	{"twin", func(t *testing.T, s *site) {
		at := s.place(t, "twin")
		// One deeper on both sides: links that lead above them end where nothing is.
		posixsuite.Twin(t, makeDir(t, at.Dir, "of"), makeDir(t, s.home, "twin", "of"), often(2000, 1_000_000))
	}, false},
	{"exec", testExec, false},
	{"tar", testTar, false},
	{"git", testGit, true},
	{"sqlite", testSQLite, false},
}

// site is a configuration that is there: two mounts of one directory.
type site struct {
	configuration
	a, b *mount
	home string // a directory of this host
	srv  string // what is served, there
}

// TestConfigurations holds each configuration to each check.
func TestConfigurations(t *testing.T) {
	bin := command(t)
	for _, c := range configurations {
		t.Run(c.name, func(t *testing.T) {
			if c.rare && !soak() {
				t.Skip("NOT TESTED but in a soak, NFSBOX_SOAK=1")
			}
			s := c.open(t, bin)
			for _, one := range checks {
				t.Run(one.name, func(t *testing.T) {
					if one.long && !c.whole && !soak() {
						t.Skip("NOT TESTED but in a soak, NFSBOX_SOAK=1")
					}
					one.check(t, s)
				})
			}
		})
	}
}

// open serves a directory, and mounts it twice.
func (c configuration) open(t *testing.T, bin string) *site {
	t.Helper()
	s := &site{configuration: c, home: home(t)}
	s.srv = makeDir(t, s.home, "srv")
	expect.OK(t, os.Chmod(s.srv, 0o777))
	old := filepath.Join(s.srv, "old")
	expect.OK(t, os.WriteFile(old, []byte(strings.Repeat("of old times\n", 50_000)), 0o644))
	made := time.Now()
	spec, options := s.serve(t, bin), s.options
	s.a = s.mount(t, bin, spec, options, "a")
	s.b = s.mount(t, bin, spec, options, "b")
	if c.cache && c.localio == "" {
		// It counts what it does in its directory, and so is asked last, when it has been closed.
		t.Cleanup(func() { hits(t, bin, filepath.Join(s.home, "cache-a")) })
		t.Cleanup(func() {
			expect.Soon(t, "a file that was not changed just now", func() bool { return time.Since(made) > 3*time.Second })
			for range 3 {
				again(t, filepath.Join(s.a.dir, "old"), old)
			}
			if !s.a.end() {
				t.Error("the mount does not end")
			}
		})
	}
	return s
}

// serve serves the site's directory, and returns what a mount is told of it.
func (s *site) serve(t *testing.T, bin string) (spec string) {
	t.Helper()
	if !s.peer {
		mode := s.localio
		if mode == "" {
			mode = "off"
		}
		u, _ := serve(t, bin, s.srv, "--squash=none", "--localio="+mode)
		return u.String()
	}
	if err := ganesha.Missing(); err != nil {
		need.Missing(t, "ganesha", err.Error())
	}
	return ganesha.Start(t, fmt.Sprintf(`EXPORT { Export_Id = 1; Path = %s; Pseudo = /export; Access_Type = RW;
		MaxRead = 1048576; MaxWrite = 1048576; FSAL { Name = VFS; } }`, s.srv)).URL(s.srv)
}

func (s *site) mount(t *testing.T, bin, spec, options, name string) *mount {
	t.Helper()
	if s.cache {
		options += ",cache=" + makeDir(t, s.home, "cache-"+name)
	}
	return mountAt(t, bin, spec, makeDir(t, s.home, name), options)
}

// place is a new directory of the site, for the suites.
func (s *site) place(t *testing.T, name string) posixsuite.Place {
	t.Helper()
	p := posixsuite.Place{Dir: filepath.Join(s.a.dir, name), Other: filepath.Join(s.b.dir, name), Local: filepath.Join(s.srv, name), Locks: s.a.locks && s.b.locks}
	expect.OK(t, os.Mkdir(p.Dir, 0o777))
	expect.Soon(t, "the other mount has the directory", func() bool { _, err := os.Stat(p.Other); return err == nil })
	return p
}

// again reads a file that the kernel shall have no pages of, and compares it.
func again(t *testing.T, path, with string) {
	t.Helper()
	want, err := os.ReadFile(with)
	expect.OK(t, err)
	f, err := os.Open(path)
	expect.OK(t, err)
	defer func() { _ = f.Close() }() // it was read
	expect.OK(t, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
	got := make([]byte, len(want))
	_, err = f.ReadAt(got, 0)
	expect.OK(t, err)
	if string(got) != string(want) {
		t.Errorf("%s is not what is served", path)
	}
}

// hits checks that the cache has been of use.
func hits(t *testing.T, bin, dir string) {
	t.Helper()
	out := tool(t, "/", bin, "cache", "status", "--json", "--dir", dir)
	var status struct{ Hits, Entries int }
	expect.OK(t, json.Unmarshal([]byte(strings.SplitN(out, "\n", 2)[0]), &status))
	if status.Hits == 0 {
		t.Errorf("the cache was of no use:\n%s", out)
	}
}
