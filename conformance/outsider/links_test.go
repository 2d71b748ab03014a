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

// kinds are what has further names besides directories. Devices are root's.
func (b *box) kinds(dir string) []string {
	b.Helper()
	b.write(filepath.Join(dir, "file"), "text")
	b.no(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o640))
	b.no(os.Symlink("nowhere", filepath.Join(dir, "link")))
	b.no(syscall.Mknod(filepath.Join(dir, "socket"), syscall.S_IFSOCK|0o600, 0))
	all := []string{"file", "pipe", "link", "socket"}
	if syscall.Mknod(filepath.Join(dir, "device"), syscall.S_IFCHR|0o600, 1<<8|3) == nil {
		all = append(all, "device")
	}
	b.no(os.Mkdir(filepath.Join(dir, "deep"), 0o755))
	for _, kind := range all {
		b.no(os.Link(filepath.Join(dir, kind), filepath.Join(dir, "deep", "second "+kind)))
	}
	return all
}

// linkedAs fails for a second name that is not the same object as the first.
func (b *box) linkedAs(dir string, kinds []string) {
	b.Helper()
	for _, kind := range kinds {
		if b.inode(filepath.Join(dir, kind)) != b.inode(filepath.Join(dir, "deep", "second "+kind)) {
			b.Errorf("%s: the two names of the %s have become two objects", dir, kind)
		}
	}
}

// TestHardLinksOfEveryKind: what is one object in the source is one in the copy, of
// whatever kind it is, by whatever way it came there, and also the second time.
func TestHardLinksOfEveryKind(t *testing.T) {
	b := newBox(t)
	src := b.path("srv", "src")
	kinds := b.kinds(src)
	url := b.serve(b.path("srv")).url
	for i, way := range [][3]string{
		{src, b.path("local"), b.path("local")},
		{url + "src", b.path("from"), b.path("from")},
		{src, url + "to", b.path("srv", "to")},
	} {
		for range 2 {
			r := b.must(0, "cp", "-r", "--json", "--job", fmt.Sprint("way", i), way[0], way[1])
			b.linkedAs(way[2], kinds)
			if r.count(b, "links_split") != 0 {
				t.Errorf("%s: %v links split\n%s", way[1], r.count(b, "links_split"), r.stdout)
			}
		}
		b.same(src, way[2])
		b.must(0, "verify", way[0], way[1])
	}
}

// TestVerifyTellsLinksApart: what is one object on one side only is a difference, told
// by both names, whatever its kind.
func TestVerifyTellsLinksApart(t *testing.T) {
	b := newBox(t)
	src := b.path("srv", "src")
	kinds := b.kinds(src)
	url := b.serve(b.path("srv")).url
	for _, kind := range kinds {
		dst := b.path("srv", "split "+kind)
		b.must(0, "cp", "-r", src, dst)
		second := filepath.Join(dst, "deep", "second "+kind)
		b.no(os.Remove(second))
		b.must(0, "cp", filepath.Join(src, kind), second)
		b.no(os.Chtimes(filepath.Join(dst, "deep"), b.mtime(filepath.Join(src, "deep")), b.mtime(filepath.Join(src, "deep"))))
		for _, sides := range [][2]string{{src, dst}, {dst, src}, {url + "src", url + "split%20" + kind}} {
			r := b.must(3, "verify", sides[0], sides[1])
			if !strings.Contains(r.stderr, "second "+kind) || strings.Count(r.stderr, kind) < 2 || !strings.Contains(r.stderr, "hard link") {
				t.Errorf("verify %s %s:\n%s", sides[0], sides[1], r.stderr)
			}
		}
	}
}

// TestCopyPartsLinks: a copy over names that are one object, and stand for two, makes
// them two.
func TestCopyPartsLinks(t *testing.T) {
	b := newBox(t)
	kinds := b.kinds(b.path("src"))
	b.kinds(b.path("dst"))
	for _, kind := range kinds {
		second := b.path("src", "deep", "second "+kind)
		b.no(os.Remove(second))
		b.must(0, "cp", b.path("src", kind), second)
	}
	b.must(0, "cp", "-r", b.path("src")+"/.", b.path("dst"))
	for _, kind := range kinds {
		if b.inode(b.path("dst", kind)) == b.inode(b.path("dst", "deep", "second "+kind)) {
			t.Errorf("two objects of the source are one %s in the copy", kind)
		}
	}
	b.same(b.path("src"), b.path("dst"))
}

