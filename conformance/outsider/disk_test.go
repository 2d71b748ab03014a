//go:build linux

package outsider

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestMountsBelow: what is mounted below a source is copied with it, as cp(1) and tar
// do, and compared; a source is not the same as a copy without it.
func TestMountsBelow(t *testing.T) {
	root(t, "to mount")
	b := newBox(t)
	b.write(b.path("src", "plain"), "text")
	b.mount("tmpfs", b.path("src", "mounted"), "tmpfs", "size=1m")
	b.write(b.path("src", "mounted", "deep", "f"), "on tmpfs")
	b.write(b.path("elsewhere"), "bound")
	b.mount(b.path("elsewhere"), b.path("src", "bound"), "bind", "")
	b.must(0, "cp", "-r", b.path("src"), b.path("dst"))
	b.same(b.path("src"), b.path("dst"))
	b.must(0, "verify", b.path("src"), b.path("dst"))
	b.no(os.RemoveAll(b.path("dst", "mounted", "deep")))
	b.must(3, "verify", b.path("src"), b.path("dst"))

	b.must(0, "cp", "-r", "--one-file-system", b.path("src"), b.path("one"))
	if got, err := os.ReadDir(b.path("one", "mounted")); err != nil || len(got) != 0 {
		t.Errorf("--one-file-system: the mount point's copy holds %v, %v", got, err)
	}
}

// TestDestinationThatFoldsCase: two names become one at the destination. One of them
// is there, with its contents, and the other is an error.
func TestDestinationThatFoldsCase(t *testing.T) {
	t.Run("nfs", func(t *testing.T) {
		b := newBox(t)
		b.no(os.Mkdir(b.path("srv"), 0o755))
		p := b.proxy(b.serve(b.path("srv")), func(p *proxy) { p.towards = smallLetters })
		b.folds(b.path("srv", "dst"), p.url()+"dst")
	})
	t.Run("local", func(t *testing.T) {
		root(t, "to mount")
		b := newBox(t)
		b.folds(filepath.Join(b.foldingDisk(), "dst"), "")
	})
}

// TestDirectoryThatFoldsCase: one directory of the destination folds case, and the one
// above it does not. A job that is run again does not lose one of two files in it silently.
func TestDirectoryThatFoldsCase(t *testing.T) {
	b := newBox(t)
	b.no(os.MkdirAll(b.path("srv", "dst", "src", "disk"), 0o755))
	b.no(os.MkdirAll(b.path("src", "disk"), 0o755))
	s := b.serve(b.path("srv"))
	peer := s.dial(uint32(os.Getuid()))
	disk := peer.root(b)
	for _, name := range []string{"dst", "src", "disk"} {
		var status uint32
		var err error
		if disk, status, err = peer.lookup(disk, name); err != nil || status != statusOK {
			t.Fatalf("LOOKUP of %s: %d, %v", name, status, err)
		}
	}
	p := b.proxy(s, func(p *proxy) { p.towards = smallLettersIn(disk) })
	args := []string{"cp", "-r", "--json", "--job", "j", b.path("src"), p.url() + "dst"}
	b.must(0, args...)
	b.write(b.path("src", "disk", "Makefile"), "large")
	b.write(b.path("src", "disk", "makefile"), "small")
	r := b.run(args...)
	if r.status != 2 || r.count(b, "errors") != 1 || !strings.Contains(r.stdout, "for one") {
		t.Errorf("exit status %d, though two files have become one: %s\n%s", r.status, r.stdout, r.stderr)
	}
	b.write(b.path("src", "disk", "other"), "3")
	if r := b.run(args...); r.status != 2 || r.count(b, "errors") != 1 {
		t.Errorf("once more: exit status %d: %s\n%s", r.status, r.stdout, r.stderr)
	}
	if got := b.text(b.path("srv", "dst", "src", "disk", "other")); got != "3" {
		t.Errorf("what has its name alone holds %q", got)
	}
}

