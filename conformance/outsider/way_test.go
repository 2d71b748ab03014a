//go:build linux

package outsider

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestDirectoriesComeAndGo copies a tree in which directories are made and removed all the
// while. What vanishes is a note; what stays is copied, and nothing half made is left.
func TestDirectoriesComeAndGo(t *testing.T) {
	for _, over := range []string{"local", "nfs"} {
		t.Run(over, func(t *testing.T) {
			b := newBox(t)
			src := b.path("srv", "src")
			for i := range 40 {
				b.write(filepath.Join(src, fmt.Sprint("stays", i), "f"), "text")
			}
			from := src
			if over == "nfs" {
				from = b.serve(b.path("srv")).url + "src"
			}
			stop := b.comeAndGo(src)
			for round := range 4 {
				dst := b.path(fmt.Sprint("dst", round))
				r := b.run("cp", "-r", "--json", from, dst)
				if r.status != 0 || r.count(b, "errors") != 0 {
					t.Errorf("exit status %d\n%.2000s%s", r.status, r.stdout, r.stderr)
				}
				for _, name := range b.names(dst) {
					info, err := os.Lstat(filepath.Join(dst, name))
					b.no(err)
					// What a list may have given to the group of one that is gone, nobody knows.
					if mode := info.Mode().Perm(); info.IsDir() && mode != 0o755 && mode != 0o705 {
						t.Errorf("%s was left with mode %o", name, info.Mode().Perm())
					}
				}
				for i := range 40 {
					if got := b.text(filepath.Join(dst, fmt.Sprint("stays", i), "f")); got != "text" {
						t.Errorf("stays%d/f holds %q", i, got)
					}
				}
			}
			stop()
		})
	}
}

// comeAndGo makes and removes directories in src, of a new name each time, until the returned
// function has ended that.
func (b *box) comeAndGo(src string) (stop func()) {
	ended := make(chan struct{})
	var work sync.WaitGroup
	for worker := range 2 {
		work.Go(func() {
			for n := range 1 << 30 {
				select {
				case <-ended:
					return
				default:
				}
				err := os.MkdirAll(filepath.Join(src, fmt.Sprint("passing", worker, "-", n), "deeper"), 0o755)
				if err == nil {
					err = os.RemoveAll(filepath.Join(src, fmt.Sprint("passing", worker, "-", n-30)))
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	return sync.OnceFunc(func() { close(ended); work.Wait() })
}

// TestKilledCopyIsOpen: what a killed cp DIR/. DEST has made of DEST is no other mode than
// DIR's. The same command takes DEST for the user's directory the next time.
func TestKilledCopyIsOpen(t *testing.T) {
	b := newBox(t)
	for i := range 3000 {
		b.write(b.path("src", fmt.Sprint("f", i)), "text")
	}
	cmd := b.command("cp", "-r", b.path("src")+"/.", b.path("dst"))
	b.no(cmd.Start())
	b.until("the first file is there", func() bool {
		some, err := filepath.Glob(b.path("dst", "f*"))
		return err == nil && len(some) > 0
	})
	b.no(cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	info, err := os.Stat(b.path("dst"))
	b.no(err)
	if info.Mode().Perm() != 0o755 {
		t.Errorf("it was left with mode %o", info.Mode().Perm())
	}
	b.must(0, "cp", "-r", b.path("src")+"/.", b.path("dst"))
	left, err := filepath.Glob(b.path("dst", ".nfsbox-*"))
	b.no(err)
	for _, temp := range left { // of the one that was killed, which nobody knows
		b.no(os.Remove(temp))
	}
	b.same(b.path("src"), b.path("dst"))
}

// TestTwoCopiesAtOnce: two copies of one tree into one place both succeed, and it has the
// tree.
func TestTwoCopiesAtOnce(t *testing.T) {
	b := newBox(t)
	src := b.path("src")
	for i := range 60 {
		name := filepath.Join(src, fmt.Sprint("f", i))
		b.write(name, strings.Repeat(fmt.Sprint(i, " "), 500))
		for k := range 3 {
			b.no(os.Link(name, filepath.Join(src, fmt.Sprint("link", i, "-", k))))
		}
		b.no(os.Symlink(fmt.Sprint("f", i), filepath.Join(src, fmt.Sprint("symlink", i))))
	}
	b.no(os.MkdirAll(b.path("srv"), 0o755))
	for _, dst := range []string{b.path("dst"), b.serve(b.path("srv")).url + "dst"} {
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if r := b.run("cp", "-r", src+"/.", dst); r.status != 0 {
					t.Errorf("exit status %d\n%.2000s", r.status, r.stderr)
				}
			})
		}
		both.Wait()
	}
	b.same(src, b.path("dst"))
	b.same(src, b.path("srv", "dst"))
}

// TestToldWhatToDo: what somebody has to do something about is told in words that say what.
func TestToldWhatToDo(t *testing.T) {
	b := newBox(t)
	b.write(b.path("src", "name"), "text")
	b.no(os.MkdirAll(b.path("dst", "name"), 0o755))
	tell := func(r *result, status int, words ...string) {
		t.Helper()
		for _, w := range words {
			if r.status != status || !strings.Contains(r.stderr, w) {
				t.Errorf("exit status %d, want %d and %q:\n%s", r.status, status, w, r.stderr)
			}
		}
	}
	tell(b.run("cp", b.path("src", "name"), b.path("dst")), 2, "a directory has the name", "move or remove it")
	b.write(b.path("more", "src"), "a file")
	tell(b.run("cp", "-r", b.path("src"), b.path("more")), 2, "a file is in the way of the directory", "move or remove it")

	few := func(n int, args ...string) *result {
		cmd := b.command()
		cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, n), b.bin}, args...)
		cmd.Path = "/bin/sh"
		return b.finish(cmd)
	}
	for i := range 200 {
		b.write(b.path("many", fmt.Sprint("f", i)), "text")
	}
	tell(few(10, "cp", "-r", b.path("many"), b.path("few")), 2, "ulimit -n is too small; 64 is enough")
	tell(few(64, "cp", "-r", b.path("many"), b.path("enough")), 0, "201 items")

	if out, err := exec.Command("chattr", "+i", b.path("src", "name")).CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED with an immutable file: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("chattr", "-i", b.path("src", "name")).Run() })
	tell(b.run("cp", b.path("more", "src"), b.path("src", "name")), 2, "immutable or append-only")
}

