//go:build linux

package outsider

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mountable skips the test, or fails where that is demanded, unless root runs it on a machine with FUSE.
func mountable(t *testing.T) {
	t.Helper()
	root(t, "to mount for others")
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err == nil {
		_, err = exec.LookPath("fusermount3")
		_ = f.Close() // nothing was mounted by it; where it could not be opened there is none
	}
	switch {
	case err == nil:
	case strings.Contains(","+os.Getenv("NFSBOX_REQUIRE")+",", ",fuse,"):
		t.Fatalf("NFSBOX_REQUIRE names fuse: %v", err)
	default:
		t.Skipf("NOT TESTED with fuse: %v", err)
	}
}

// mountDir makes a directory on which a mount may stand, which goes when the test ends.
func (b *box) mountDir(name string, uid int) string {
	b.Helper()
	dir := b.path(name)
	b.belongs(dir, "", uid, 0o755)
	b.Cleanup(func() {
		for syscall.Unmount(dir, syscall.MNT_DETACH|syscall.MNT_FORCE) == nil { // which also ends what a test has left
			b.Logf("%s was still mounted", dir)
		}
	})
	return dir
}

// mounted reports whether something is mounted there.
func (b *box) mounted(dir string) bool {
	b.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	b.no(err)
	return strings.Contains(string(text), " "+dir+" ")
}

// byUser is a run of the command by a user that has a name, without which fusermount3 does nothing: nobody.
func (b *box) byUser(args ...string) *exec.Cmd {
	cmd := b.asNobody(args...)
	cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+b.path("nobody"))
	return cmd
}

// ends has a run end with a status and these words.
func (b *box) ends(cmd *exec.Cmd, status int, words ...string) *result {
	b.Helper()
	r := b.finish(cmd)
	if r.status != status {
		b.Errorf("%v: exit status %d, want %d\n%s%s", cmd.Args[1:], r.status, status, r.stdout, r.stderr)
	}
	for _, w := range words {
		if !strings.Contains(r.stderr, w) {
			b.Errorf("%v: it does not say %q:\n%s", cmd.Args[1:], w, r.stderr)
		}
	}
	return r
}

// pid is the process of a mount that has just begun.
func (r *result) pid(b *box) int {
	b.Helper()
	line, _, _ := strings.Cut(r.stdout, "\n")
	var event struct{ PID int }
	if err := json.Unmarshal([]byte(line), &event); err != nil || event.PID == 0 {
		b.Fatalf("no process: %v\n%s", err, r.stdout)
	}
	return event.PID
}

// killMount ends a mount's process at once, and waits until it has gone.
func (b *box) killMount(pid int) {
	b.Helper()
	b.no(syscall.Kill(pid, syscall.SIGKILL))
	b.until("the mount's process has ended", func() bool {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(text), ") Z ")
	})
}

// TestHostCannotMount: where the kernel's device or the users' helper is missing that is said, with status 2, and nothing is
// mounted.
func TestHostCannotMount(t *testing.T) {
	root(t, "a directory for /")
	b := newBox(t)
	b.no(os.Mkdir(b.path("srv"), 0o755))
	s := b.serve(b.path("srv"))
	for _, c := range []struct {
		name, words string
		uid         uint32
		device      bool
	}{
		{"no device", "/dev/fuse is not there: load the module (modprobe fuse)", 0, false},
		{"no device for users", "/dev/fuse is not there", alice, false},
		{"no helper", "fusermount3 is not there: install fuse3, or mount as root", alice, true},
	} {
		jail := b.path(c.name)
		b.no(os.MkdirAll(filepath.Join(jail, "dev"), 0o755))
		b.belongs(filepath.Join(jail, "mnt"), "", int(c.uid), 0o755)
		// Not a copy: a program that this process writes is busy while another of its children begins.
		b.mount(b.bin, filepath.Join(jail, "nfsbox"), "bind", "")
		if c.device {
			b.write(filepath.Join(jail, "dev/fuse"), "")
		}
		cmd := b.command("mount", "--foreground", s.url, "/mnt")
		cmd.Path, cmd.Dir = "/nfsbox", "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: jail, Credential: &syscall.Credential{Uid: c.uid, Gid: c.uid}}
		b.ends(cmd, 2, c.words)
		if b.mounted(filepath.Join(jail, "mnt")) {
			b.Errorf("%s: something is mounted", c.name)
		}
	}
}