// folds copies to dest, which is at in the end, and folds case. Without dest, it is at.
func (b *box) folds(at, dest string) {
	b.Helper()
	if dest == "" {
		dest = at
	}
	b.write(b.path("src", "Makefile"), "large")
	b.write(b.path("src", "makefile"), "small")
	b.write(b.path("src", "Directory", "of large"), "1")
	b.write(b.path("src", "directory", "of small"), "2")
	b.write(b.path("src", "other"), "3")
	r := b.run("cp", "-r", "--json", b.path("src"), dest)
	if r.status != 2 || r.count(b, "errors") != 2 {
		b.Errorf("exit status %d, though two files and two directories have become one each: %s\n%s", r.status, r.stdout, r.stderr)
	}
	if got := b.text(filepath.Join(at, "other")); got != "3" {
		b.Errorf("what has its name alone holds %q", got)
	}
	if r := b.run("verify", b.path("src"), dest); r.status != 3 {
		b.Errorf("verify: exit status %d, want 3\n%s", r.status, r.stderr)
	}
}

// foldingDisk is a directory of a disk image that folds case, if the kernel has such.
func (b *box) foldingDisk() string {
	b.Helper()
	image, disk := b.path("image"), b.path("disk")
	b.no(os.WriteFile(image, nil, 0o600))
	b.no(os.Truncate(image, 32<<20))
	b.no(os.Mkdir(disk, 0o755))
	for _, step := range [][]string{{"mkfs.ext4", "-q", "-O", "casefold", image}, {"mount", "-o", "loop", image, disk}} {
		if out, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			b.Skipf("NOT TESTED: this machine has no disk that folds case: %v\n%s", err, out)
		}
	}
	b.Cleanup(func() { b.no(syscall.Unmount(disk, 0)) })
	folded := filepath.Join(disk, "folded")
	b.no(os.Mkdir(folded, 0o755))
	if out, err := exec.Command("chattr", "+F", folded).CombinedOutput(); err != nil {
		b.Skipf("NOT TESTED: %v\n%s", err, out)
	}
	return folded
}

