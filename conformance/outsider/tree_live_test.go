//go:build linux

package outsider

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestLiveTree copies a tree in which others append, rename over, link and unlink
// all the while. Names that existed throughout are in the copy, each with a state
// that it once had, and nothing is left between.
func TestLiveTree(t *testing.T) {
	for _, over := range []string{"local", "nfs"} {
		t.Run(over, func(t *testing.T) {
			b := newBox(t)
			const names = 300
			src := b.path("srv", "src")
			for i := range names {
				b.write(filepath.Join(src, fmt.Sprint("replaced", i)), state(i, 0))
				b.write(filepath.Join(src, fmt.Sprint("still", i)), state(i, 0))
			}
			b.write(filepath.Join(src, "log"), strings.Repeat("line\n", 100_000))
			from := src
			if over == "nfs" {
				from = b.serve(b.path("srv")).url + "src"
			}
			stop := b.disturb(src, names)
			for round := range 3 {
				dst := b.path(fmt.Sprint("dst", round))
				r := b.run("cp", "-r", "--json", from, dst)
				if r.status != 0 && r.status != 2 {
					t.Errorf("exit status %d\n%s", r.status, r.stderr)
				}
				b.survived(dst, names, r)
			}
			stop()
		})
	}
}

// state is what a file holds after so many changes: enough to be torn, if a copy were.
func state(i, n int) string { return strings.Repeat(fmt.Sprintf("file %d state %d\n", i, n), 400) }

// disturb changes src until the returned function has ended that.
func (b *box) disturb(src string, names int) (stop func()) {
	ended := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() { // replaces files, as editors and mail servers do
		chance := rand.New(rand.NewPCG(1, 2))
		for n := 1; ; n++ {
			select {
			case <-ended:
				return
			default:
			}
			i := chance.IntN(names)
			temp := filepath.Join(filepath.Dir(src), "temp")
			if os.WriteFile(temp, []byte(state(i, n)), 0o644) != nil || os.Rename(temp, filepath.Join(src, fmt.Sprint("replaced", i))) != nil {
				b.Error("the tree cannot be changed")
				return
			}
		}
	})
	work.Go(func() { // appends, links and unlinks
		log, err := os.OpenFile(filepath.Join(src, "log"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			b.Error(err)
			return
		}
		defer func() { _ = log.Close() }()
		for n := range 1 << 30 {
			select {
			case <-ended:
				return
			default:
			}
			_, err := log.WriteString("line\n")
			name := filepath.Join(src, fmt.Sprint("passing", n%50))
			_ = os.Remove(name) // of the round before
			if n%3 == 0 {
				err = os.Link(filepath.Join(src, fmt.Sprint("still", n%names)), name)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(ended); work.Wait() })
}

// survived checks a copy of the tree that was disturbed.
func (b *box) survived(dst string, names int, r *result) {
	b.Helper()
	still, lost, torn := 0, 0, 0
	for i := range names {
		if got, err := os.ReadFile(filepath.Join(dst, fmt.Sprint("still", i))); err != nil || string(got) != state(i, 0) {
			still++
		}
		got, err := os.ReadFile(filepath.Join(dst, fmt.Sprint("replaced", i)))
		if err != nil {
			lost++
			continue
		}
		head, _, _ := strings.Cut(string(got), "\n")
		var which, n int
		if _, err := fmt.Sscanf(head, "file %d state %d", &which, &n); err != nil || which != i || string(got) != state(i, n) {
			torn++
		}
	}
	if still > 0 || lost > 0 || torn > 0 {
		b.Errorf("of %d files that nobody wrote to, but linked and unlinked, %d were not copied; of %d names that were replaced "+
			"%d are not in the copy, and %d hold what they never held\nexit status %d\n%.2000s", names, still, names, lost, torn, r.status, r.stderr)
	}
	got, err := os.ReadFile(filepath.Join(dst, "log"))
	if err != nil || len(got) < 500_000 || strings.Trim(strings.ReplaceAll(string(got), "line\n", ""), "line") != "" {
		b.Errorf("the log that only grows: %d bytes, %v", len(got), err)
	}
	for _, name := range b.names(dst) {
		if strings.Contains(name, ".nfsbox-") {
			b.Errorf("left behind: %s", name)
		}
	}
}

// TestOddTree copies what trees hold that nobody thinks of, there and back.
func TestOddTree(t *testing.T) {
	b := newBox(t)
	src := b.path("srv", "src")
	b.write(filepath.Join(src, "plain"), "text")
	b.write(filepath.Join(src, " leading space"), "1")
	b.write(filepath.Join(src, "new\nline"), "2")
	b.write(filepath.Join(src, "not utf-8 \xff\xfe"), "3")
	b.write(filepath.Join(src, "-r"), "4")
	b.write(filepath.Join(src, strings.Repeat("n", 255)), "5")
	b.write(filepath.Join(src, "\x1b[31mred"), "6")
	b.write(filepath.Join(src, ".nfsbox-0123456789abcdef.tmp"), "a name like those of temporaries")
	b.no(os.Symlink("../../etc/passwd", filepath.Join(src, "out")))
	b.no(os.Symlink("loop", filepath.Join(src, "loop")))
	b.no(os.Symlink("odd \xff target", filepath.Join(src, "odd target")))
	b.no(os.Link(filepath.Join(src, "plain"), filepath.Join(src, "second name")))
	deep := src
	for range 40 {
		deep = filepath.Join(deep, strings.Repeat("d", 50))
	}
	b.write(filepath.Join(deep, "bottom"), "7")
	b.no(os.Chmod(filepath.Join(src, "plain"), 0o4751))
	sparse, err := os.Create(filepath.Join(src, "sparse"))
	b.no(err)
	_, err = sparse.WriteAt([]byte("end"), 64<<20)
	b.no(err)
	b.no(sparse.Close())
	b.no(os.Chtimes(filepath.Join(src, "sparse"), b.before(), b.before()))

	s := b.serve(b.path("srv"))
	b.must(0, "cp", "-r", src, b.path("local"))
	b.same(src, b.path("local"))
	b.must(0, "cp", "-r", "--verify", s.url+"src", b.path("from"))
	b.same(src, b.path("from"))
	b.must(0, "cp", "-r", "--verify", b.path("from"), s.url+"to")
	b.same(src, b.path("srv", "to"))
	b.must(0, "verify", s.url+"src", b.path("from"))
	if b.inode(b.path("from", "plain")) != b.inode(b.path("from", "second name")) {
		t.Error("two names of one file have become two files")
	}
	b.no(os.WriteFile(b.path("from", "not utf-8 \xff\xfe"), []byte("#"), 0o644))
	b.must(3, "verify", s.url+"src", b.path("from"))
}