// TestDeviceRefused: a user who may make no devices is told that, and not that something
// is immutable.
func TestDeviceRefused(t *testing.T) {
	root(t, "to make a device")
	b := newBox(t)
	b.no(os.MkdirAll(b.path("src"), 0o755))
	if err := syscall.Mknod(b.path("src", "null"), syscall.S_IFCHR|0o644, 1<<8|3); err != nil {
		t.Skipf("NOT TESTED: this machine makes no devices: %v", err)
	}
	b.no(os.MkdirAll(b.path("dst"), 0o777))
	b.no(os.Chmod(b.path("dst"), 0o777)) // whatever the umask
	for _, there := range []bool{false, true} {
		if there {
			b.write(b.path("dst", "null"), "in the way")
		}
		r := b.finish(b.asNobody("cp", "-r", b.path("src")+"/.", b.path("dst")))
		if r.status != 2 || !strings.Contains(r.stderr, "CAP_MKNOD") || strings.Contains(r.stderr, "immutable") {
			t.Errorf("exit status %d\n%s", r.status, r.stderr)
		}
	}
}

// TestRefusedPort: where nothing listens at the port that the URL gives, no other port of the
// server is asked for MOUNT, and none is named.
func TestRefusedPort(t *testing.T) {
	b := newBox(t)
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	b.no(err)
	defer func() { _ = syscall.Close(fd) }()
	b.no(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})) // taken, and nobody listens
	at, err := syscall.Getsockname(fd)
	b.no(err)
	url := fmt.Sprintf("nfs://127.0.0.1:%d/e", at.(*syscall.SockaddrInet4).Port)
	for _, verb := range []string{"ls", "doctor"} {
		r := b.run(verb, url)
		if text := r.stdout + r.stderr; r.status != 4 || !strings.Contains(text, "refused") || strings.Contains(text, "mountport") || strings.Contains(text, "portmapper:") {
			t.Errorf("%s: exit status %d\n%s", verb, r.status, text)
		}
	}
}
