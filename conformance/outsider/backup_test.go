//go:build linux

package outsider

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// vault is a tree, and a store with snapshots of it.
type vault struct {
	*box
	tree, store string
	chance      *rand.Rand
	seed        uint64
	made        int // files, for their names
	verbs       map[string]bool
}

func newVault(t *testing.T, seed uint64) *vault {
	t.Helper()
	b := newBox(t)
	b.long = soak()
	v := &vault{box: b, tree: b.path("tree"), store: b.path("store"), chance: rand.New(rand.NewPCG(seed, 18)), seed: seed,
		verbs: make(map[string]bool)}
	t.Logf("seed %d", seed)
	if !v.has("backup") || !v.has("restore") {
		t.Skip("NOT TESTED: this command keeps no snapshots")
	}
	v.grow(80)
	b.write(filepath.Join(v.tree, "large"), string(pattern(9<<20, 1)))
	b.write(filepath.Join(v.tree, "middle"), string(pattern(300<<10, 2)))
	b.no(os.Symlink("../nowhere", filepath.Join(v.tree, "link")))
	b.no(os.Link(filepath.Join(v.tree, "middle"), filepath.Join(v.tree, "d1", "second name")))
	b.no(os.MkdirAll(filepath.Join(v.tree, "empty"), 0o750))
	f, err := os.Create(filepath.Join(v.tree, "sparse"))
	b.no(err)
	_, err = f.WriteAt([]byte("end"), 20<<20)
	b.no(errors.Join(err, f.Close()))
	if os.Geteuid() == 0 {
		v.privileged()
	}
	return v
}

// privileged gives the tree what root alone can give.
func (v *vault) privileged() {
	for i, name := range []string{"large", "d1", "link"} {
		v.no(os.Lchown(filepath.Join(v.tree, name), 1000+i, 2000+i))
	}
	// acl(5): owner rw-, user 1234 r--, group r--, mask r--, other ---; posix_acl_xattr.h of Linux has the form.
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range [][3]uint32{{1, 6, 1<<32 - 1}, {2, 4, 1234}, {4, 4, 1<<32 - 1}, {16, 4, 1<<32 - 1}, {32, 0, 1<<32 - 1}} {
		list = binary.LittleEndian.AppendUint16(list, uint16(e[0]))
		list = binary.LittleEndian.AppendUint16(list, uint16(e[1]))
		list = binary.LittleEndian.AppendUint32(list, e[2])
	}
	err := syscall.Setxattr(filepath.Join(v.tree, "large"), "system.posix_acl_access", list, 0)
	if err != nil && !errors.Is(err, syscall.ENOTSUP) {
		v.Fatal(err)
	}
}

// grow makes n further files, and changes and removes some that are there.
func (v *vault) grow(n int) {
	v.Helper()
	for range n {
		v.made++
		name := filepath.Join(v.tree, fmt.Sprint("d", v.made%5), fmt.Sprint("f", v.made))
		v.write(name, string(pattern(v.chance.IntN(40<<10), byte(v.made))))
		v.no(os.Chmod(name, []fs.FileMode{0o644, 0o600, 0o755, 0o440}[v.made%4]))
	}
	for range n / 10 {
		name := filepath.Join(v.tree, fmt.Sprint("d", v.chance.IntN(5)), fmt.Sprint("f", 1+v.chance.IntN(v.made)))
		if v.chance.IntN(2) == 0 {
			if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				v.Fatal(err)
			}
		} else if f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0); err == nil {
			_, err = f.WriteString("more")
			v.no(errors.Join(err, f.Close()))
		}
	}
}

// older makes all that is stored two hours older: a prune leaves what is younger than one.
func (v *vault) older() {
	v.Helper()
	then := time.Now().Add(-2 * time.Hour)
	for _, o := range v.objects() {
		v.no(os.Chtimes(o.path, then, then))
	}
}

func (v *vault) backup() []string { return []string{"backup", "-q", "--name", "t", v.tree, v.store} }

