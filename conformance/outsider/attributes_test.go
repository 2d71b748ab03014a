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

// list is an access control list of an object, as Linux keeps it; "" is none.
func (b *box) list(path, which string) string {
	b.Helper()
	buf := make([]byte, 4096)
	n, err := syscall.Getxattr(path, "system.posix_acl_"+which, buf)
	if err == syscall.ENODATA {
		return ""
	}
	b.no(err)
	return string(buf[:n])
}

// listed is a tree with access control lists: of a directory, which gives one to what is made in
// it, and of two files, whose groups have less than the lists, and all of it.
func (b *box) listed(src string) {
	b.Helper()
	b.write(filepath.Join(src, "dir", "narrowed"), "1")
	b.write(filepath.Join(src, "dir", "same"), "2")
	b.write(filepath.Join(src, "dir", "unlisted"), "3")
	b.write(filepath.Join(src, "plain"), "4")
	b.grant(filepath.Join(src, "dir", "narrowed"), 4)
	b.grant(filepath.Join(src, "dir", "same"), 7)
	b.grant(filepath.Join(src, "dir"), 5)
	b.no(syscall.Setxattr(filepath.Join(src, "dir"), "system.posix_acl_default", []byte(b.list(filepath.Join(src, "dir"), "access")), 0))
}

// TestListsAreKept: access control lists come along between directories and servers, in every
// direction. A job that runs again sets those that somebody has taken away, and no others.
func TestListsAreKept(t *testing.T) {
	b := newBox(t)
	src := b.path("srv", "src")
	b.listed(src)
	url := b.serve(b.path("srv")).url
	for name, way := range map[string]struct{ from, to, dst string }{
		"local": {src, b.path("local"), b.path("local")}, "from": {url + "src", b.path("from"), b.path("from")},
		"to": {src, url + "to", b.path("srv", "to")}, "over": {url + "src", url + "over", b.path("srv", "over")},
	} {
		for run, set := range []int{0, 0, 1, 0} {
			r := b.must(0, "cp", "-r", "--json", "--job", name, way.from, way.to)
			if lost, n := r.count(b, "acls_lost"), r.count(b, "attrs_set"); lost != 0 || n != set {
				t.Errorf("%s, run %d: %d access control lists were lost, and %d attributes set, want %d\n%s", name, run, lost, n, set, r.stderr)
			}
			for _, object := range []string{"dir", "dir/narrowed", "dir/same", "dir/unlisted", "plain"} {
				for _, which := range []string{"access", "default"} {
					if which == "default" && object != "dir" {
						continue
					}
					got, want := b.list(filepath.Join(way.dst, object), which), b.list(filepath.Join(src, object), which)
					if got != want {
						t.Errorf("%s, run %d: %s has the %s list %x, want %x", name, run, object, which, got, want)
					}
				}
			}
			b.must(0, "verify", way.from, way.to)
			b.must(0, "verify", "--acls", way.from, way.to)
			if run == 1 {
				b.no(syscall.Removexattr(filepath.Join(way.dst, "dir", "narrowed"), "system.posix_acl_access"))
				b.must(0, "verify", way.from, way.to) // its mode has stayed
				if r := b.must(3, "verify", "--acls", "--json", way.from, way.to); r.count(b, "differences") != 1 || !strings.Contains(r.stdout, `"kind":"acl"`) {
					t.Errorf("%s: that a list is gone is not told: %s", name, r.stdout)
				}
			}
		}
	}
}

