//go:build linux

package outsider

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// grant gives an object an access control list by which a user of another name has all
// rights, and its own group those of group: acl(5), as Linux keeps it.
func (b *box) grant(path string, group uint16) {
	b.Helper()
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range [...]struct {
		tag, perm uint16
		id        uint32
	}{{1, 7, ^uint32(0)}, {2, 7, 12345}, {4, group, ^uint32(0)}, {16, 7, ^uint32(0)}, {32, 5, ^uint32(0)}} {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.perm)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	if err := syscall.Setxattr(path, "system.posix_acl_access", list, 0); err != nil {
		b.Skipf("NOT TESTED with access control lists: %v", err)
	}
}

// TestVerifyKnowsLists: a copy of a tree with access control lists, which are not copied,
// is as cp makes it: verify says so, and tells what is not. A job counts the same lists
// each time.
func TestVerifyKnowsLists(t *testing.T) {
	b := newBox(t)
	src := b.path("srv", "src")
	b.write(filepath.Join(src, "dir", "narrowed"), "1")
	b.write(filepath.Join(src, "dir", "same"), "2")
	b.write(filepath.Join(src, "plain"), "3")
	b.grant(filepath.Join(src, "dir", "narrowed"), 4)
	b.grant(filepath.Join(src, "dir", "same"), 7)
	b.grant(filepath.Join(src, "dir"), 5)
	url := b.serve(b.path("srv")).url + "src"
	for name, from := range map[string]string{"local": src, "nfs": url} {
		dst := b.path(name)
		for run := range 2 {
			r := b.must(0, "cp", "-r", "--json", "--job", name, from, dst)
			if n := r.count(b, "acls_lost"); n != 3 {
				t.Errorf("%s, run %d: %d access control lists were lost, want 3", name, run, n)
			}
		}
		r := b.must(0, "verify", "--json", from, dst)
		if n := r.count(b, "acls_lost"); n != 2 { // of one the mode is what it shows
			t.Errorf("%s: verify counts %d lists by their modes, want 2\n%s", name, n, r.stdout)
		}
		if r := b.must(0, "verify", from, dst); !strings.Contains(r.stderr, "access control list") {
			t.Errorf("%s: verify does not tell of lists:\n%s", name, r.stderr)
		}
		b.no(os.Chmod(filepath.Join(dst, "dir", "narrowed"), 0o755))
		b.no(os.Chmod(filepath.Join(dst, "plain"), 0o600))
		r = b.must(3, "verify", from, dst)
		if !strings.Contains(r.stderr, "narrowed") || !strings.Contains(r.stderr, "plain") {
			t.Errorf("%s: modes that no list explains are not told of:\n%s", name, r.stderr)
		}
	}
}

// TestJobKeepsAttributes: what others do to the copies of a job is undone when it runs
// again, with no byte copied that is there.
func TestJobKeepsAttributes(t *testing.T) {
	b := newBox(t)
	src := b.path("src")
	for _, name := range []string{"mode", "owner", "one", "other", "left alone", "setuid"} {
		b.write(filepath.Join(src, name), "text")
		b.no(os.Chtimes(filepath.Join(src, name), b.before(), b.before()))
	}
	b.no(os.Chmod(filepath.Join(src, "setuid"), 0o755|os.ModeSetuid))
	b.write(filepath.Join(src, "linked"), "another")
	b.no(os.Link(filepath.Join(src, "linked"), filepath.Join(src, "linked too")))
	b.no(os.MkdirAll(b.path("srv"), 0o755))
	url := b.serve(b.path("srv")).url
	for name, dst := range map[string]string{b.path("dst"): b.path("dst"), url + "dst": b.path("srv", "dst")} {
		job := filepath.Base(filepath.Dir(dst))
		b.must(0, "cp", "-r", "--job", job, src, name)
		b.no(os.Chmod(filepath.Join(dst, "mode"), 0o777))
		b.no(os.Chmod(filepath.Join(dst, "setuid"), 0o755))
		changed := 2
		if os.Geteuid() == 0 {
			b.no(os.Chown(filepath.Join(dst, "owner"), 12345, 12345))
			changed++
		}
		b.no(os.Remove(filepath.Join(dst, "other")))
		b.no(os.Link(filepath.Join(dst, "one"), filepath.Join(dst, "other")))
		b.must(0, "cp", filepath.Join(dst, "linked"), filepath.Join(dst, "split"))
		b.no(os.Rename(filepath.Join(dst, "split"), filepath.Join(dst, "linked too")))
		r := b.must(0, "cp", "-r", "--json", "--job", job, src, name)
		if n := r.count(b, "attrs_set"); n != changed || r.count(b, "files") != 1 || r.count(b, "skipped") != 6 {
			t.Errorf("%s: %d attributes set, want %d; %s", name, n, changed, r.stdout)
		}
		b.same(src, dst)
		b.must(0, "verify", "--owner", src, dst)
		if a, c := b.inode(filepath.Join(dst, "linked")), b.inode(filepath.Join(dst, "linked too")); a != c {
			t.Errorf("%s: a hard link that was split is still split", name)
		}
		r = b.must(0, "cp", "-r", "--json", "--job", job, src, name)
		if r.count(b, "attrs_set") != 0 || r.count(b, "files") != 0 || r.count(b, "skipped") != 7 {
			t.Errorf("%s: nothing was to be done, but %s", name, r.stdout)
		}
	}
}

