//go:build linux

package outsider

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// calls are the calls that a server with --metrics has counted, by procedure.
func (s *server) calls() map[string]int {
	s.b.Helper()
	res, err := http.Get(s.web("metrics") + "/metrics")
	s.b.no(err)
	text, err := io.ReadAll(res.Body)
	s.b.no(err)
	s.b.no(res.Body.Close())
	n := make(map[string]int)
	for _, m := range regexp.MustCompile(`(?m)^nfsbox_rpc_calls_total\{procedure="NFSPROC3_(\w+)",version="3"\} (\S+)`).FindAllStringSubmatch(string(text), -1) {
		count, err := strconv.ParseFloat(m[2], 64) // 1000000 is 1e+06
		s.b.no(err)
		n[m[1]] = int(count)
	}
	return n
}

// since is how many more there are than before.
func since(was, now map[string]int) map[string]int {
	n := make(map[string]int)
	for name, count := range now {
		if count > was[name] {
			n[name] = count - was[name]
		}
	}
	return n
}

// TestSyncOfWhatIsTheSame: a sync, and a copy that goes on, which find nothing to do make three calls
// a directory and side at most, none for a file, and change nothing. The counts are the servers'.
// NFSBOX_SOAK=1 has 1,000,000 files in 20,000 directories.
func TestSyncOfWhatIsTheSame(t *testing.T) {
	b := newBox(t)
	b.long = soak()
	files := b.soakFiles(5000, 1_000_000)
	dirs := files / 1000 * 20 // 50 files in each
	for i := range files {
		dir := b.path("src", fmt.Sprint("d", i%20), fmt.Sprint(i%dirs))
		if i < dirs {
			b.no(os.MkdirAll(dir, 0o755))
		}
		b.no(syscall.Mknod(dir+fmt.Sprint("/file", i), syscall.S_IFREG|0o644, 0))
	}
	b.no(os.Mkdir(b.path("srv"), 0o755))
	src, dst := b.serve(b.path("src"), "--metrics=127.0.0.1:0"), b.serve(b.path("srv"), "--metrics=127.0.0.1:0")
	for _, args := range [][]string{
		{"sync", src.url, dst.url + "synced"},
		{"cp", "-r", "--job", "again", src.url + ".", dst.url + "copied"},
	} {
		b.must(0, args...)
		from, to := src.calls(), dst.calls()
		r := b.must(0, append(args, "--json", "--no-progress")...)
		from, to = since(from, src.calls()), since(to, dst.calls())
		t.Logf("%s: at the source %v, at the destination %v", args[0], from, to)
		if args[0] == "sync" && (r.count(b, "unchanged") != files+dirs+21 || r.count(b, "files") != 0 || r.count(b, "dirs") != 0) {
			t.Errorf("%s", r.stdout)
		}
		if args[0] == "cp" && r.count(b, "skipped") != files {
			t.Errorf("%s", r.stdout)
		}
		for side, n := range map[string]map[string]int{"source": from, "destination": to} {
			all := 0
			for _, count := range n {
				all += count
			}
			if args[0] == "sync" && all > 3*(dirs+21)+60 || n["LOOKUP"] > files/10 || n["GETATTR"] > files/10 || n["WRITE"]+n["RENAME"] > 0 {
				t.Errorf("%s: the %s got %v", args[0], side, n)
			}
		}
		if sets := to["SETATTR"] + to["CREATE"] + to["REMOVE"] + to["MKDIR"]; args[0] == "sync" && sets > 6 {
			t.Errorf("%d calls change the destination: %v", sets, to)
		}
	}
}

// TestSyncDeletesNothingOfALostSource: whatever becomes of SOURCE (it is empty, another directory, no
// export, its server dies or is cut off in the middle of a listing), nothing in DEST is deleted, and the
// exit status says so.
func TestSyncDeletesNothingOfALostSource(t *testing.T) {
	b := newBox(t)
	for i := range 3000 {
		dir := b.path("srv", "export", fmt.Sprint("d", i%3))
		if i < 3 {
			b.no(os.MkdirAll(dir, 0o755))
		}
		b.no(syscall.Mknod(dir+fmt.Sprint("/a file with a long name ", i), syscall.S_IFREG|0o644, 0))
	}
	b.no(os.MkdirAll(b.path("srv", "empty"), 0o755))
	b.write(b.path("srv", "other", "thing"), "other")
	s := b.serve(b.path("srv"))
	b.must(0, "sync", "-q", s.url+"export", b.path("dest"))
	// The source has lost some, which may be deleted, so that there is something to do.
	for i := range 30 {
		b.no(os.Remove(b.path("srv", "export", fmt.Sprint("d", i%3)) + fmt.Sprint("/a file with a long name ", i)))
	}
	const impatient = "?timeo=5&retrans=1"
	for name, c := range map[string]struct {
		source func(t *testing.T) string
		status int
	}{
		"it is empty":       {func(*testing.T) string { return s.url + "empty" }, 2},
		"another directory": {func(*testing.T) string { return s.url + "other" }, 2},
		"it does not exist": {func(*testing.T) string { return s.url + "none" }, 2},
		"no such export": {func(*testing.T) string {
			return "nfs://127.0.0.1:" + strconv.Itoa(b.serve(b.path("srv", "other"), "--export=/other").port) + "/export"
		}, 2},
		"cut off in listing": {func(*testing.T) string {
			return b.proxy(s, func(p *proxy) { p.cut = func() int64 { return 3_000 } }).url() + "export" + impatient
		}, 4},
		"it falls silent": {func(*testing.T) string {
			silent := b.proxy(s, func(p *proxy) { p.back = b.whenPassed(60_000, func() { p.frozen.Store(true) }) })
			return silent.url() + "export" + impatient
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			b := &box{T: t, dir: b.dir, bin: b.bin}
			r := b.run("sync", "--delete", "--no-progress", "--json", c.source(t), b.path("dest"))
			if r.status != c.status || r.count(b, "deleted") != 0 {
				t.Errorf("status %d, want %d\n%s%s", r.status, c.status, r.stdout, r.stderr)
			}
			if n := b.files(b.path("dest")); n != 3000 {
				t.Errorf("%d files are left", n)
			}
		})
	}
	b.must(0, "sync", "--delete", "-q", s.url+"export", b.path("dest"))
	if n := b.files(b.path("dest")); n != 2970 {
		t.Errorf("%d files are left", n)
	}
	b.must(0, "verify", "-q", s.url+"export", b.path("dest"))
}