// TestJobKnowsItsCopies: a hard link to another file, of the same size and time, is not what
// the job has copied, and is replaced. A further name of the copy changes nothing.
func TestJobKnowsItsCopies(t *testing.T) {
	b := newBox(t)
	for _, name := range []string{"replaced", "snapshot", "plain"} {
		b.write(b.path("src", name), "text of the source")
		b.no(os.Chtimes(b.path("src", name), b.before(), b.before()))
	}
	b.no(os.Mkdir(b.path("srv"), 0o755))
	url := b.serve(b.path("srv")).url
	for job, dst := range map[string]string{"local": b.path("local"), "nfs": b.path("srv", "dst")} {
		dest := dst
		if job == "nfs" {
			dest = url + "dst"
		}
		args := []string{"cp", "-r", "--json", "--job", job, b.path("src"), dest}
		b.must(0, args...)
		other := filepath.Join(filepath.Dir(dst), "other "+job)
		b.write(other, "text of another...")
		b.no(os.Remove(filepath.Join(dst, "replaced")))
		b.no(os.Link(other, filepath.Join(dst, "replaced")))
		b.no(os.Chtimes(other, b.before(), b.before()))
		b.no(os.Link(filepath.Join(dst, "snapshot"), filepath.Join(filepath.Dir(dst), "yesterday "+job)))
		if r := b.must(0, args...); r.count(b, "files") != 1 || r.count(b, "skipped") != 2 {
			t.Errorf("%s: one file was to be copied: %s", job, r.stdout)
		}
		b.same(b.path("src"), dst)
		if got := b.text(other); got != "text of another..." {
			t.Errorf("%s: the other file holds %q", job, got)
		}
	}
}

// TestLinkOutOfItsDirectory: a link that is named by a URL, and leads out of the directory
// that it is in, gives nobody the contents of another file.
func TestLinkOutOfItsDirectory(t *testing.T) {
	b := newBox(t)
	srv := b.path("srv")
	b.write(filepath.Join(srv, "file"), "right")
	b.write(filepath.Join(srv, "dir", "file"), "wrong")
	b.no(os.Mkdir(filepath.Join(srv, "dir", "below"), 0o755))
	for name, target := range map[string]string{"up": "../file", "root": "/file", "through": "below/../../file", "beside": "file", "back": "below/../file"} {
		b.no(os.Symlink(target, filepath.Join(srv, "dir", name)))
	}
	url := b.serve(srv).url + "dir/"
	for _, name := range []string{"up", "root", "through"} {
		if r := b.run("cat", url+name); r.status == 0 || r.stdout != "" || !strings.Contains(r.stderr, "name what it leads to") {
			t.Errorf("cat %s: status %d, %q\n%s", name, r.status, r.stdout, r.stderr)
		}
		if r := b.run("verify", filepath.Join(srv, "dir", "file"), url+name); r.status == 0 || r.status == 3 {
			t.Errorf("verify %s: status %d\n%s%s", name, r.status, r.stdout, r.stderr)
		}
		if r := b.run("doctor", url+name); r.status == 0 || !strings.Contains(r.stdout+r.stderr, "what the link leads to") {
			t.Errorf("doctor %s: status %d\n%s%s", name, r.status, r.stdout, r.stderr)
		}
		if r := b.run("bench", "getattr", "-n", "1", url+name); r.status == 0 || !strings.Contains(r.stderr, "name what it leads to") {
			t.Errorf("bench getattr %s: status %d\n%s%s", name, r.status, r.stdout, r.stderr)
		}
	}
	for _, name := range []string{"beside", "back"} {
		if r := b.must(0, "cat", url+name); r.stdout != "wrong" {
			t.Errorf("cat %s: %q", name, r.stdout)
		}
		b.must(0, "doctor", url+name)
		b.must(0, "bench", "getattr", "-n", "1", url+name)
	}
}

// TestLinkOutOnTheWay: nor does a link to a directory in the middle of a URL's path,
// which leads out of all that is served.
func TestLinkOutOnTheWay(t *testing.T) {
	b := newBox(t)
	srv := b.path("srv")
	b.write(filepath.Join(srv, "dir", "beyond", "file"), "wrong")
	b.write(filepath.Join(srv, "beside", "file"), "right")
	for name, target := range map[string]string{"out": "../../beyond", "up": "../beside"} {
		b.no(os.Symlink(target, filepath.Join(srv, "dir", name)))
	}
	url := b.serve(srv).url + "dir/"
	for _, args := range [][]string{{"cat", url + "out/file"}, {"ls", url + "out/"}, {"doctor", url + "out/file"}} {
		if r := b.run(args...); r.status == 0 || !strings.Contains(r.stdout+r.stderr, "leads out of") {
			t.Errorf("%s: status %d, %s\n%s", args, r.status, r.stdout, r.stderr)
		}
	}
	if r := b.must(0, "cat", url+"up/file"); r.stdout != "right" {
		t.Errorf("by a link within what is served: %q", r.stdout)
	}
}