// TestExtendedAttributesAreCounted: those that a local source has do not come along, and
// that is told, each time. NFSv3 has no word for them.
func TestExtendedAttributesAreCounted(t *testing.T) {
	b := newBox(t)
	src := b.path("srv", "src")
	b.write(filepath.Join(src, "dir", "one"), "1")
	b.write(filepath.Join(src, "dir", "none"), "2")
	b.write(filepath.Join(src, "many"), "3")
	for i := range 20 {
		name := "user." + strings.Repeat("n", 30) + string(rune('a'+i))
		if err := syscall.Setxattr(filepath.Join(src, "many"), name, []byte("x"), 0); err != nil {
			t.Skipf("NOT TESTED with extended attributes: %v", err)
		}
	}
	b.no(syscall.Setxattr(filepath.Join(src, "dir", "one"), "user.comment", []byte("by hand"), 0))
	b.no(syscall.Setxattr(filepath.Join(src, "dir"), "user.comment", []byte("by hand"), 0))
	for range 2 {
		r := b.must(0, "cp", "-r", "--json", "--job", "j", src, b.path("dst"))
		if n := r.count(b, "xattrs_lost"); n != 3 {
			t.Errorf("extended attributes of %d objects were lost, want 3: %s", n, r.stdout)
		}
	}
	if r := b.must(0, "cp", "-r", src, b.path("again")); !strings.Contains(r.stderr, "not preserved: 3 objects' extended attributes") {
		t.Errorf("that they were lost is not told:\n%s", r.stderr)
	}
	url := b.serve(b.path("srv")).url
	if r := b.must(0, "cp", "-r", "--json", url+"src", b.path("from")); r.count(b, "xattrs_lost") != 0 {
		t.Errorf("of a server nobody can know that: %s", r.stdout)
	}
}

// TestVerifyKnowsTimes: a copy over NFSv3 of a tree with times that it does not have has the
// nearest ones. Verify tells of them as cp does, and of other times as of differences.
func TestVerifyKnowsTimes(t *testing.T) {
	b := newBox(t)
	src := b.path("src")
	early, late := time.Date(1960, 1, 2, 3, 4, 5, 6, time.UTC), time.Date(2200, 1, 2, 3, 4, 5, 6, time.UTC)
	for name, at := range map[string]time.Time{"early": early, "late": late, "plain": b.before(), "dir/late": late} {
		b.write(filepath.Join(src, name), "text")
		b.no(os.Chtimes(filepath.Join(src, name), at, at))
		if got := b.mtime(filepath.Join(src, name)); !got.Equal(at) {
			t.Skipf("NOT TESTED: this file system has %v for %v", got, at)
		}
	}
	b.no(os.Chtimes(filepath.Join(src, "dir"), early, early))
	b.no(os.Mkdir(b.path("srv"), 0o755))
	s := b.serve(b.path("srv"))
	url := s.url + "dst"
	lost := b.must(0, "cp", "-r", "--json", src, url).count(b, "times_lost")
	r := b.must(0, "verify", "--json", src, url)
	if n := r.count(b, "times_lost"); n != 4 || n != lost {
		t.Errorf("cp lost %d times, verify counts %d, want 4\n%s", lost, n, r.stdout)
	}
	if r := b.must(0, "verify", src, url); !strings.Contains(r.stderr, "not preserved: 4 times that NFSv3 does not have") {
		t.Errorf("verify does not tell of them:\n%s", r.stderr)
	}
	for _, run := range []string{"first", "second"} {
		r := b.must(0, "cp", "-r", "--json", "--job", "j", src, s.url+"job")
		if n := r.count(b, "times_lost"); n != 4 {
			t.Errorf("a job's %s run lost %d times, want 4: %s", run, n, r.stdout)
		}
	}
	b.no(os.Chtimes(b.path("srv", "dst", "late"), early, b.before()))
	b.no(os.Chtimes(b.path("srv", "dst", "early"), late, time.Unix(1<<32-1, 999_999_999)))
	if r := b.must(3, "verify", "--json", src, url); r.count(b, "differences") != 2 || r.count(b, "times_lost") != 2 {
		t.Errorf("two times are not the nearest ones: %s", r.stdout)
	}
}