// TestSyncOfUnmounted: what SOURCE was is not mounted any more, so that an empty directory has its name, here and
// at a server that runs on. Nothing is deleted, with and without a job that knows SOURCE.
func TestSyncOfUnmounted(t *testing.T) {
	root(t, "to mount")
	b := newBox(t)
	at := b.path("srv", "data")
	b.no(os.MkdirAll(at, 0o755))
	s := b.serve(b.path("srv"), "--crossmnt")
	if err := syscall.Mount("tmpfs", at, "tmpfs", 0, ""); err != nil {
		t.Skipf("NOT TESTED: this machine mounts no tmpfs: %v", err)
	}
	unmount := sync.OnceValue(func() error { return syscall.Unmount(at, syscall.MNT_DETACH) })
	defer func() { _ = unmount() }() // it is done, or the test has failed already
	for i := range 30 {
		b.write(filepath.Join(at, fmt.Sprint("d", i%3), fmt.Sprint("f", i)), "text")
	}
	var runs [][]string
	for name, source := range map[string]string{"local": at, "nfs": s.url + "data"} {
		for _, job := range []string{"", name + "-job"} {
			args := []string{"sync", "--delete", "--json", "--no-progress"}
			if job != "" {
				args = append(args, "--job", job)
			}
			args = append(args, source, b.path("dest-"+name+job))
			b.must(0, args...)
			if n := b.files(args[len(args)-1]); n != 30 {
				t.Fatalf("%q: %d files", args, n)
			}
			runs = append(runs, args)
		}
	}
	b.no(unmount())
	for _, args := range runs {
		r := b.run(args...)
		if r.status != 2 && r.status != 4 || b.files(args[len(args)-1]) != 30 {
			t.Errorf("%q: status %d, and %d files are left\n%s%s", args, r.status, b.files(args[len(args)-1]), r.stdout, r.stderr)
		}
	}
}

// files is how many files are below a directory.
func (b *box) files(dir string) (n int) {
	b.Helper()
	b.no(filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			n++
		}
		return err
	}))
	return n
}

// TestSyncGoesOn: a sync that was interrupted or killed goes on when the same command is run again: what
// it had copied stays, no temporary is left, nor a record, and both sides are the same.
func TestSyncGoesOn(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			heeds(t, sig)
			b := newBox(t)
			for i := range 200 {
				b.write(b.path("srv", "export", fmt.Sprint(i%5), fmt.Sprint(i)), string(pattern(50_000, byte(i))))
				b.write(b.path("dest", fmt.Sprint(i%5), fmt.Sprint("old", i)), "old")
			}
			hold := make(chan struct{})
			hook, begin, sent := b.signalled(sig, 1_500_000, hold)
			p := b.proxy(b.serve(b.path("srv")), hook)
			again := []string{"sync", "--delete", "--delete-from-empty", "--parallel=8", p.url() + "export", "./dest"}
			r := begin(again...)
			<-sent
			status := r.status()
			close(hold)
			if want := map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGKILL: -1}[sig]; status != want {
				t.Fatalf("exit status %d, want %d\n%s", status, want, r.err)
			}
			if n := b.files(b.path("dest")); n < 200 {
				t.Errorf("%d files are there: some were deleted before all was copied", n)
			}
			if len(b.unfinished()) != 1 {
				t.Errorf("records: %q", b.unfinished())
			}
			last := b.must(0, append(again, "--json", "--no-progress")...)
			if sig != syscall.SIGKILL && last.count(b, "unchanged")+last.count(b, "skipped") == 0 || last.count(b, "deleted") != 200 {
				t.Errorf("it did not go on:\n%s", last.stdout)
			}
			b.same(b.path("srv", "export"), b.path("dest"))
			if len(b.unfinished()) > 0 {
				t.Errorf("records stay: %q", b.unfinished())
			}
		})
	}
}