// TestMountBadInput: what will not do is said in words that say what to do, with the status of mount(8), and nothing is
// mounted.
func TestMountBadInput(t *testing.T) {
	mountable(t)
	b := newBox(t)
	dir, file := b.mountDir("mnt", 0), b.path("file")
	b.write(file, "text")
	b.no(os.Mkdir(b.path("srv"), 0o755))
	s, closed := b.serve(b.path("srv")), b.serve(b.path("srv"), "--allow", "192.0.2.1")
	for _, c := range []struct {
		status int
		words  string
		args   []string
	}{
		{1, "make the directory first", []string{s.url, b.path("gone")}},
		{1, "not a directory", []string{s.url, file}},
		{1, "contradict each other", []string{"-o", "hard,soft", s.url, dir}},
		{1, "acregmin and acregmax contradict each other", []string{"-o", "acregmin=5,acregmax=4", s.url, dir}},
		{1, "did you mean nosuid?", []string{"-o", "nosiud", s.url, dir}},
		{1, "unmount it, and mount it again", []string{"-o", "remount,ro", s.url, dir}},
		{32, "-> ", []string{"-o", "retry=0", closed.url, dir}},
		{32, "-> ", []string{"-o", "retry=0", s.url + "none", dir}},
	} {
		b.ends(b.command(append([]string{"mount"}, c.args...)...), c.status, c.words)
		if b.mounted(dir) {
			b.Fatalf("%v: something is mounted", c.args)
		}
	}
}

// TestMountsOfUsers: a user's mount is that user's. What may not be is said in words. Root mounts over one whose process was
// killed.
func TestMountsOfUsers(t *testing.T) {
	mountable(t)
	b := newBox(t)
	hers, roots, srv := b.mountDir("hers", nobody), b.mountDir("roots", 0), b.path("srv")
	b.write(filepath.Join(srv, "f"), "text")
	s := b.serve(srv)

	b.ends(b.byUser("mount", s.url, roots), 1, "a user mounts only on directories that belong to that user", "or mount as root")
	if text, err := os.ReadFile("/etc/fuse.conf"); err != nil || !strings.Contains(string(text), "\nuser_allow_other") {
		b.ends(b.byUser("mount", "-o", "allow_other", s.url, hers), 1, "option allow_other is not allowed here", "user_allow_other into /etc/fuse.conf")
	}
	if b.mounted(roots) || b.mounted(hers) {
		t.Fatal("something is mounted")
	}

	b.ends(b.command("mount", s.url, roots), 0)
	b.ends(b.byUser("umount", roots), 1, "user 0 has mounted it; only that user and root can unmount it")
	b.ends(b.command("umount", roots), 0)

	r := b.ends(b.byUser("mount", "--json", s.url, hers), 0)
	b.ends(b.command("mount", s.url, hers), 32, "of user "+strconv.Itoa(nobody)+" is mounted there already")
	b.ends(b.byUser("mount", s.url, hers), 32, "is mounted there already")
	b.killMount(r.pid(b))
	b.ends(b.command("mount", "-f", s.url, hers), 0, "will be taken away")
	b.ends(b.command("mount", s.url, hers), 0, "a mount whose process had died was taken away")
	if text, err := os.ReadFile(filepath.Join(hers, "f")); err != nil || string(text) != "text" {
		t.Errorf("it holds %q, %v", text, err)
	}
	b.ends(b.command("umount", hers), 0)
	if b.mounted(hers) {
		t.Error("it is still mounted")
	}
}

// TestUmountNamesWhatIsLost: what a killed program has written, and the server has no room for, is named by its path, with
// the reason.
func TestUmountNamesWhatIsLost(t *testing.T) {
	mountable(t)
	b := newBox(t)
	b.mount("tmpfs", b.path("srv"), "tmpfs", "size=64k")
	s, dir := b.serve(b.path("srv")), b.mountDir("mnt", 0)
	b.ends(b.command("mount", s.url, dir), 0)
	sh := exec.Command("/bin/sh", "-c", "mkdir d && exec 3>d/a && mv d/a d/b && printf %0200000d 1 >&3; kill -9 $$")
	sh.Dir = dir
	if err := sh.Run(); err == nil {
		t.Fatal("it was not killed")
	}
	r := b.ends(b.command("umount", dir), 2, filepath.Join(dir, "d/b")+": no space left on the server")
	if strings.Contains(r.stderr, "canceled") {
		t.Errorf("it speaks of itself:\n%s", r.stderr)
	}
}