// killed runs the command, kills it at some moment, and runs it again until its end.
func (v *vault) killed(args ...string) {
	v.Helper()
	cmd := v.command(args...)
	v.no(cmd.Start())
	timer := time.AfterFunc(time.Duration(v.chance.Int64N(int64(400*time.Millisecond))), func() {
		_ = cmd.Process.Kill() // it may have ended
	})
	err := cmd.Wait()
	timer.Stop()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != -1) {
		v.Fatalf("seed %d: %v: %v, before it was killed", v.seed, args, err)
	}
	v.must(0, args...)
}

// restored compares a restored tree with the source: by its bytes, times, owners, lists and what it takes on the disk.
func (v *vault) restored(got string) {
	v.Helper()
	v.same(v.tree, got)
	var blocks [2]int64
	for _, name := range v.names(v.tree) {
		var lists [2][]byte
		var owners [2]uint32
		for i, top := range []string{v.tree, got} {
			var st syscall.Stat_t
			v.no(syscall.Lstat(filepath.Join(top, name), &st))
			blocks[i] += st.Blocks
			owners[i] = st.Uid
			if st.Mode&syscall.S_IFMT != syscall.S_IFLNK {
				list := make([]byte, 1000)
				n, err := syscall.Getxattr(filepath.Join(top, name), "system.posix_acl_access", list)
				if err == nil {
					lists[i] = list[:n]
				}
			}
		}
		if owners[0] != owners[1] || !slices.Equal(lists[0], lists[1]) {
			v.Errorf("%s: owners %d, access control lists of %d and %d bytes", name, owners, len(lists[0]), len(lists[1]))
		}
	}
	if d := blocks[0] - blocks[1]; max(d, -d) > blocks[0]/100+64 {
		v.Errorf("the restored tree takes %d blocks, and the source %d", blocks[1], blocks[0])
	}
	v.no(os.RemoveAll(got))
}

func (v *vault) kills() int {
	if soak() {
		return 50
	}
	return 3
}

// TestKilledBackup kills backup, restore and prune at any moment, 3 times each, and 50 times in a soak. The same command
// goes on, and what is restored is what the tree was.
func TestKilledBackup(t *testing.T) {
	v := newVault(t, 181)
	for range v.kills() {
		v.killed(v.backup()...)
		v.must(0, "restore", "-q", v.store+"::t", v.path("out"))
		v.restored(v.path("out"))
		v.grow(40)
	}
	v.must(0, v.backup()...)
	for range v.kills() {
		v.killed("restore", "-q", v.store+"::t", v.path("out"))
		v.restored(v.path("out"))
	}
	if !v.has("snapshots", "check") || !v.has("snapshots", "prune") {
		return
	}
	v.must(0, "snapshots", "check", "-q", "--read-data", v.store)
	v.must(0, "snapshots", "forget", "--keep-last=2", v.store)
	v.older()
	before := len(v.objects())
	for range v.kills() {
		v.killed("snapshots", "prune", "-q", v.store)
		v.must(0, "snapshots", "check", "-q", "--read-data", v.store)
		v.must(0, v.backup()...) // what the next prune has to remove
		v.grow(10)
		v.must(0, v.backup()...)
		v.must(0, "snapshots", "forget", "--keep-last=1", v.store)
		v.older()
	}
	v.must(0, "snapshots", "prune", "-q", v.store)
	if after := len(v.objects()); after >= before {
		t.Errorf("of %d objects prunes have left %d", before, after)
	}
	v.must(0, "restore", "-q", v.store+"::t", v.path("out"))
	v.restored(v.path("out"))
}

// has reports whether the command that is tried has a verb: NFSBOX_BINARY may be one from before it.
func (v *vault) has(verb ...string) bool {
	v.Helper()
	name := strings.Join(verb, " ")
	has, known := v.verbs[name]
	if !known {
		has = v.run(append(verb, "--help")...).status == 0
		v.verbs[name] = has
	}
	if has {
		return true
	}
	v.Logf("NOT TESTED: this command has no %s", name)
	return false
}

