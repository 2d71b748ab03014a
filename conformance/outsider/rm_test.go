//go:build linux

package outsider

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestRemoveFollowsNoLink: links in the tree, and the one that is named, lead out of it to what stays. So do names that are
// not UTF-8.
func TestRemoveFollowsNoLink(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "out", "precious"), "stay")
	b.write(b.path("elsewhere", "precious"), "stay")
	for _, name := range []string{"a b", "new\nline", "\xff\xfe", "%2e%2e", "*", "-r", "\x1b[31m"} {
		b.write(b.path("srv", "tree", name, name), name)
	}
	for name, to := range map[string]string{"up": "..", "out": "../out", "absolute": b.path("elsewhere"), "root": "/", "none": "nowhere", "self": "self"} {
		b.no(os.Symlink(to, b.path("srv", "tree", name)))
	}
	b.no(os.Symlink("out", b.path("srv", "link")))
	s := b.serve(b.path("srv"))
	r := b.must(0, "rm", "-r", "--json", s.url+"tree", s.url+"link")
	if got := b.names(b.path("srv")); strings.Join(got, " ") != "out out/precious" {
		t.Errorf("left are %q", got)
	}
	if r.count(b, "symlinks") != 7 || r.count(b, "files") != 7 || r.count(b, "dirs") != 8 {
		t.Errorf("the summary says %v", r.summary(b))
	}
	b.no(os.Symlink("out", b.path("srv", "link")))
	if status := b.run("rm", "-r", s.url+"link/").status; status == 0 {
		t.Error("a link with a slash behind it was removed")
	}
	for _, path := range []string{b.path("srv", "out", "precious"), b.path("elsewhere", "precious")} {
		if b.text(path) != "stay" {
			t.Errorf("%s is gone", path)
		}
	}
}

// TestRemoveWhereDirectoriesBecomeLinks: while a tree is removed, somebody puts links to what shall stay in the place of its
// directories, again and again.
func TestRemoveWhereDirectoriesBecomeLinks(t *testing.T) {
	b := newBox(t)
	for i := range 200 {
		b.write(b.path("srv", "out", fmt.Sprint("precious", i)), "stay")
	}
	for i := range 3000 {
		b.write(b.path("srv", "tree", fmt.Sprint("d", i%100), fmt.Sprint("f", i)), "go")
	}
	s := b.serve(b.path("srv"))
	p := b.proxy(s, func(p *proxy) { p.delay = time.Millisecond })
	var over atomic.Bool
	swapped := make(chan int)
	go func() {
		n := 0
		for i := 0; !over.Load() && i < 100_000; i++ {
			at := b.path("srv", "tree", fmt.Sprint("d", i%100))
			if os.Rename(at, fmt.Sprint(b.path("srv", "moved"), i)) == nil {
				if os.Symlink("../out", at) == nil {
					n++
				}
			}
			time.Sleep(100 * time.Microsecond)
		}
		swapped <- n
	}()
	r := b.run("rm", "-r", "--json", p.url()+"tree")
	over.Store(true)
	if n := <-swapped; n == 0 || r.status != 0 && r.status != 2 {
		t.Errorf("%d directories were replaced, and the status is %d: %s", n, r.status, r.stderr)
	}
	if got := len(b.names(b.path("srv", "out"))); got != 200 {
		t.Errorf("%d files are left, of 200 that a link led to", got)
	}
}

// TestRemoveDeepAndWide: a tree of 1,000 levels, and a directory of 20,000 names that is listed while it is
// emptied; a second run finds nothing.
func TestRemoveDeepAndWide(t *testing.T) {
	b := newBox(t)
	deep, err := os.OpenRoot(b.dir)
	b.no(err)
	b.no(deep.MkdirAll("srv/tree", 0o755))
	at, err := deep.OpenRoot("srv/tree")
	b.no(err)
	for range 1000 {
		b.no(at.Mkdir("d", 0o755))
		below, err := at.OpenRoot("d")
		b.no(err)
		b.no(at.Close())
		at = below
	}
	b.no(at.WriteFile("bottom", nil, 0o644))
	b.no(at.Close())
	b.no(os.Mkdir(b.path("srv", "tree", "wide"), 0o755))
	for i := range 5000 {
		b.no(syscall.Mknod(b.path("srv", "tree", "wide", fmt.Sprint("a-name-of-some-length-", i)), syscall.S_IFREG|0o644, 0))
	}
	s := b.serve(b.path("srv"))
	if n := b.must(0, "rm", "-r", "-n", "-q", "--json", s.url+"tree").count(b, "files"); n != 5001 {
		t.Errorf("%d files would be removed", n)
	}
	r := b.must(0, "rm", "-r", "--json", s.url+"tree")
	if r.count(b, "files") != 5001 || r.count(b, "dirs") != 1002 || len(b.names(b.path("srv"))) > 0 {
		t.Errorf("%v, and left are %q", r.summary(b), b.names(b.path("srv")))
	}
	b.must(2, "rm", "-r", s.url+"tree")
	b.must(0, "rm", "-r", "-f", s.url+"tree")
}

// TestRemoveAgain: what could not be removed is listed, and another run removes it by that list alone.
func TestRemoveAgain(t *testing.T) {
	root(t, "a user who may not remove")
	b := newBox(t)
	for _, path := range []string{"mine/a", "mine/new\nline", "closed/b", "closed/c"} {
		b.write(b.path("srv", "tree", path), "text")
	}
	b.no(os.Chmod(b.path("srv", "tree"), 0o777))
	b.no(os.Chmod(b.path("srv", "tree", "mine"), 0o777))
	s := b.serve(b.path("srv"), "--squash", "none")
	list := b.path("again")
	b.must(2, "rm", "-r", "-0", "--failed-to", list, s.url+"tree?uid=1000&gid=1000")
	got := strings.Split(strings.TrimSuffix(b.text(list), "\x00"), "\x00")
	if len(got) != 2 || !strings.HasPrefix(got[0], "closed/") || !strings.HasPrefix(got[1], "closed/") {
		t.Errorf("failed have %q", got)
	}
	b.must(0, "rm", "-r", "-0", "--files-from", list, s.url+"tree?uid=0&gid=0")
	if left := b.names(b.path("srv", "tree", "closed")); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// TestRemoveGoesOn: a run that is interrupted has removed whole directories or none, and the next one removes the rest.
func TestRemoveGoesOn(t *testing.T) {
	b := newBox(t)
	for i := range 5000 {
		dir := b.path("srv", "tree", fmt.Sprint("d", i%50))
		if i < 50 {
			b.no(os.MkdirAll(dir, 0o755))
		}
		b.no(syscall.Mknod(fmt.Sprint(dir, "/f", i), syscall.S_IFREG|0o644, 0))
	}
	s := b.serve(b.path("srv"))
	p := b.proxy(s, func(p *proxy) { p.delay = 5 * time.Millisecond })
	cmd := b.command("rm", "-r", p.url()+"tree?max-load=4")
	done := make(chan *result)
	go func() { done <- b.finish(cmd) }()
	first := b.path("srv", "tree")
	b.until("something is removed", func() bool { return p.sent.Load() > 100_000 })
	b.no(cmd.Process.Signal(os.Interrupt))
	r := <-done
	if r.status != 130 || !strings.Contains(r.stderr, "to remove the rest: ") {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
	if _, err := os.Stat(first); err != nil {
		t.Fatalf("it was done before: %v", err)
	}
	b.must(0, "rm", "-r", s.url+"tree")
	if got := b.names(b.path("srv")); len(got) > 0 {
		t.Errorf("left are %q", got)
	}
}
