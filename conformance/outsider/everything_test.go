//go:build linux

package outsider

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ganeshaConfig is an NFSv3 server over a directory, at two ports of loopback.
const ganeshaConfig = `
NFS_CORE_PARAM { NFS_Port = %[1]d; MNT_Port = %[2]d; Bind_addr = 127.0.0.1;
	Protocols = 3; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; mount_path_pseudo = false; }
NFSV4 { Graceless = true; }
NFS_KRB5 { Active_krb5 = false; }
EXPORT_DEFAULTS { Protocols = 3; Transports = TCP; SecType = sys; Squash = No_Root_Squash; PrivilegedPort = false; }
EXPORT { Export_Id = 1; Path = %[3]s; Pseudo = /export; Access_Type = RW; FSAL { Name = VFS; } }`

// ganeshaScript runs it, and the rpcbind that it needs, in namespaces of their own; SIGTERM ends both.
const ganeshaScript = `
# Mounts of this host are not ours: a copy would keep them alive when their tests unmount them.
umount -l -a -t fuse.nfsbox
mount -t tmpfs tmpfs /run && mkdir -p /run/ganesha /run/rpcbind || exit 1
mount -t tmpfs tmpfs /var/lib/nfs && mkdir -p /var/lib/nfs/ganesha || exit 1
unshare -n sh -c 'ip link set lo up; exec rpcbind -f -w' &
rpcbind=$!
trap 'kill $ganesha $rpcbind; wait' TERM
for i in $(seq 100); do [ -S /run/rpcbind.sock ] && break; sleep 0.1; done
ganesha.nfsd -F -L "$1/log" -f "$1/conf" -p "$1/pid" &
ganesha=$!
wait $ganesha
kill $rpcbind; wait`

// ganesha serves dir by nfs-ganesha until the test ends, and returns the URL of what lies in it. ok is
// false where that is not installed.
func (b *box) ganesha(dir string) (url func(name string) string, ok bool) {
	b.Helper()
	for _, tool := range []string{"ganesha.nfsd", "rpcbind", "unshare", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			if strings.Contains(","+os.Getenv("NFSBOX_REQUIRE")+",", ",ganesha,") {
				b.Fatalf("NFSBOX_REQUIRE names ganesha: %v", err)
			}
			b.Logf("NOT TESTED with nfs-ganesha: %v", err)
			return nil, false
		}
	}
	home := b.TempDir()
	var ports [2]int
	for ports[0] == ports[1] {
		ports = [2]int{b.port(), b.port()}
	}
	b.no(os.WriteFile(filepath.Join(home, "conf"), fmt.Appendf(nil, ganeshaConfig, ports[0], ports[1], dir), 0o600))
	cmd := exec.Command("unshare", "-m", "sh", "-c", ganeshaScript, "ganesha", home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	b.no(cmd.Start())
	b.Cleanup(func() {
		b.no(cmd.Process.Signal(syscall.SIGTERM))
		_ = cmd.Wait() // it ends by the signal
	})
	b.until("nfs-ganesha starts", func() bool {
		log, _ := os.ReadFile(filepath.Join(home, "log")) // there is none yet
		return bytes.Contains(log, []byte("NFS SERVER INITIALIZED"))
	})
	return func(name string) string {
		return fmt.Sprintf("nfs://127.0.0.1%s?nfsport=%d&mountport=%d", filepath.Join(dir, name), ports[0], ports[1])
	}, true
}

// manyFiles are those of oddTree that make a copy last: more than are dealt out at once, or wait for a sync.
const manyFiles = 600