// stored is a file of the store, and how it is called there.
type stored struct{ path, key string }

// objects are the objects of the store, by the layout that package object/layout describes: folders whose
// names begin with '=' only spread them.
func (v *vault) objects() (all []stored) {
	v.Helper()
	v.no(filepath.WalkDir(v.store, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(v.store, path)
		if err != nil || !d.Type().IsRegular() || !strings.HasPrefix(rel, "sha256/") && !strings.HasPrefix(rel, "snapshots/") {
			return err
		}
		parts := slices.DeleteFunc(strings.Split(rel, "/"), func(s string) bool { return strings.HasPrefix(s, "=") })
		all = append(all, stored{path, strings.Join(parts, "/")})
		return nil
	}))
	slices.SortFunc(all, func(a, b stored) int { return strings.Compare(a.key, b.key) })
	return all
}

// damages are ways to damage a file of a store.
var damages = []struct {
	name string
	do   func(r *rand.Rand, b, other []byte) []byte // nil: it is removed
}{
	{"a flipped bit", func(r *rand.Rand, b, _ []byte) []byte { b[r.IntN(len(b))] ^= 1 << r.IntN(8); return b }},
	{"cut", func(r *rand.Rand, b, _ []byte) []byte { return b[:r.IntN(len(b))] }},
	{"missing", func(*rand.Rand, []byte, []byte) []byte { return nil }},
	{"another's bytes", func(_ *rand.Rand, _, other []byte) []byte { return other }},
	{"zeros", func(r *rand.Rand, b, _ []byte) []byte { clear(b[r.IntN(len(b)):]); return b }},
}

// TestDamagedStore damages one object at a time, 10 times, and 100 times in a soak. No file that is restored has a
// wrong byte; the others are named, with the object, and the exit status is 2.
func TestDamagedStore(t *testing.T) {
	v := newVault(t, 182)
	v.must(0, v.backup()...)
	all := v.objects()
	times := 10
	if soak() {
		times = 100
	}
	for i := range times {
		o := all[i%len(all)]
		other := all[(i+1+v.chance.IntN(len(all)-1))%len(all)]
		whole := v.text(o.path)
		d := damages[(i+i/len(damages))%len(damages)]
		info, err := os.Stat(o.path)
		v.no(err)
		b := d.do(v.chance, []byte(whole), []byte(v.text(other.path)))
		v.no(os.Remove(o.path))
		if b != nil {
			v.no(os.WriteFile(o.path, b, info.Mode()))
		}
		switch {
		case b == nil && strings.HasPrefix(o.key, "snapshots/"):
			v.forgotten()
		case string(b) != whole:
			v.damaged(fmt.Sprintf("damage %d of seed %d, %s: %s", i, v.seed, o.key, d.name), o)
		}
		if b != nil {
			v.no(os.Remove(o.path))
		}
		v.no(os.WriteFile(o.path, []byte(whole), info.Mode()))
	}
	v.must(0, "restore", "-q", v.store+"::t", v.path("out"))
	v.restored(v.path("out"))
}

