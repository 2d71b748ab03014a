//go:build linux

package outsider

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestStricterExportWithin: an export for few lies below one for all, by which everybody
// reaches it. A check, a start and a reload say so, and only of such a one.
func TestStricterExportWithin(t *testing.T) {
	b := newBox(t)
	b.no(os.MkdirAll(b.path("srv", "secret"), 0o755))
	b.no(os.MkdirAll(b.path("srvs"), 0o755))
	config := func(rest string) string {
		return fmt.Sprintf("[[export]]\npath = \"/srv\"\ndir = %q\nro = true\n[[export]]\npath = \"/secret\"\ndir = %q\n%s",
			b.path("srv"), b.path("srv", "secret"), rest)
	}
	file := b.path("nfsbox.toml")
	same, few := config("ro = true\n"), config("allow = [\"10.0.0.1\"]\n")
	const told = "export=/secret within=/srv client=* "

	b.write(file, same)
	if r := b.must(0, "serve", "-c", file, "--check"); strings.Contains(r.stderr, "within=") {
		t.Errorf("where both let everybody read:\n%s", r.stderr)
	}
	state, err := os.MkdirTemp(b.dir, ".served-")
	b.no(err)
	s := b.serveWith(state, "127.0.0.1:0", "-c", file, "--localio=off")
	if strings.Contains(s.log.String(), "within=") {
		t.Errorf("a start where both let everybody read:\n%s", s.log)
	}

	b.write(file, few)
	if r := b.must(0, "serve", "-c", file, "--check"); strings.Count(r.stderr, told) != 1 {
		t.Errorf("--check of an export for few within one for all says:\n%s", r.stderr)
	}
	s.signal(syscall.SIGHUP)
	b.until("the reload says it", func() bool { return strings.Contains(s.log.String(), told) })
	s.stop()

	again := b.serveWith(state, "127.0.0.1:0", "-c", file, "--localio=off")
	if strings.Count(again.log.String(), told) != 1 {
		t.Errorf("a start with an export for few within one for all says:\n%s", again.log)
	}
}

// TestStricterExportMounted: what is mounted below an export is reached by it only where
// it serves mounts.
func TestStricterExportMounted(t *testing.T) {
	root(t, "to mount")
	b := newBox(t)
	b.no(os.Mkdir(b.path("srv"), 0o755))
	b.mount("none", b.path("srv", "secret"), "tmpfs", "")
	file := b.path("nfsbox.toml")
	for _, crosses := range []bool{false, true} {
		b.write(file, fmt.Sprintf("[[export]]\npath = \"/srv\"\ndir = %q\ncrossmnt = %v\n[[export]]\npath = \"/secret\"\ndir = %q\nsecure = true\n",
			b.path("srv"), crosses, b.path("srv", "secret")))
		if r := b.must(0, "serve", "-c", file, "--check"); strings.Contains(r.stderr, "export=/secret within=/srv") != crosses {
			t.Errorf("crossmnt = %v:\n%s", crosses, r.stderr)
		}
	}
}

// TestStateDirectoryOfOthers: a server does not keep its key where others can put another
// one in its place, and says what to do. It takes what systemd, packages and an umask of
// a user with a group of its own make, and what is sticky.
func TestStateDirectoryOfOthers(t *testing.T) {
	b := newBox(t)
	b.no(os.Mkdir(b.path("srv"), 0o755))
	me := os.Getuid()
	for _, x := range []struct {
		mode     uint32
		uid, gid int
		want     string // "": it serves
	}{
		{0o777, me, me, "chmod 700"},
		{0o702, me, me, "chmod 700"},
		{0o770, me, me + 1, "chmod 700"},
		{0o700, me + 1, me, "chown"},
		{0o755, me, me + 1, ""},
		{0o775, me, me, ""},
		{0o1777, me, me, ""},
		{0o1777, me + 1, me, "chown"},
	} {
		dir := b.path(fmt.Sprintf("state-%o-%d-%d", x.mode, x.uid, x.gid))
		b.no(os.Mkdir(dir, 0o700))
		if x.uid != me || x.gid != os.Getgid() {
			if me != 0 {
				continue // it takes root to make it
			}
			b.no(os.Chown(dir, x.uid, x.gid))
		}
		b.no(syscall.Chmod(dir, x.mode))
		if x.want == "" {
			b.serveWith(dir, "127.0.0.1:0", b.path("srv"), "--localio=off").stop()
			continue
		}
		for _, more := range []string{"--check", "--localio=off"} {
			r := b.must(1, "serve", b.path("srv"), "--listen=127.0.0.1:0", "--state-dir", dir, more)
			if !strings.Contains(r.stderr, dir) || !strings.Contains(r.stderr, x.want) {
				t.Errorf("%s with %04o of %d:%d says %q, want %q", more, x.mode, x.uid, x.gid, r.stderr, x.want)
			}
		}
		if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
			t.Errorf("made in a directory that was refused: %v, %v", made, err)
		}
	}
}