// TestVerifyKnowsLists: a copy of a tree with access control lists that has none, and the modes
// that are due then, is as cp makes it where lists cannot be kept: verify says so, and tells what
// is not.
func TestVerifyKnowsLists(t *testing.T) {
	b := newBox(t)
	src := b.path("srv", "src")
	b.listed(src)
	url := b.serve(b.path("srv")).url + "src"
	for name, from := range map[string]string{"local": src, "nfs": url} {
		dst := b.path(name)
		b.must(0, "cp", "-r", from, dst)
		b.no(syscall.Removexattr(filepath.Join(dst, "dir"), "system.posix_acl_default"))
		for object, mode := range map[string]os.FileMode{"dir/narrowed": 0o745, "dir/same": 0o775, "dir": 0o755} {
			b.no(syscall.Removexattr(filepath.Join(dst, object), "system.posix_acl_access"))
			b.no(os.Chmod(filepath.Join(dst, object), mode))
		}
		r := b.must(0, "verify", "--json", from, dst)
		if n := r.count(b, "acls_lost"); n != 2 { // of one the mode is what it shows
			t.Errorf("%s: verify counts %d lists by their modes, want 2\n%s", name, n, r.stdout)
		}
		if r := b.must(0, "verify", from, dst); !strings.Contains(r.stderr, "access control list") {
			t.Errorf("%s: verify does not tell of lists:\n%s", name, r.stderr)
		}
		if r := b.must(3, "verify", "--acls", "--json", from, dst); r.count(b, "differences") != 3 {
			t.Errorf("%s: of 3 lists that are lost it tells\n%s", name, r.stdout)
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
// again, with no byte copied that is there, but for those of a file that would get set-id bits: they may be another's.
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
		changed := 1
		if os.Geteuid() == 0 {
			b.no(os.Chown(filepath.Join(dst, "owner"), 12345, 12345))
			changed++
		}
		b.no(os.Remove(filepath.Join(dst, "other")))
		b.no(os.Link(filepath.Join(dst, "one"), filepath.Join(dst, "other")))
		b.must(0, "cp", filepath.Join(dst, "linked"), filepath.Join(dst, "split"))
		b.no(os.Rename(filepath.Join(dst, "split"), filepath.Join(dst, "linked too")))
		r := b.must(0, "cp", "-r", "--json", "--job", job, src, name)
		if n := r.count(b, "attrs_set"); n != changed || r.count(b, "files") != 2 || r.count(b, "skipped") != 5 {
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

// attribute is an extended attribute of an object; "" is none.
func (b *box) attribute(path, name string) string {
	b.Helper()
	buf := make([]byte, 4096)
	n, err := syscall.Getxattr(path, name, buf)
	if err == syscall.ENODATA {
		return ""
	}
	b.no(err)
	return string(buf[:n])
}

// TestExtendedAttributes: those of a local source come along to a directory of this host. NFSv3 has
// no word for them: to a server they are lost, and that is told, each time.
func TestExtendedAttributes(t *testing.T) {
	b := newBox(t)
	src := b.path("srv", "src")
	b.write(filepath.Join(src, "dir", "one"), "1")
	b.write(filepath.Join(src, "dir", "none"), "2")
	b.write(filepath.Join(src, "many"), "3")
	last := ""
	for i := range 20 {
		last = "user." + strings.Repeat("n", 30) + string(rune('a'+i))
		if err := syscall.Setxattr(filepath.Join(src, "many"), last, []byte("x"), 0); err != nil {
			t.Skipf("NOT TESTED with extended attributes: %v", err)
		}
	}
	b.no(syscall.Setxattr(filepath.Join(src, "dir", "one"), "user.comment", []byte("by hand"), 0))
	b.no(syscall.Setxattr(filepath.Join(src, "dir"), "user.comment", []byte("by hand"), 0))
	b.no(os.Chmod(filepath.Join(src, "dir", "one"), 0o444)) // an attribute is not set through it
	dst := b.path("dst")
	for run, set := range []int{0, 0, 1, 0} {
		r := b.must(0, "cp", "-r", "--json", "--job", "j", src, dst)
		if lost, n := r.count(b, "xattrs_lost"), r.count(b, "attrs_set"); lost != 0 || n != set {
			t.Errorf("run %d: extended attributes of %d objects were lost, and %d set, want 0 and %d: %s", run, lost, n, set, r.stdout)
		}
		for object, name := range map[string]string{"many": last, "dir/one": "user.comment", "dir": "user.comment", "dir/none": "user.comment"} {
			if got, want := b.attribute(filepath.Join(dst, object), name), b.attribute(filepath.Join(src, object), name); got != want {
				t.Errorf("run %d: %s has %q, want %q", run, object, got, want)
			}
		}
		b.must(0, "verify", "--acls", src, dst)
		if run == 1 {
			b.no(syscall.Removexattr(filepath.Join(dst, "many"), last))
			b.must(0, "verify", src, dst)
			if r := b.must(3, "verify", "--acls", "--json", src, dst); r.count(b, "differences") != 1 || !strings.Contains(r.stdout, `"kind":"xattr"`) {
				t.Errorf("that an attribute is gone is not told: %s", r.stdout)
			}
		}
	}
	url := b.serve(b.path("srv")).url
	for run := range 2 {
		if r := b.must(0, "cp", "-r", "--json", "--job", "k", src, url+"to"); r.count(b, "xattrs_lost") != 3 {
			t.Errorf("run %d: over NFS some are lost: %s", run, r.stdout)
		}
	}
	if r := b.must(0, "cp", "-r", src, url+"again"); !strings.Contains(r.stderr, "not preserved: 3 objects' extended attributes") {
		t.Errorf("that they were lost is not told:\n%s", r.stderr)
	}
	if r := b.must(3, "verify", "--acls", "--json", src, url+"to"); r.count(b, "differences") != 3 {
		t.Errorf("what a server does not have is not told: %s", r.stdout)
	}
	if r := b.must(0, "verify", "--acls", url+"src", dst); !strings.Contains(r.stderr, "extended attributes") {
		t.Errorf("that a server cannot be asked is not told: %s", r.stderr)
	}
	if r := b.must(0, "cp", "-r", "--json", url+"src", b.path("from")); r.count(b, "xattrs_lost") != 0 {
		t.Errorf("of a server nobody can know that: %s", r.stdout)
	}
}

// TestCapabilities: a program keeps its capabilities with its owner. A copy that belongs to somebody
// else has none, and that is counted.
func TestCapabilities(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED without root: capabilities are its to give")
	}
	b := newBox(t)
	file := b.path("src", "program")
	b.write(file, "#!")
	b.no(os.Chown(file, 12345, 12345))
	capability := make([]byte, 20) // vfs_cap_data (linux/capability.h): CAP_NET_BIND_SERVICE, effective
	binary.LittleEndian.PutUint32(capability, 0x02000001)
	binary.LittleEndian.PutUint32(capability[4:], 1<<10)
	if err := syscall.Setxattr(file, "security.capability", capability, 0); err != nil {
		t.Skipf("NOT TESTED with capabilities: %v", err)
	}
	for i, args := range [][]string{nil, {"--no-owner"}} {
		dst := b.path("dst" + string(rune('a'+i)))
		r := b.must(0, append(append([]string{"cp", "-r", "--json"}, args...), b.path("src"), dst)...)
		want := []string{string(capability), ""}[i]
		if got := b.attribute(filepath.Join(dst, "program"), "security.capability"); got != want || r.count(b, "xattrs_lost") != i {
			t.Errorf("%q: the copy has the capability %x, want %x: %s", args, got, want, r.stdout)
		}
	}
}

// TestLostListThatDenies: a copy where there are no lists gives nobody more rights, also where the
// list gave somebody less than the others have.
func TestLostListThatDenies(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED without root: it takes another user to be denied, and a file system without lists")
	}
	b := newBox(t)
	b.no(os.Mkdir(b.path("plain"), 0o755))
	if err := syscall.Mount("none", b.path("plain"), "ramfs", 0, ""); err != nil {
		t.Skipf("NOT TESTED: no file system without lists: %v", err)
	}
	t.Cleanup(func() { b.no(syscall.Unmount(b.path("plain"), 0)) })
	file := b.path("src", "file")
	b.write(file, "text")
	b.no(os.Chmod(file, 0o644))
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range [][3]uint32{{1, 6, ^uint32(0)}, {2, 0, 1000}, {4, 4, ^uint32(0)}, {16, 4, ^uint32(0)}, {32, 4, ^uint32(0)}} {
		list = binary.LittleEndian.AppendUint16(list, uint16(e[0]))
		list = binary.LittleEndian.AppendUint16(list, uint16(e[1]))
		list = binary.LittleEndian.AppendUint32(list, e[2])
	}
	if err := syscall.Setxattr(file, "system.posix_acl_access", list, 0); err != nil {
		t.Skipf("NOT TESTED with access control lists: %v", err)
	}
	r := b.must(0, "cp", "-r", "--json", b.path("src"), b.path("plain", "dst"))
	info, err := os.Stat(b.path("plain", "dst", "file"))
	if err != nil || info.Mode() != 0o600 || r.count(b, "acls_lost") != 1 {
		t.Errorf("the copy has %v, %v: user 1000 may not read the source\n%s", info, err, r.stdout)
	}
}

// TestXattrsOfTheSystem: root's copy of a directory has the attributes of privileged programs, too,
// and verify compares them. Where they cannot be kept, that is counted.
func TestXattrsOfTheSystem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED without root: such attributes are its to give")
	}
	b := newBox(t)
	b.write(b.path("src", "file"), "text")
	for path, name := range map[string]string{b.path("src", "file"): "security.nfsbox", b.path("src"): "trusted.nfsbox"} {
		if err := syscall.Setxattr(path, name, []byte("by root"), 0); err != nil {
			t.Skipf("NOT TESTED with %s: %v", name, err)
		}
	}
	dst := b.path("dst")
	b.must(0, "cp", "-r", b.path("src"), dst)
	for path, name := range map[string]string{filepath.Join(dst, "file"): "security.nfsbox", dst: "trusted.nfsbox"} {
		if got := b.attribute(path, name); got != "by root" {
			t.Errorf("the copy has %s %q", name, got)
		}
	}
	b.must(0, "verify", "--acls", b.path("src"), dst)
	b.no(syscall.Removexattr(dst, "trusted.nfsbox"))
	b.must(3, "verify", "--acls", b.path("src"), dst)
	b.no(os.Mkdir(b.path("srv"), 0o755))
	s := b.serve(b.path("srv"))
	if r := b.must(0, "cp", "-r", "--json", b.path("src"), s.url+"dst"); r.count(b, "xattrs_lost") != 2 {
		t.Errorf("two are lost over NFS: %s", r.stdout)
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