// forgotten is what is said where the root of the only snapshot is missing: that looks as if it was forgotten. A check
// says that its objects are in no use.
func (v *vault) forgotten() {
	v.Helper()
	if r := v.run("restore", "--json", "--no-resume", v.store+"::t", v.path("out")); r.status == 0 || exists(v.path("out")) {
		v.Errorf("a snapshot without a root is restored: exit status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	if r := v.run("snapshots", "check", "--json", v.store); r.status != 0 || r.count(v.box, "snapshots") != 0 || r.count(v.box, "unused_objects") != len(v.objects()) {
		v.Errorf("%d objects, and a check says, with status %d:\n%s%s", len(v.objects()), r.status, r.stdout, r.stderr)
	}
}

// TestMendedStore damages an object in each way, and wants a backup that is verified to mend what it needs: when the snapshots
// before are forgotten, a check that reads all finds nothing, and what is restored is what the tree is.
func TestMendedStore(t *testing.T) {
	v := newVault(t, rand.Uint64())
	v.must(0, v.backup()...)
	for _, d := range damages {
		all := slices.DeleteFunc(v.objects(), func(o stored) bool { return !strings.HasPrefix(o.key, "sha256/") })
		o, other := all[v.chance.IntN(len(all))], all[v.chance.IntN(len(all))]
		b := d.do(v.chance, []byte(v.text(o.path)), []byte(v.text(other.path)))
		v.no(os.Remove(o.path))
		if b != nil {
			v.no(os.WriteFile(o.path, b, 0o600))
		}
		v.must(0, append(v.backup(), "--verify")...)
		v.must(0, "snapshots", "forget", "--keep-last=1", v.store)
		if r := v.run("snapshots", "check", "-q", "--read-data", v.store); r.status != 0 {
			t.Errorf("%s of %s: exit status %d\n%s%s", d.name, o.key, r.status, r.stdout, r.stderr)
		}
	}
	v.must(0, "restore", "-q", v.store+"::t", v.path("out"))
	v.restored(v.path("out"))
}

// damaged restores from a store of which an object is damaged.
func (v *vault) damaged(what string, o stored) {
	v.Helper()
	out := v.path("out")
	r := v.run("restore", "--json", "--no-resume", v.store+"::t", out)
	defer func() { v.no(os.RemoveAll(out)) }()
	failed, named := make(map[string]bool), false
	for line := range strings.Lines(r.stdout) {
		var e struct{ Type, Path, Message string }
		v.no(json.Unmarshal([]byte(line), &e))
		if e.Type == "error" {
			failed[strings.Trim(e.Path, "/")] = true
			named = named || strings.Contains(e.Message, o.key)
		}
	}
	missing := make(map[string]bool)
	for _, name := range v.names(v.tree) {
		_, err := os.Lstat(filepath.Join(out, name))
		if err == nil {
			if !v.hurt(failed, name) {
				if l, g := v.fingerprint(filepath.Join(v.tree, name)), v.fingerprint(filepath.Join(out, name)); l != g {
					v.Errorf("%s: %s is %s, want %s", what, name, g, l)
				}
			} else if info, err := os.Lstat(filepath.Join(out, name)); err == nil && info.Mode().IsRegular() {
				v.Errorf("%s: %s has failed, and is there", what, name)
			}
			continue
		}
		if missing[name] = true; !v.hurt(failed, name) {
			v.Errorf("%s: %s is missing, and not named:\n%.2000s", what, name, r.stdout)
		}
	}
	switch {
	case r.status == 0 && len(missing) == 0: // what restore does not read, as the store's own sums, a check finds
	case r.status == 2 && named:
	case strings.HasPrefix(o.key, "snapshots/") && r.status != 0: // nothing can be restored
	default:
		v.Errorf("%s: exit status %d with %d missing, the object named: %t\n%.2000s%.2000s", what, r.status, len(missing), named, r.stdout, r.stderr)
	}
	v.found(what, o, missing)
}

// found wants a check to name an object that is damaged, and each name that is missing for it.
func (v *vault) found(what string, o stored, missing map[string]bool) {
	v.Helper()
	if !v.has("snapshots", "check") {
		return
	}
	r := v.run("snapshots", "check", "--json", "--read-data", v.store)
	named, hurt := false, make(map[string]bool)
	for line := range strings.Lines(r.stdout) {
		var e struct {
			Type, Object string
			Hurts        []struct{ Path string }
		}
		v.no(json.Unmarshal([]byte(line), &e))
		if e.Type != "damage" {
			continue
		}
		named = named || e.Object == o.key
		for _, h := range e.Hurts {
			hurt[strings.Trim(h.Path, "/")] = true
		}
	}
	if r.status != 2 || !named {
		v.Errorf("%s: a check ends with %d, and names it: %t\n%.2000s%s", what, r.status, named, r.stdout, r.stderr)
	}
	for name := range missing {
		if !v.hurt(hurt, name) {
			v.Errorf("%s: a check does not say that %s is hurt:\n%.2000s", what, name, r.stdout)
		}
	}
}

// hurt reports whether a name, or a directory above it, has failed.
func (v *vault) hurt(failed map[string]bool, name string) bool {
	for at := name; ; at = filepath.Dir(at) {
		if failed[at] || failed[""] || failed["."] {
			return true
		}
		if at == "." {
			return false
		}
	}
}

// TestBackupBadInput has backups and restores that cannot be: each says what is wrong, and leaves nothing.
func TestBackupBadInput(t *testing.T) {
	v := newVault(t, 183)
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{1, "not a name", []string{"backup", "--name", "../x", v.tree, v.store}},
		{1, "tag", []string{"backup", "--tag", strings.Repeat("x", 200), v.tree, v.store}},
		{2, "no such file", []string{"backup", v.tree + "-none", v.store}},
		{4, "mounted", []string{"backup", "--existing", v.tree, v.store}},
		{4, "no directory", []string{"backup", v.tree, v.path("no", "such", "place")}},
		{1, "::NAME", []string{"restore", v.store, v.path("out")}},
		{4, "no such directory", []string{"restore", v.store + "::t", v.path("out")}},
		{4, "no such directory", []string{"snapshots", "ls", v.store}},
	} {
		r := v.run(c.args...)
		if r.status != c.status || !strings.Contains(r.stderr, c.says) {
			t.Errorf("%v: exit status %d, want %d\n%s%s", c.args, r.status, c.status, r.stdout, r.stderr)
		}
		for _, name := range []string{v.store, v.path("out"), v.path("no")} {
			if _, err := os.Lstat(name); err == nil {
				t.Errorf("%v has made %s", c.args, name)
				v.no(os.RemoveAll(name))
			}
		}
	}
}

