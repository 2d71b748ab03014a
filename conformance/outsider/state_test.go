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

// TestStateBound: clients reach the state directory, and other files of the server, by an
// export that they lie within, whatever mount shows them. Where something is mounted on
// the place, or the export does not serve the mount, they do not.
func TestStateBound(t *testing.T) {
	root(t, "to mount")
	b := newBox(t)
	for _, dir := range []string{"srv/a sub/deep", "srv/covered/deep", "aside/in", "outer/hidden"} {
		b.no(os.MkdirAll(b.path(dir), 0o700))
	}
	b.write(b.path("srv", "a sub", "file"), "")
	b.no(os.Symlink(b.path("aside"), b.path("srv", "a sub", "link")))
	for _, x := range []struct{ source, target string }{
		{"srv/a sub", "bound"}, {"srv/a sub/file", "bound file"}, {"srv/covered", "kept"},
		{"outer/hidden", "srv/covered"}, {"aside", "srv/mounted"}, {"aside/in", "far"},
	} {
		b.mount(b.path(x.source), b.path(x.target), "bind", "")
	}
	serve := []string{"serve", b.path("srv"), "--listen=127.0.0.1:0", "--localio=off"}
	for _, x := range []struct {
		state            string
		within, crossing bool // without and with mounts below
	}{
		{"bound", true, true}, {"bound/zz", true, true}, {"bound/deep", true, true}, {"bound/link/zz", true, true},
		{"kept", false, false}, {"kept/deep/zz", false, false}, {"far", false, true}, {"outer/hidden", false, true},
	} {
		for crosses, within := range map[bool]bool{false: x.within, true: x.crossing} {
			args := append(serve, "--state-dir", b.path(x.state))
			if crosses {
				args = append(args, "--crossmnt")
			}
			if within {
				b.says(1, "lies within "+b.path("srv"), append(args, "--check")...)
				b.says(1, "lies within "+b.path("srv"), args...)
			} else {
				b.must(0, append(args, "--check")...)
			}
		}
	}
	b.says(1, "file of the log", append(serve, "--check", "--log-file", b.path("bound", "log"))...)
	b.says(1, "file of the log", append(serve, "--check", "--log-file", b.path("bound file"))...)
	b.must(0, append(serve, "--check", "--log-file", b.path("kept", "log"))...)
	if made, err := os.ReadDir(b.path("bound")); err != nil || len(made) != 3 {
		t.Errorf("in the directory that was refused: %v, %v", made, err)
	}
}

// TestNoStatePlace: where there is no home, or none that can be written, each command says so once, with the
// way out, and that is one.
func TestNoStatePlace(t *testing.T) {
	root(t, "to be another user")
	b := newBox(t)
	b.write(b.path("src", "f"), "text")
	b.no(os.Mkdir(b.path("open"), 0o777))
	b.no(os.Chmod(b.path("open"), 0o777))
	for _, x := range []struct {
		status int
		words  string // what is said once
		out    string // the way out
		args   []string
	}{
		{1, "no place for the state", "--state-dir", []string{"serve", "--check", b.path("src")}},
		{4, "no place for the state", "--state-dir", []string{"ctl", "clients"}},
		{0, "no record is kept", "XDG_STATE_HOME", []string{"cp", "-r", b.path("src"), b.path("open", "1")}},
		{1, "--job", "XDG_STATE_HOME", []string{"cp", "-r", "--job", "j", b.path("src"), b.path("open", "2")}},
	} {
		for _, home := range []string{"", "/proc/1"} {
			if home != "" && x.args[0] != "cp" {
				continue
			}
			cmd := b.asNobody(x.args...)
			cmd.Env = append(cmd.Env, "HOME="+home, "XDG_STATE_HOME=")
			r := b.finish(cmd)
			if r.status != x.status || strings.Count(r.stderr, x.words) != 1 || !strings.Contains(r.stderr, x.out) {
				t.Errorf("HOME=%q %v: exit status %d, not %d, and %q once with %s:\n%s", home, x.args, r.status, x.status, x.words, x.out, r.stderr)
			}
			b.no(os.RemoveAll(b.path("open", "1")))
		}
	}
	for out, args := range map[string][]string{
		"--state-dir, or set XDG_STATE_HOME": {"serve", b.path("open"), "--listen", "127.0.0.1:0"},
		"--dir of nfsbox cache, or set XDG_": {"cache", "status"},
		"cache=DIR in the URL":               {"cat", "nfs://127.0.0.1:1/x?fsc"},
	} {
		cmd := b.asNobody(args...)
		cmd.Env = append(cmd.Env, "HOME=/proc/1/x", "XDG_STATE_HOME=", "XDG_CACHE_HOME=")
		if r := b.finish(cmd); r.status != 1 || !strings.Contains(r.stderr, out) {
			t.Errorf("%v: exit status %d, and no %q:\n%s", args, r.status, out, r.stderr)
		}
	}
	cmd := b.asNobody("cp", "-r", "--job", "j", b.path("src"), b.path("open", "3"))
	cmd.Env = append(cmd.Env, "HOME=", "XDG_STATE_HOME="+b.path("open"))
	if r := b.finish(cmd); r.status != 0 {
		t.Errorf("with XDG_STATE_HOME: exit status %d\n%s", r.status, r.stderr)
	}
}