// oddTree is a tree with one of everything that a copy may lose.
func (b *box) oddTree(src string) {
	b.Helper()
	when := time.Date(2001, 2, 3, 4, 5, 6, 789_012_345, time.UTC)
	b.listed(src) // access control lists
	b.write(filepath.Join(src, "a", "linked"), "two names")
	b.no(os.MkdirAll(filepath.Join(src, "b", "deep"), 0o750))
	b.no(os.Link(filepath.Join(src, "a", "linked"), filepath.Join(src, "b", "deep", "linked")))
	holes, err := os.Create(filepath.Join(src, "holes"))
	b.no(err)
	for _, off := range []int64{0, 3 << 20} {
		_, err = holes.WriteAt([]byte("data"), off)
		b.no(err)
	}
	b.no(holes.Truncate(8 << 20))
	b.no(holes.Close())
	b.write(filepath.Join(src, "sizeless"), "")
	b.no(os.Symlink("no\xffwhere/..//", filepath.Join(src, "dangling")))
	b.no(syscall.Mknod(filepath.Join(src, "null"), syscall.S_IFCHR|0o640, 1<<8|3))
	b.no(syscall.Mknod(filepath.Join(src, "disk"), syscall.S_IFBLK|0o600, 7<<8|200))
	b.no(syscall.Mkfifo(filepath.Join(src, "pipe"), 0o622))
	b.no(syscall.Mknod(filepath.Join(src, "socket"), syscall.S_IFSOCK|0o700, 0))
	b.write(filepath.Join(src, "marked"), "with an attribute")
	if err := syscall.Setxattr(filepath.Join(src, "marked"), "user.comment", []byte("by hand\x00"), 0); err != nil {
		b.Skipf("NOT TESTED with extended attributes: %v", err)
	}
	for i := range manyFiles {
		b.write(filepath.Join(src, "many", fmt.Sprint(i%3), fmt.Sprint("f", i)), string(pattern(8000, byte(i))))
	}
	for i := 0; i < manyFiles; i += 30 { // another name in another directory, far behind in the listing
		b.no(os.Link(filepath.Join(src, "many", "0", fmt.Sprint("f", i)), filepath.Join(src, "many", "2", fmt.Sprint("link", i))))
	}
	b.write(filepath.Join(src, "latin-\xe9"), "no UTF-8")
	b.write(filepath.Join(src, "new\nline \xff\xfe", "\x01"), "neither")
	for name, mode := range map[string]uint32{"setuid": 0o4755, "setgid": 0o2711, "both": 0o6750, "none": 0, "sticky": 0o1644} {
		b.write(filepath.Join(src, name), name)
		b.no(os.Lchown(filepath.Join(src, name), 1234, 2345))
		b.no(syscall.Chmod(filepath.Join(src, name), mode))
	}
	b.no(syscall.Chmod(filepath.Join(src, "b"), 0o3775))
	b.no(os.Lchown(filepath.Join(src, "dangling"), 77, 78))
	b.no(syscall.Chmod(src, 0o2751))
	var dirs []string
	b.no(filepath.WalkDir(src, func(path string, e fs.DirEntry, err error) error {
		switch {
		case e.IsDir():
			dirs = append(dirs, path)
		case e.Type()&fs.ModeSymlink == 0:
			when = when.Add(time.Hour + time.Nanosecond)
			b.no(os.Chtimes(path, when, when))
		}
		return err
	}))
	slices.Reverse(dirs) // the deepest first
	for _, dir := range dirs {
		when = when.Add(time.Hour)
		b.no(os.Chtimes(dir, when, when))
	}
}

// kept says of each object of a tree, by its name, what a copy has to have, by kind.
func (b *box) kept(top string) map[string]map[string]string {
	b.Helper()
	all, links := map[string]map[string]string{}, map[uint64]string{}
	b.no(filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		b.no(err)
		name, err := filepath.Rel(top, path)
		b.no(err)
		var st syscall.Stat_t
		b.no(syscall.Lstat(path, &st))
		if links[st.Ino] == "" {
			links[st.Ino] = name
		}
		is := map[string]string{
			"type": e.Type().String(), "owner": fmt.Sprint(st.Uid, ":", st.Gid), "device": fmt.Sprint(st.Rdev),
			"link": links[st.Ino], "time": fmt.Sprint(st.Mtim.Sec, ".", st.Mtim.Nsec), "acl": "", "xattr": "",
		}
		switch e.Type() {
		case fs.ModeSymlink:
			is["contents"], err = os.Readlink(path)
			b.no(err)
		case 0:
			contents, err := os.ReadFile(path)
			b.no(err)
			is["contents"] = string(contents)
			is["holes"] = fmt.Sprint(st.Blocks*512 < st.Size)
			fallthrough
		case fs.ModeDir:
			is["acl"] = b.list(path, "access") + "|" + b.list(path, "default")
			buf := make([]byte, 64)
			if n, err := syscall.Getxattr(path, "user.comment", buf); err == nil {
				is["xattr"] = string(buf[:n])
			}
			fallthrough
		default:
			is["set-id"], is["mode"] = fmt.Sprintf("%o", st.Mode&0o6000), fmt.Sprintf("%o", st.Mode&0o1777)
		}
		all[name] = is
		return nil
	}))
	return all
}