// TestBackupOnFullDisk: a store without room says so, and the same command goes on when there is some. One that
// may only be read is restored from.
func TestBackupOnFullDisk(t *testing.T) {
	root(t, "to mount")
	v := newVault(t, 184)
	disk := v.path("disk")
	v.mount("tmpfs", disk, "tmpfs", "size=4m")
	v.store = filepath.Join(disk, "store")
	r := v.run(v.backup()...)
	if r.status == 0 || r.status == 1 || !strings.Contains(r.stderr, "no space left") || !strings.Contains(r.stderr, "-> make room for STORE") {
		t.Errorf("exit status %d:\n%s", r.status, r.stderr)
	}
	// What it has stored can be removed at once, but where not even a lease has room.
	v.run("snapshots", "forget", "--partial", "--name", "t", v.store)
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	prune := []string{"snapshots", "prune", "--all", "--young", "--no-progress", v.store}
	if r := v.run(prune...); r.status != 2 || !strings.Contains(r.stderr, "needs two blocks") {
		t.Errorf("a prune without room: exit status %d:\n%s", r.status, r.stderr)
	}
	v.no(os.Remove(filler))
	if r := v.must(0, prune...); !strings.Contains(r.stderr, "removed: ") || strings.Contains(r.stderr, "young") {
		t.Errorf("a prune: %s", r.stderr)
	}
	v.no(syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=64m"))
	v.must(0, v.backup()...)
	v.no(syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	v.must(0, "restore", "-q", v.store+"::t", v.path("out"))
	v.restored(v.path("out"))
	if r := v.run(v.backup()...); r.status == 0 || !strings.Contains(r.stderr, "read-only") {
		t.Errorf("a backup to what may only be read: exit status %d:\n%s", r.status, r.stderr)
	}
}