// TestStateHeld: a second server on the same state says at once who has it and how long it
// waits, on stderr though its log goes to a file, and ends then.
func TestStateHeld(t *testing.T) {
	b := newBox(t)
	b.no(os.Mkdir(b.path("srv"), 0o755))
	s := b.serve(b.path("srv"))
	pid := fmt.Sprintf("(process %d)", s.cmd.Process.Pid)
	second := b.begin("serve", b.path("srv"), "--listen", "127.0.0.1:0", "--state-dir", s.state, "--localio=off",
		"--log-file", b.path("log"))
	b.until("it says who has the state", func() bool { return strings.Contains(second.err.String(), pid) })
	if status := second.status(); status != 1 {
		t.Errorf("exit status %d", status)
	}
	for _, want := range []string{"waiting for its end", "most=3s", "runs with " + s.state, pid + ": end it", "waited for, for 3s"} {
		if !strings.Contains(second.err.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, second.err)
		}
	}
}

// says has a run end with this status and text.
func (b *box) says(status int, want string, args ...string) {
	b.Helper()
	if r := b.must(status, args...); !strings.Contains(r.stderr, want) {
		b.Errorf("%q: want %q:\n%s", args, want, r.stderr)
	}
}

// TestStateWithAccessList: where an access list lets others write, neither the state
// directory nor one on the way to it will do, whosever group it has.
func TestStateWithAccessList(t *testing.T) {
	b := newBox(t)
	b.no(os.Mkdir(b.path("srv"), 0o755))
	for what, state := range map[string]string{"itself": "", "above": "between/state"} {
		dir := b.path(what)
		state = filepath.Join(dir, state)
		b.no(os.MkdirAll(filepath.Dir(state), 0o700))
		b.no(os.MkdirAll(dir, 0o700))
		b.grant(dir, 0)
		b.no(syscall.Chmod(dir, 0o770)) // which is the list's mask
		b.refused(state, dir, "setfacl -b")
		if made, err := filepath.Glob(filepath.Join(state, "*")); err != nil || len(made) > 0 {
			t.Errorf("made in a directory that was refused: %v, %v", made, err)
		}
		b.no(syscall.Chmod(dir, 0o750)) // by which the list lets nobody write
		b.must(0, "serve", b.path("srv"), "--listen=127.0.0.1:0", "--state-dir", state, "--check")
		b.no(syscall.Chmod(dir, 0o1770)) // others do not replace what is not theirs
		b.must(0, "serve", b.path("srv"), "--listen=127.0.0.1:0", "--state-dir", state, "--check")
	}
}