// TestMountOfDeadServer: a server that has stopped holds up those who use its mount, and nobody else. They can be killed, the
// directory unmounted, and what was lost is named. When the server goes on, so does the mount.
func TestMountOfDeadServer(t *testing.T) {
	mountable(t)
	b := newBox(t)
	b.write(b.path("srv/f"), "text")
	b.write(b.path("alive/g"), "text")
	s, alive := b.serve(b.path("srv")), b.serve(b.path("alive"))
	dir, other := b.mountDir("mnt", 0), b.mountDir("other", 0)
	b.ends(b.command("mount", s.url, dir), 0)
	b.ends(b.command("mount", alive.url, other), 0)
	for _, end := range []string{"goes on", "stays dead"} {
		s.freeze()
		users := []*exec.Cmd{exec.Command("cat", dir+"/f"), exec.Command("mkdir", dir+"/made"), exec.Command("dd", "if=/dev/zero", "of="+dir+"/new", "bs=4k", "count=4")}
		for _, cmd := range users {
			b.no(cmd.Start())
		}
		if list, err := os.ReadDir(other); err != nil || len(list) != 1 {
			t.Errorf("the other mount: %v, %v", list, err)
		}
		for _, cmd := range users { // all first: one that waits for a directory's lock goes when its holder does
			b.no(cmd.Process.Kill())
		}
		for _, cmd := range users {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = cmd.Wait() // it was killed
			}()
			select {
			case <-ended:
			case <-time.After(patience):
				t.Fatalf("%v cannot be killed", cmd.Args)
			}
		}
		if end == "goes on" {
			s.signal(syscall.SIGCONT)
			if text, err := os.ReadFile(dir + "/f"); err != nil || string(text) != "text" {
				t.Errorf("afterwards: %q, %v", text, err)
			}
		}
	}
	b.ends(b.command("umount", "-f", dir), 0)
	s.signal(syscall.SIGCONT)
	b.ends(b.command("umount", other), 0)
}

// fstab is what a host does at its start with the line of the usual how-to, in a namespace of its own: the helper's name is
// the only thing that leads to the program. 77: the machine has no overlayfs.
const fstab = `set -e
mount --make-rprivate /
mount -t overlay overlay -o lowerdir="$HELPERS":/usr/sbin /usr/sbin || exit 77
mount -t tmpfs cache /var/cache
trap 'umount -l "$DIR" 2>/dev/null || :' EXIT
mount -a -T "$TAB"
grep " $DIR " /proc/self/mountinfo
cat "$DIR/f"
mount -o remount,ro "$DIR" && exit 1
umount "$DIR"
if grep " $DIR " /proc/self/mountinfo; then exit 1; fi
mount -T "$TAB" "$DIR"
umount "$DIR"
`

// TestFstab: the how-to's line mounts by mount -a, with either name of the type.
func TestFstab(t *testing.T) {
	mountable(t)
	for _, kind := range []string{"nfsbox", "fuse.nfsbox"} {
		b := newBoxAlone(t)
		b.write(b.path("srv/f"), "from the server\n")
		s := b.serve(b.path("srv"))
		for _, name := range []string{"mount.nfsbox", "mount.fuse.nfsbox", "umount.nfsbox", "umount.fuse.nfsbox"} {
			b.no(os.MkdirAll(b.path("helpers"), 0o755))
			b.no(os.Symlink(b.bin, b.path("helpers", name)))
		}
		dir := b.mountDir("mnt", 0)
		b.write(b.path("fstab"), "127.0.0.1:/ "+dir+" "+kind+" rw,hard,intr,fsc,_netdev,port="+strconv.Itoa(s.port)+",mountport="+strconv.Itoa(s.port)+" 0 0\n")
		cmd := exec.Command("unshare", "-m", "/bin/sh", "-c", fstab)
		cmd.Env = append(os.Environ(), "HELPERS="+b.path("helpers"), "TAB="+b.path("fstab"), "DIR="+dir)
		r := b.finish(cmd)
		if r.status == 77 {
			t.Skipf("NOT TESTED: no overlayfs here, to have the helpers in /sbin: %s", r.stderr)
		}
		if r.status != 0 || !strings.Contains(r.stdout, "from the server\n") || !strings.Contains(r.stdout, " fuse.nfsbox ") || !strings.Contains(r.stderr, "a mount cannot be changed") {
			t.Errorf("%s: exit status %d\n%s%s", kind, r.status, r.stdout, r.stderr)
		}
	}
}