// TestEverythingIsKeptOrCounted: of a tree with one of everything, a copy between any two of a
// directory, our server and nfs-ganesha has all of it, or its summary counts what it has not. So has one that is
// killed half way, and goes on. The same job, run again, says the same, and copies nothing.
func TestEverythingIsKeptOrCounted(t *testing.T) {
	root(t, "devices and owners are its to give")
	b := newBox(t)
	b.oddTree(b.path("srv", "src"))
	ours := b.serve(b.path("srv")).url
	counters := map[string]string{
		"owner": "owners_lost", "set-id": "set_ids_lost", "mode": "modes_lost", "time": "times_lost", "acl": "acls_lost", "xattr": "xattrs_lost", "link": "links_split",
	}
	unknown := map[string][]string{"nfsbox": {"xattr"}, "ganesha": {"xattr", "acl"}} // a source cannot be asked for it
	type end struct {
		name string
		at   func(name string) string
	}
	ends := []end{
		{"local", func(name string) string { return b.path("srv", name) }},
		{"nfsbox", func(name string) string { return ours + name }},
	}
	if url, ok := b.ganesha(b.path("srv")); ok {
		ends = append(ends, end{"ganesha", url})
	}
	want := b.kept(b.path("srv", "src"))
	for _, from := range ends {
		for _, to := range ends {
			t.Run(from.name+" to "+to.name, func(t *testing.T) {
				b := &box{T: t, dir: b.dir, bin: b.bin}
				name := from.name + "-" + to.name
				args := []string{"cp", "-r", "--json", "--job", name, from.at("src"), to.at(name)}
				b.killedHalfWay(b.path("srv", name), append(args, "--max-rate=8M"))
				for run := range 2 {
					r := b.must(0, args...)
					lost := b.missing(want, b.kept(b.path("srv", name)), unknown[from.name])
					for kind, counter := range counters {
						if n := r.count(b, counter); n != len(lost[kind]) {
							t.Errorf("run %d: %s: %d, and the copy lacks %d: %q", run, counter, n, len(lost[kind]), lost[kind])
						}
						delete(lost, kind)
					}
					if len(lost) > 0 {
						t.Errorf("run %d: not kept, and not counted: %q", run, lost)
					}
					if bytes := r.count(b, "bytes"); run > 0 && bytes != 0 {
						t.Errorf("%d bytes are copied again", bytes)
					}
				}
			})
		}
	}
}

// killedHalfWay kills a copy to dst when a third of oddTree's many files is there.
func (b *box) killedHalfWay(dst string, args []string) {
	b.Helper()
	r := b.begin(args...)
	b.until("a part is copied", func() bool {
		names := 0
		for i := range 3 {
			list, _ := os.ReadDir(filepath.Join(dst, "many", fmt.Sprint(i))) // it may not be there yet
			names += len(list)
		}
		return names > manyFiles/3
	})
	b.no(r.Process.Kill())
	if status := r.status(); status != -1 {
		b.Errorf("it has ended before, with status %d\n%s", status, r.err)
	}
}

// missing is what got lacks of want, by kind: the names of the objects. What nobody can know of the
// source is left out, and so is a mode that is less because a list is lost.
func (b *box) missing(want, got map[string]map[string]string, unknown []string) map[string][]string {
	b.Helper()
	lost := map[string][]string{}
	for name, object := range want {
		if got[name] == nil {
			lost["name"] = append(lost["name"], name)
			continue
		}
		for kind, is := range object {
			listless := kind == "mode" && got[name]["acl"] != object["acl"]
			if got[name][kind] != is && !listless && !slices.Contains(unknown, kind) {
				b.Logf("%q, %s: %.60q, want %.60q", name, kind, got[name][kind], is)
				lost[kind] = append(lost[kind], name)
			}
		}
	}
	for name := range got {
		if want[name] == nil {
			lost["name"] = append(lost["name"], name)
		}
	}
	return lost
}
