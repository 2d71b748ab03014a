//go:build linux

package outsider

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// owners are the user and group that an object belongs to.
func (b *box) owners(path string) [2]uint32 {
	b.Helper()
	i, err := os.Lstat(path)
	b.no(err)
	st := i.Sys().(*syscall.Stat_t)
	return [2]uint32{st.Uid, st.Gid}
}

// TestMappedOwners: with --map-uid and --map-gid every kind of object has the owner that is meant, in
// every direction, and so have the users that lists name; set-id bits stay with it. A second run with
// other rules sets owners again; verify knows the rules.
func TestMappedOwners(t *testing.T) {
	root(t, "it takes root to give files away")
	b := newBox(t)
	src := b.path("srv", "src")
	b.listed(src) // dir/narrowed names the user 12345
	b.write(filepath.Join(src, "setuid"), "5")
	b.no(os.Symlink("plain", filepath.Join(src, "link")))
	b.no(syscall.Mkfifo(filepath.Join(src, "pipe"), 0o600))
	for name, owner := range map[string]int{"plain": 1005, "setuid": 1009, "link": 1000, "pipe": 1010, "dir": 999, "dir/narrowed": 1001} {
		b.no(os.Lchown(filepath.Join(src, name), owner, owner))
	}
	b.no(os.Chmod(filepath.Join(src, "setuid"), 0o755|os.ModeSetuid))
	rules := []string{"--map-uid", "1000-1009:50000", "--map-uid", "12345:54321", "--map-gid", "1005:7"}
	want := map[string][2]uint32{
		"plain": {50005, 7}, "setuid": {50009, 1009}, "link": {50000, 1000}, "pipe": {1010, 1010}, "dir": {999, 999}, "dir/narrowed": {50001, 1001}, "": {0, 0},
	}
	url := b.serve(b.path("srv")).url
	for name, way := range map[string]struct{ from, to, dst string }{
		"local": {src, b.path("local"), b.path("local")}, "from": {url + "src", b.path("from"), b.path("from")},
		"to": {src, url + "to", b.path("srv", "to")}, "over": {url + "src", url + "over", b.path("srv", "over")},
	} {
		job := []string{"cp", "-r", "--json", "--job", name, way.from, way.to}
		check := func(what string, want map[string][2]uint32) {
			t.Helper()
			for object, owner := range want {
				if got := b.owners(filepath.Join(way.dst, object)); got != owner {
					t.Errorf("%s, %s: %q is %v's, want %v", name, what, object, got, owner)
				}
			}
		}
		r := b.must(0, append(job, rules...)...)
		if n := r.count(b, "owners_lost") + r.count(b, "set_ids_lost") + r.count(b, "acls_lost"); n != 0 {
			t.Errorf("%s: %d were lost\n%s", name, n, r.stderr)
		}
		check("mapped", want)
		if i, err := os.Lstat(filepath.Join(way.dst, "setuid")); err != nil || i.Mode()&os.ModeSetuid == 0 {
			t.Errorf("%s: set-uid is lost: %v", name, err)
		}
		named := binary.LittleEndian.AppendUint32(nil, 54321)
		if got := b.list(filepath.Join(way.dst, "dir", "narrowed"), "access"); !strings.Contains(got, string(named)) {
			t.Errorf("%s: the list is % x", name, got)
		}
		verify := []string{"verify", "--acls", way.from, way.to}
		b.must(0, append(verify, rules...)...)
		if r := b.must(3, "verify", "--owner", way.from, way.to); !strings.Contains(r.stdout+r.stderr, "1005:1005") {
			t.Errorf("%s: %s%s", name, r.stdout, r.stderr)
		}
		b.must(3, append(verify, "--map-gid", "1005:7")...)
		b.must(0, job...) // without rules the owners of the source are meant
		check("again, without rules", map[string][2]uint32{"plain": {1005, 1005}, "link": {1000, 1000}, "pipe": {1010, 1010}})
		b.must(0, append([]string{"sync", "--acls", way.from, way.to}, rules...)...)
		check("sync", want)
		b.must(0, append(verify, rules...)...)
	}
}

// TestMappedOwnersRefused: rules that make no sense are refused before anything is made.
func TestMappedOwnersRefused(t *testing.T) {
	b := newBox(t)
	b.write(b.path("src", "file"), "1")
	for _, flags := range [][]string{
		{"--map-uid", "1"}, {"--map-uid", "1:2", "--map-uid", "0-5:7"}, {"--map-gid", "1:4294967295"}, {"--map-gid", "1:2", "--no-owner"},
	} {
		r := b.must(1, append([]string{"cp", "-r", b.path("src"), b.path("dst")}, flags...)...)
		if !strings.Contains(r.stderr, flags[0]) {
			t.Errorf("%v: %s", flags, r.stderr)
		}
		if _, err := os.Lstat(b.path("dst")); err == nil {
			t.Errorf("%v: a copy was made", flags)
		}
	}
	b.must(1, "verify", "--map-uid", "1-0:5", b.path("src"), b.path("src"))
	b.must(1, "sync", "--map-uid", "x:5", b.path("src"), b.path("dst"))
}