// TestFullDisk: the destination is full. The job ends, once, and goes on when there
// is room.
func TestFullDisk(t *testing.T) {
	root(t, "to mount")
	for _, over := range []string{"local", "nfs"} {
		t.Run(over, func(t *testing.T) {
			b := newBox(t)
			const files = 2000
			for i := range files {
				b.write(b.path("src", fmt.Sprint(i%10), fmt.Sprint(i)), string(pattern(4096, byte(i))))
			}
			disk := b.path("disk")
			b.mount("tmpfs", disk, "tmpfs", "size=4m")
			dest := filepath.Join(disk, "dst")
			if over == "nfs" {
				dest = b.serve(disk).url + "dst"
			}
			args := []string{"cp", "-r", "--json", "--job", "j", b.path("src"), dest}
			r := b.run(args...)
			if r.status != 2 && r.status != 4 {
				t.Errorf("exit status %d\n%s", r.status, r.stderr)
			}
			if !strings.Contains(r.stderr, "no space left") || strings.Contains(r.stderr, "server fault") {
				t.Errorf("the error does not speak of the full disk first:\n%.1000s", r.stderr)
			}
			if n := strings.Count(r.stdout, `"type":"error"`); n != 1 { // that of the source as a whole
				t.Errorf("%d errors for one disk:\n%.1000s", n, r.stdout)
			}
			for _, name := range b.names(disk) {
				if strings.Contains(name, ".nfsbox-") {
					t.Errorf("left behind: %s", name)
				}
			}
			b.no(syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=64m"))
			r = b.must(0, args...)
			if r.count(b, "skipped") == 0 {
				t.Errorf("the job began anew: %s", r.stdout)
			}
			b.same(b.path("src"), filepath.Join(disk, "dst"))
		})
	}
}

// TestFullDiskNamed: the error of a full disk names the file that found no room and its size, how much is
// free, and what to do; and so do JSON and the file of failures.
func TestFullDiskNamed(t *testing.T) {
	root(t, "to mount")
	b := newBox(t)
	b.alike(b.path("src"), 2, 40<<20)
	b.mount("tmpfs", b.path("disk"), "tmpfs", "size=8m")
	url := b.serve(b.path("disk")).url
	for _, dest := range []string{b.path("disk", "c"), url + "c"} {
		fails := b.path("fails")
		r := b.must(2, "cp", "-r", "--errors-to", fails, b.path("src")+"/.", dest)
		for _, want := range []string{`the destination is full: \S+: no room for its 40\.0 MiB: no space left on device`, `-> .* has [78]\.\d MiB free.*make room`} {
			if !regexp.MustCompile(want).MatchString(r.stderr) {
				t.Errorf("%s: there is no %s:\n%s", dest, want, r.stderr)
			}
		}
		text, err := os.ReadFile(fails)
		b.no(err)
		for _, out := range []string{string(text), b.must(2, "cp", "-r", "--json", "--no-progress", b.path("src")+"/.", dest).stdout} {
			if n := len(regexp.MustCompile(`"type":"error","path":"\w+",.*"code":"ENOSPC",.*"advice":".*make room`).FindAllString(out, -1)); n != 1 {
				t.Errorf("%s: %d errors name the file:\n%s", dest, n, out)
			}
		}
		b.no(os.RemoveAll(b.path("disk", "c")))
	}
}

// closed are the directories below dir that have mode 0700.
func (b *box) closed(dir string) (all []string) {
	b.Helper()
	for _, name := range b.names(dir) {
		path := filepath.Join(dir, name)
		if info, err := os.Lstat(path); err == nil && info.IsDir() && b.bits(path) == 0o700 {
			all = append(all, name)
		}
	}
	return all
}

// TestFullDiskAgain: a job finds the disk full, and finds it so again. Each time it says how to
// go on. Directories in which something is missing are closed to others, and it says so where
// there are any; when there is room, all have their own mode.
func TestFullDiskAgain(t *testing.T) {
	root(t, "to mount")
	t.Parallel()
	for files, size := range map[int]int{2: 300_000, 30: 20_000} {
		b := newBoxAlone(t)
		for _, dir := range []string{"1", "2", "3"} {
			b.alike(b.path("src", dir), files, size)
		}
		disk := b.path("disk")
		b.mount("tmpfs", disk, "tmpfs", "size=1m")
		dst := filepath.Join(disk, "dst")
		args := []string{"cp", "-r", "--job", "j", b.path("src"), dst}
		for run := range 4 {
			r := b.must(2, args...)
			if !strings.Contains(r.stderr, "no space left") || !strings.Contains(r.stderr, "to go on from here: ") {
				t.Errorf("run %d: what is to be done is not said:\n%s", run, r.stderr)
			}
			closed := b.closed(dst)
			for _, dir := range []string{"1", "2", "3"} {
				made, err := os.ReadDir(filepath.Join(dst, dir))
				if err == nil && len(made) < files && !slices.Contains(closed, dir) {
					t.Errorf("run %d: %d of %d files are in a directory of mode %o", run, len(made), files, b.bits(filepath.Join(dst, dir)))
				}
			}
			// A later run may be broken off before it comes to one that is closed.
			said := strings.Contains(r.stderr, "mode 0700")
			if said && len(closed) == 0 || run == 0 && !said && len(closed) > 0 {
				t.Errorf("run %d: closed are %q:\n%s", run, closed, r.stderr)
			}
		}
		b.no(syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=8m"))
		b.must(0, args...)
		b.same(b.path("src"), dst)
	}
}

// TestFullDiskWithoutDirectories: a disk that is full ends a copy that has made no directory
// but DEST, and nothing is said of closed ones.
func TestFullDiskWithoutDirectories(t *testing.T) {
	root(t, "to mount")
	b := newBox(t)
	disk := b.path("disk")
	b.mount("tmpfs", disk, "tmpfs", "size=1m")
	for files, size := range map[int]int{1: 2_000_000, 30: 100_000} {
		src, dst := b.path(fmt.Sprint("src", files)), filepath.Join(disk, fmt.Sprint(files))
		b.alike(src, files, size)
		r := b.must(2, "cp", "-r", "--job", fmt.Sprint("j", files), src, dst)
		if !strings.Contains(r.stderr, "no space left") || !strings.Contains(r.stderr, "to go on from here: ") || strings.Contains(r.stderr, "mode 0700") {
			t.Errorf("%d files:\n%s", files, r.stderr)
		}
		b.no(os.RemoveAll(dst))
	}
}

// TestFewDescriptors copies a tree with more files than the process may open.
func TestFewDescriptors(t *testing.T) {
	b := newBox(t)
	for i := range 2000 {
		b.write(b.path("src", fmt.Sprint(i%50), fmt.Sprint(i)), "text")
	}
	cmd := b.command("cp", "-r", b.path("src"), b.path("dst"))
	cmd.Args = append([]string{"sh", "-c", `ulimit -n 64 && exec "$@"`, "sh"}, cmd.Args...)
	sh, err := exec.LookPath("sh")
	b.no(err)
	cmd.Path = sh
	if r := b.finish(cmd); r.status != 0 {
		t.Errorf("with 64 descriptors: exit status %d\n%.1000s", r.status, r.stderr)
	}
	b.same(b.path("src"), b.path("dst"))
}

// TestAccessListsWidenNothing: the mode of a file with an access list shows the
// list's mask where a group's rights are expected. Only with the list a copy has that mode.
func TestAccessListsWidenNothing(t *testing.T) {
	b := newBox(t)
	file := b.path("srv", "src", "f")
	b.write(file, "text")
	b.no(os.Chmod(file, 0o640))
	// u::rw, u:12345:rw, g::r, m::rw, o::- as acl(5) keeps them.
	list := []byte{2, 0, 0, 0}
	for _, entry := range [][3]uint32{{0x01, 6, 1<<32 - 1}, {0x02, 6, 12345}, {0x04, 4, 1<<32 - 1}, {0x10, 6, 1<<32 - 1}, {0x20, 0, 1<<32 - 1}} {
		list = binary.LittleEndian.AppendUint16(list, uint16(entry[0]))
		list = binary.LittleEndian.AppendUint16(list, uint16(entry[1]))
		list = binary.LittleEndian.AppendUint32(list, entry[2])
	}
	if err := syscall.Setxattr(file, "system.posix_acl_access", list, 0); err != nil {
		t.Skipf("NOT TESTED: no access lists here: %v", err)
	}
	s := b.serve(b.path("srv"))
	for name, from := range map[string]string{"local": b.path("srv", "src"), "nfs": s.url + "src"} {
		r := b.must(0, "cp", "-r", "--json", from, b.path(name))
		info, err := os.Stat(b.path(name, "f"))
		b.no(err)
		if got := info.Mode().Perm(); got != 0o660 || b.list(b.path(name, "f"), "access") != string(list) {
			t.Errorf("%s: the copy has mode %o, and another list", name, got)
		}
		if r.count(b, "acls_lost") != 0 {
			t.Errorf("%s: the list that was copied is counted: %s", name, r.stdout)
		}
	}
}

// TestInterruptedOutput: the reader of the events goes away. Nothing is left behind.
func TestInterruptedOutput(t *testing.T) {
	b := newBox(t)
	for i := range 20 {
		b.write(b.path("src", fmt.Sprint(i)), string(pattern(4<<20, byte(i))))
	}
	cmd := b.command("cp", "-r", "--json", b.path("src"), b.path("dst"))
	r, w, err := os.Pipe()
	b.no(err)
	b.no(r.Close())
	cmd.Stdout = w
	err = cmd.Run()
	b.no(w.Close())
	if err == nil {
		t.Log("the copy ended well before it had to say anything")
	}
	for _, name := range b.names(b.path("dst")) {
		if strings.Contains(name, ".nfsbox-") {
			t.Errorf("left behind: %s", name)
		}
	}
}

// TestInterrupted: whatever ends a copy, but for SIGKILL, leaves nothing half done. One
// that nohup(1) has started goes on when its terminal goes.
func TestInterrupted(t *testing.T) {
	b := newBox(t)
	for i := range 20 {
		b.write(b.path("src", fmt.Sprint(i)), string(pattern(4<<20, byte(i))))
	}
	for _, x := range []struct {
		name   string
		signal syscall.Signal
		nohup  bool
	}{{"INT", syscall.SIGINT, false}, {"TERM", syscall.SIGTERM, false}, {"HUP", syscall.SIGHUP, false}, {"nohup", syscall.SIGHUP, true}} {
		dst := b.path("dst-" + x.name)
		cmd := b.command("cp", "-r", "--verify", b.path("src"), dst)
		if x.nohup {
			cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh"}, cmd.Args...)
			sh, err := exec.LookPath("sh")
			b.no(err)
			cmd.Path = sh
		}
		b.no(cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		b.until("the copy begins", func() bool { _, err := os.Stat(dst); return err == nil || len(ended) > 0 })
		_ = cmd.Process.Signal(x.signal) // it may have ended
		err := <-ended
		if status := cmd.ProcessState.ExitCode(); status < 0 || x.nohup && err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		if x.nohup {
			b.same(b.path("src"), dst)
		}
		for _, name := range b.names(dst) {
			if strings.Contains(name, ".nfsbox-") {
				t.Errorf("%s: left behind: %s", x.name, name)
			}
		}
	}
}
