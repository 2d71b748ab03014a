//go:build linux

package outsider

import (
	"fmt"
	"os"
	"path/filepath"
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

	b.write(file, few)
	if r := b.must(0, "serve", "-c", file, "--check"); strings.Count(r.stderr, told) != 1 {
		t.Errorf("--check of an export for few within one for all says:\n%s", r.stderr)
	}
	s.signal(syscall.SIGHUP)
	b.until("the reload says it", func() bool { return strings.Contains(s.log.String(), told) })
	s.stop() // then all of the log is there
	if strings.Count(s.log.String(), "within=") != 1 {
		t.Errorf("a start where both let everybody read says it, too:\n%s", s.log)
	}

	again := b.serveWith(state, "127.0.0.1:0", "-c", file, "--localio=off")
	again.stop()
	if strings.Count(again.log.String(), told) != 1 {
		t.Errorf("a start with an export for few within one for all says:\n%s", again.log)
	}
}

// TestNobodyIsRootByNumber: where nobody is user 0, or in group 0, a check, a start and a
// reload say who is root then. Other numbers are told nobody of.
func TestNobodyIsRootByNumber(t *testing.T) {
	root(t, "only root can act as root")
	b := newBox(t)
	b.no(os.MkdirAll(b.path("srv"), 0o755))
	file := b.path("nfsbox.toml")
	config := func(rest string) string {
		return fmt.Sprintf("[[export]]\npath = \"/srv\"\ndir = %q\n%s", b.path("srv"), rest)
	}
	for rest, want := range map[string]string{
		"squash = \"all\"\nanonuid = 0\n":                              "anonuid is 0: every caller is root in the export",
		"squash = \"all\"\nanongid = 0\n":                              "anongid is 0: every caller is in the group of root in the export",
		"squash = \"root\"\nanonuid = 0\n":                             "anonuid is 0: root of a client, and a caller who does not say who it is, is root in the export",
		"clients = [{match = \"*\", squash = \"all\", anonuid = 0}]\n": "anonuid is 0: every caller is root in the export",
		"squash = \"all\"\nanonuid = 1000\nanongid = 1000\n":           "",
	} {
		b.write(file, config(rest))
		if r := b.must(0, "serve", "-c", file, "--check"); !strings.Contains(r.stderr, want) || want == "" && strings.Contains(r.stderr, "anon") {
			t.Errorf("--check of %q says:\n%s", rest, r.stderr)
		}
	}
	state, err := os.MkdirTemp(b.dir, ".served-")
	b.no(err)
	b.write(file, config("squash = \"all\"\n"))
	s := b.serveWith(state, "127.0.0.1:0", "-c", file, "--localio=off")
	b.write(file, config("squash = \"all\"\nanonuid = 0\n"))
	s.signal(syscall.SIGHUP)
	b.until("the reload says it", func() bool { return strings.Contains(s.log.String(), "every caller is root") })
	s.stop()
	again := b.serveWith(state, "127.0.0.1:0", "-c", file, "--localio=off")
	again.stop()
	if strings.Count(again.log.String(), "every caller is root") != 1 {
		t.Errorf("a start says:\n%s", again.log)
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

// TestStricterExportBound: a directory is reached by an export that it lies within, whatever
// mount shows it. Where something is mounted on it, no way leads there from above.
func TestStricterExportBound(t *testing.T) {
	root(t, "to mount")
	b := newBox(t)
	for _, dir := range []string{"data/the secret", "here", "more/below"} {
		b.no(os.MkdirAll(b.path("srv", dir), 0o755))
	}
	b.mount("none", b.path("srv", "other"), "tmpfs", "")
	b.no(os.Mkdir(b.path("srv", "other", "in"), 0o755))
	b.no(os.Mkdir(b.path("beside"), 0o755))
	for _, x := range []struct{ source, target string }{
		{"srv/data/the secret", "srv/secret"}, {"srv/data/the secret", "far"}, {"srv", "again"}, {"srv/here", "srv/here"},
		{"beside", "srv/beside"}, {"srv/more", "srv/more"}, {"srv/other/in", "far in"},
	} {
		b.mount(b.path(x.source), b.path(x.target), "bind", "")
	}
	file := b.path("nfsbox.toml")
	for _, x := range []struct {
		dir              string
		within, crossing bool // as the warning says, without and with mounts below
	}{
		{"srv/secret", true, true}, {"srv/data/the secret", true, true}, {"far", true, true}, {"again", true, true},
		{"srv/here", false, true}, {"srv/more/below", false, true}, {"srv/beside", false, true}, {"beside", false, true},
		{"srv/other/in", false, true}, {"far in", false, true},
	} {
		for crosses, want := range map[bool]bool{false: x.within, true: x.crossing} {
			b.write(file, fmt.Sprintf("[[export]]\npath = \"/srv\"\ndir = %q\ncrossmnt = %v\n[[export]]\npath = \"/secret\"\ndir = %q\nsecure = true\n",
				b.path("srv"), crosses, b.path(x.dir)))
			if r := b.must(0, "serve", "-c", file, "--check"); strings.Contains(r.stderr, "export=/secret within=/srv") != want {
				t.Errorf("%s, crossmnt = %v, want %v:\n%s", x.dir, crosses, want, r.stderr)
			}
		}
	}
}

// TestSameDirectoryTwice: a directory is exported twice. A client that the rules of one
// keep out gets in by those of the other: a check and a start say so.
func TestSameDirectoryTwice(t *testing.T) {
	b := newBox(t)
	b.no(os.Mkdir(b.path("srv"), 0o755))
	b.no(os.Symlink("srv", b.path("link")))
	file := b.path("nfsbox.toml")
	for _, x := range []struct {
		dir, strict string
		want        int
	}{{"srv", "ro = true\nallow = [\"10.9.9.9\"]\n", 1}, {"link", "secure = true\n", 1}, {"srv", "", 0}} {
		b.write(file, fmt.Sprintf("[[export]]\npath = \"/a\"\ndir = %q\n%s[[export]]\npath = \"/zz\"\ndir = %q\n",
			b.path(x.dir), x.strict, b.path("srv")))
		state, err := os.MkdirTemp(b.dir, ".served-")
		b.no(err)
		s := b.serveWith(state, "127.0.0.1:0", "-c", file, "--localio=off")
		s.stop() // then all of the log is there
		for when, text := range map[string]string{"a check": b.must(0, "serve", "-c", file, "--check").stderr, "a start": s.log.String()} {
			if told := strings.Count(text, "export=/a within=/zz client=* "); told != x.want || strings.Count(text, "within=") != x.want {
				t.Errorf("%s with %q says:\n%s", when, x.strict, text)
			}
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
		if !b.give(dir, x.mode, x.uid, x.gid) {
			continue
		}
		if x.want == "" {
			b.serveWith(dir, "127.0.0.1:0", b.path("srv"), "--localio=off").stop()
			continue
		}
		b.refused(dir, dir, x.want)
		if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
			t.Errorf("made in a directory that was refused: %v, %v", made, err)
		}
	}
}

// give gives a directory this mode and owner. It reports that it cannot where it takes root.
func (b *box) give(dir string, mode uint32, uid, gid int) bool {
	b.Helper()
	if uid != os.Getuid() || gid != os.Getgid() {
		if os.Getuid() != 0 {
			b.Logf("NOT TESTED: it takes root to make a directory of user %d and group %d", uid, gid)
			return false
		}
		b.no(os.Chown(dir, uid, gid))
	}
	b.no(syscall.Chmod(dir, mode))
	return true
}

// refused has a start and a --check with this state directory say what is wrong with path.
func (b *box) refused(state, path, want string) {
	b.Helper()
	for _, more := range []string{"--check", "--localio=off"} {
		r := b.run("serve", b.path("srv"), "--listen=127.0.0.1:0", "--state-dir", state, more)
		if r.status != 1 || !strings.Contains(r.stderr, path) || !strings.Contains(r.stderr, want) {
			b.Errorf("%s with %s: status %d, %q, want %q", more, state, r.status, r.stderr, want)
			return // it would serve
		}
	}
}

// TestStateDirectoryBelowOthers: a server does not keep its key below a directory, or a
// link, that others can put something else in the place of, and says what to do. It does
// if it is told to.
func TestStateDirectoryBelowOthers(t *testing.T) {
	b := newBox(t)
	b.no(os.Mkdir(b.path("srv"), 0o755))
	me := os.Getuid()
	for _, x := range []struct {
		mode     uint32
		uid, gid int
		want     string // "": it serves
	}{
		{0o777, me, me, "chmod go-w"},
		{0o770, me, me + 1, "chmod go-w"},
		{0o755, me + 1, me, "chown it"},
		{0o1777, me + 1, me, "chown it"},
		{0o1777, me, me, ""},
		{0o775, me, me, ""},
	} {
		above := b.path(fmt.Sprintf("above-%o-%d-%d", x.mode, x.uid, x.gid))
		state := filepath.Join(above, "between", "state")
		b.no(os.MkdirAll(filepath.Dir(state), 0o700))
		if !b.give(above, x.mode, x.uid, x.gid) {
			continue
		}
		if x.want == "" {
			b.serveWith(state, "127.0.0.1:0", b.path("srv"), "--localio=off").stop()
			continue
		}
		b.refused(state, above, x.want)
		if _, err := os.Lstat(state); err == nil {
			t.Errorf("%s was made, and is refused", state)
		}
		b.serveWith(state, "127.0.0.1:0", b.path("srv"), "--localio=off", "--trust-state-path").stop()
		b.refused(state, above, x.want)
	}
	root(t, "to be two users")
	sticky, link := b.path("sticky"), b.path("sticky", "link")
	b.no(os.Mkdir(sticky, 0o700))
	b.no(syscall.Chmod(sticky, 0o1777))
	b.no(os.Mkdir(b.path("own"), 0o700))
	b.no(os.Symlink(b.path("own"), link))
	b.no(os.Lchown(link, 1, 1))
	b.refused(filepath.Join(link, "state"), link, "chown -h it")
	b.no(os.Lchown(link, 0, 0))
	b.serveWith(filepath.Join(link, "state"), "127.0.0.1:0", b.path("srv"), "--localio=off").stop()
}

// TestCheckOfState: --check finds what a start would find wrong with what lies in the state
// directory, and leaves all of it as it is.
func TestCheckOfState(t *testing.T) {
	b := newBox(t)
	b.no(os.Mkdir(b.path("srv"), 0o755))
	state := b.path("state")
	args := []string{"serve", b.path("srv"), "--listen=127.0.0.1:0", "--state-dir", state, "--check"}
	b.must(0, args...)
	if _, err := os.Lstat(state); err == nil {
		t.Error("--check has made the state directory")
	}
	b.write(state, "no directory")
	b.refused(state, state, "no directory")
	b.no(os.Remove(state))
	running := b.serveWith(state, "127.0.0.1:0", b.path("srv"), "--localio=off")
	b.must(0, args...) // beside the server
	running.stop()
	all, err := filepath.Glob(filepath.Join(state, "*"))
	b.no(err)
	if len(all) != 1 {
		t.Fatalf("in the state directory: %v", all)
	}
	own := all[0]
	key, locks := filepath.Join(own, "handles.key"), filepath.Join(own, "locks")
	for _, x := range []struct {
		path, want string
		mode       os.FileMode // that is wrong
	}{
		{own, "open to others", 0o777}, {locks, "open to others", 0o750}, {key, "open to others", 0o644},
	} {
		info, err := os.Lstat(x.path)
		b.no(err)
		b.no(os.Chmod(x.path, x.mode))
		b.refused(state, x.path, x.want)
		b.no(os.Chmod(x.path, info.Mode()))
	}
	text := b.text(key)
	b.no(os.WriteFile(key, []byte(text[:9]), 0o600))
	b.refused(state, key, "damaged")
	if now := b.text(key); now != text[:9] {
		t.Errorf("the key was changed to %q", now)
	}
	b.no(os.WriteFile(key, []byte(text), 0o600))
	for _, path := range []string{filepath.Join(own, "lock"), filepath.Join(locks, "nsm-state")} {
		b.no(os.Rename(path, path+".aside"))
		b.no(os.Mkdir(path, 0o700))
		b.refused(state, path, "no regular file")
		b.no(os.Remove(path))
		b.no(syscall.Mkfifo(path, 0o600))
		b.refused(state, path, "no regular file")
		b.no(os.Remove(path))
		b.no(os.Rename(path+".aside", path))
	}
	b.must(0, args...)

	root(t, "to be two users")
	b.no(syscall.Chmod(state, 0o1777)) // where another user plants the folder before the server makes it
	for _, path := range []string{own, key} {
		b.no(os.Lchown(path, 1, 1))
		b.refused(state, path, "belongs to another user")
		b.no(os.Lchown(path, 0, 0))
	}
}

// TestCheckOfDisk: --check finds, as a start does, that the state directory is on a file
// system that is full or read-only, and that nothing is mounted where each export needs it.
func TestCheckOfDisk(t *testing.T) {
	root(t, "to mount")
	b := newBox(t)
	b.no(os.Mkdir(b.path("srv"), 0o755))
	disk := b.path("disk")
	b.mount("none", disk, "tmpfs", "size=64k,mode=0700")
	full, err := os.Create(filepath.Join(disk, "full"))
	b.no(err)
	for err == nil {
		_, err = full.Write(make([]byte, 4096))
	}
	b.no(full.Close())
	b.refused(filepath.Join(disk, "state"), disk, "")
	b.no(os.Remove(full.Name()))
	b.must(0, "serve", b.path("srv"), "--state-dir", filepath.Join(disk, "state"), "--check")
	b.no(syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	b.refused(filepath.Join(disk, "state"), disk, "read-only")

	r := b.run("serve", b.path("srv"), "--mountpoint", "--check")
	if r.status != 1 || !strings.Contains(r.stderr, "nothing can be exported") || !strings.Contains(r.stderr, "nothing is mounted there") {
		t.Errorf("an export without its mount: exit status %d\n%s", r.status, r.stderr)
	}
}

// TestCheckSaysAll: --check names all that is wrong, each with its line, and else says OK on
// one line. --show prints what holds.
func TestCheckSaysAll(t *testing.T) {
	b := newBox(t)
	b.no(os.Mkdir(b.path("srv"), 0o755))
	file := b.path("nfsbox.toml")
	b.write(file, fmt.Sprintf("lisen = []\nslow = \"1s\"\n[[export]]\npath = \"/a\"\ndri = %q\n", b.path("srv")))
	b.says(1, file+":1: lisen: no such key; did you mean listen?", "serve", "-c", file, "--check")
	b.says(1, file+":5: export.dri: no such key; did you mean dir?", "serve", "-c", file, "--check")
	b.write(file, fmt.Sprintf("[[export]]\npath = \"/a\"\ndir = %q\n[[export]]\npath = \"/b\"\ndir = %q\n", b.path("none"), b.path("other")))
	for line, name := range map[int]string{3: "none", 6: "other"} {
		want := fmt.Sprintf("%s:%d: export[%d].dir: serve %s: ", file, line, line/6, b.path(name))
		b.says(1, want, "serve", "-c", file, "--check")
		b.says(1, want, "serve", "-c", file)
	}
	b.write(file, fmt.Sprintf("[[export]]\npath = \"/a\"\ndir = %q\n", b.path("srv")))
	if r := b.must(0, "serve", "-c", file, "--check"); r.stdout != file+": OK, 1 export\n" {
		t.Errorf("--check says %q", r.stdout)
	}
	if r := b.must(0, "serve", b.path("srv"), "--check"); r.stdout != b.path("srv")+": OK, 1 export\n" {
		t.Errorf("--check says %q", r.stdout)
	}
	if r := b.must(0, "serve", "-c", file, "--show"); !strings.Contains(r.stdout, "max-connections = 4096\n") {
		t.Errorf("--show says %q", r.stdout)
	}
}

// TestOptionsInAPath: options after a comma, as other servers take them, are refused with
// what to write instead, and not served as a path that nobody meant.
func TestOptionsInAPath(t *testing.T) {
	b := newBox(t)
	data, odd := b.path("data"), b.path("data,ro")
	b.no(os.Mkdir(data, 0o755))
	b.no(os.Mkdir(odd, 0o755))
	for _, x := range []struct {
		what, says string
		args       []string
	}{
		{"a limit of the file API", "--api-max-file-size", []string{"--export", "/data,max-file-size=1G", data}},
		{"no directory", "nfsbox serve DIR --export /data;", []string{"--export", "/data,max-file-size=1G"}},
		{"in the directory", "--api-max-file-size", []string{data + ",max-file-size=1G"}},
		{"of the export", "--ro", []string{data + ",rw,ro"}},
		{"of others", `"sec=sys"`, []string{data + ",sec=sys"}},
	} {
		r := b.run(append([]string{"serve", "--check"}, x.args...)...)
		if r.status != 1 || !strings.Contains(r.stderr, x.says) {
			t.Errorf("%s: exit status %d, and nothing of %s:\n%s%s", x.what, r.status, x.says, r.stdout, r.stderr)
		}
	}
	b.must(0, "serve", "--check", odd)
}
