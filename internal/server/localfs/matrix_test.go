//go:build linux

package localfs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// The matrix of rights: every operation by every kind of caller on objects of
// every kind of mode, done twice on equal trees: through the FS, and by a process
// that really is that user. The kernel's word to that process is the judge.

// judgeEnv says that this process is the judge's: it does what it reads from its
// standard input, as the user that it is, and prints what came of it.
const judgeEnv = "LOCALFS_JUDGE"

// matrixCase is one operation on the object "obj" of a directory of its own.
type matrixCase struct {
	Dir  string
	Op   string
	mode uint32
	Kind string // "file" or "dir"
}

const (
	matrixUID = 12001 // the owner of all objects
	matrixGID = 12050 // and their group

	// matrixSample is the part, one in so many, of the matrix that is looked at
	// every day. It has no divisor in common with the numbers of operations, so
	// that each operation meets many modes.
	matrixSample = 4
)

// soak reports whether there is time for all.
func soak() bool { return os.Getenv("NFSBOX_SOAK") != "" }

func matrixCallers() map[string]*vfs.Caller {
	many := make([]uint32, 0, 40)
	for g := range uint32(39) {
		many = append(many, 12100+g)
	}
	return map[string]*vfs.Caller{
		"root":        {UID: 0, GID: 0},
		"owner":       {UID: matrixUID, GID: 12001},
		"group":       {UID: 12002, GID: matrixGID},
		"other":       {UID: 12003, GID: 12003},
		"many groups": {UID: 12004, GID: 12004, Groups: append(many, matrixGID)},
	}
}

var (
	fileModes = []uint32{0, 0o400, 0o200, 0o100, 0o040, 0o020, 0o010, 0o004, 0o002, 0o001, 0o644, 0o640, 0o604, 0o066,
		0o711, 0o755, 0o770, 0o707, 0o777, 0o4755, 0o4777, 0o2775, 0o2777, 0o6777, 0o2767}
	dirModes = []uint32{0, 0o100, 0o300, 0o500, 0o700, 0o010, 0o030, 0o050, 0o070, 0o001, 0o003, 0o005, 0o007, 0o750, 0o755,
		0o775, 0o777, 0o707, 0o1777, 0o1770, 0o2775, 0o2777, 0o3777}
	fileOps = []string{"read", "write", "overwrite", "truncate", "chmod", "chmod-setgid", "chgrp-own", "chgrp-foreign",
		"chown", "touch-now", "touch", "access-r", "access-w", "access-x", "link"}
	dirOps = []string{"list", "lookup", "create", "mkdir", "symlink", "mkfifo", "remove", "remove-own", "rename", "rename-own",
		"replace", "rmdir", "link-in", "chmod", "chgrp-own", "touch-now", "access-r", "access-w", "access-x"}
)

// lay lays out what one case works on. Names in a directory belong to root but for
// "own", which is the caller's.
func (c *matrixCase) lay(t *testing.T, base string, caller *vfs.Caller) {
	t.Helper()
	dir := filepath.Join(base, c.Dir)
	obj := filepath.Join(dir, "obj")
	steps := []func() error{
		func() error { return os.Mkdir(dir, 0o755) },
		func() error { return os.Chmod(dir, 0o777) }, // the users that link need room
	}
	file := func(path string, uid, gid int, mode uint32) {
		steps = append(steps, func() error { return os.WriteFile(path, []byte("content"), 0o600) },
			func() error { return os.Chown(path, uid, gid) }, func() error { return unix.Chmod(path, mode) })
	}
	if c.Kind == "file" {
		file(obj, matrixUID, matrixGID, c.mode)
	} else {
		steps = append(steps, func() error { return os.Mkdir(obj, 0o755) })
		file(filepath.Join(obj, "child"), 0, 0, 0o666)
		file(filepath.Join(obj, "own"), int(caller.UID), int(caller.GID), 0o666)
		steps = append(steps, func() error { return os.Mkdir(filepath.Join(obj, "sub"), 0o777) },
			func() error { return os.Chown(obj, matrixUID, matrixGID) }, func() error { return unix.Chmod(obj, c.mode) })
		file(filepath.Join(dir, "free"), int(caller.UID), int(caller.GID), 0o666)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

// judged does one operation by path, as the process.
func (c *matrixCase) judged() error {
	obj := filepath.Join(c.Dir, "obj")
	in := func(name string) string { return filepath.Join(obj, name) }
	open := func(flags int, then func(fd int) error) error {
		fd, err := unix.Open(obj, flags|unix.O_CLOEXEC, 0)
		if err == nil {
			err = linux.Close(fd, then(fd))
		}
		return err
	}
	nothing := func(int) error { return nil }
	switch c.Op {
	case "read":
		return open(unix.O_RDONLY, nothing)
	case "write":
		return open(unix.O_WRONLY, nothing)
	case "overwrite":
		return open(unix.O_WRONLY, func(fd int) error { _, err := unix.Pwrite(fd, []byte{'w'}, 0); return err })
	case "truncate":
		return unix.Truncate(obj, 3)
	case "chmod":
		return unix.Chmod(obj, 0o751)
	case "chmod-setgid":
		return unix.Chmod(obj, 0o2755)
	case "chgrp-own":
		return unix.Chown(obj, -1, unix.Getgid())
	case "chgrp-foreign":
		return unix.Chown(obj, -1, 12999)
	case "chown":
		return unix.Chown(obj, 12002, -1)
	case "touch-now":
		return unix.UtimesNanoAt(unix.AT_FDCWD, obj, []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}, 0)
	case "touch":
		return unix.UtimesNanoAt(unix.AT_FDCWD, obj, []unix.Timespec{{Sec: 1e9}, {Sec: 1e9}}, 0)
	case "access-r":
		return unix.Access(obj, unix.R_OK)
	case "access-w":
		if c.Kind == "dir" {
			return unix.Access(obj, unix.W_OK|unix.X_OK) // to change what it holds
		}
		return unix.Access(obj, unix.W_OK)
	case "access-x":
		return unix.Access(obj, unix.X_OK)
	case "link":
		return unix.Link(obj, filepath.Join(c.Dir, "linked"))
	case "list":
		return open(unix.O_RDONLY|unix.O_DIRECTORY, nothing)
	case "lookup":
		return unix.Lstat(in("child"), new(unix.Stat_t))
	case "create":
		fd, err := unix.Open(in("new"), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	case "mkdir":
		return unix.Mkdir(in("new"), 0o755)
	case "symlink":
		return unix.Symlink("target", in("new"))
	case "mkfifo":
		return unix.Mkfifo(in("new"), 0o644)
	case "remove":
		return unix.Unlink(in("child"))
	case "remove-own":
		return unix.Unlink(in("own"))
	case "rename":
		return unix.Rename(in("child"), in("moved"))
	case "rename-own":
		return unix.Rename(in("own"), in("moved"))
	case "replace":
		return unix.Rename(in("own"), in("child"))
	case "rmdir":
		return unix.Rmdir(in("sub"))
	case "link-in":
		return unix.Link(filepath.Join(c.Dir, "free"), in("linked"))
	}
	return fmt.Errorf("no operation %q", c.Op)
}

// served does the same through the FS. obj was looked up by root.
func (c *matrixCase) served(t *testing.T, f vfs.FS, who *vfs.Caller, dir, obj, free vfs.Handle) error {
	ctx := t.Context()
	set := func(s vfs.SetAttr) error {
		_, err := f.SetAttr(ctx, obj, &s, nil)
		return err
	}
	access := func(want vfs.Access) error {
		got, _, err := f.Access(ctx, obj, want)
		if err == nil && got != want {
			return vfs.ErrAccess
		}
		return err
	}
	make := func(how vfs.CreateHow) error {
		_, _, _, err := f.Create(ctx, obj, "new", &how)
		return err
	}
	open := func(how vfs.Share, then func(vfs.File) error) error {
		file, _, err := f.Open(ctx, vfs.At{H: obj}, &vfs.OpenHow{Access: how})
		if err != nil {
			return err
		}
		err = then(file)
		if e := file.Close(ctx); e != nil {
			t.Error(e)
		}
		return err
	}
	rename := func(from, to string) error {
		_, _, err := f.Rename(ctx, obj, from, obj, to)
		return err
	}
	remove := func(name string, isDir bool) error {
		_, err := f.Remove(ctx, obj, name, isDir)
		return err
	}
	mode := func(m uint32) vfs.SetAttr { return vfs.SetAttr{Valid: vfs.MaskMode, Mode: m} }
	var err error
	switch c.Op {
	case "read":
		return open(vfs.ShareRead, func(file vfs.File) error { _, _, err := file.ReadAt(ctx, []byte{0}, 0, nil); return err })
	case "write":
		return open(vfs.ShareWrite, func(file vfs.File) error { return nil })
	case "overwrite":
		return open(vfs.ShareWrite, func(file vfs.File) error {
			_, err := file.WriteAt(ctx, []byte{'w'}, 0, vfs.Unstable, new(vfs.Written))
			return err
		})
	case "truncate":
		return set(vfs.SetAttr{Valid: vfs.MaskSize, Size: 3})
	case "chmod":
		return set(mode(0o751))
	case "chmod-setgid":
		return set(mode(0o2755))
	case "chgrp-own":
		return set(vfs.SetAttr{Valid: vfs.MaskGID, GID: who.GID})
	case "chgrp-foreign":
		return set(vfs.SetAttr{Valid: vfs.MaskGID, GID: 12999})
	case "chown":
		return set(vfs.SetAttr{Valid: vfs.MaskUID, UID: 12002})
	case "touch-now":
		return set(vfs.SetAttr{Valid: vfs.MaskAtime | vfs.MaskMtime, AtimeNow: true, MtimeNow: true})
	case "touch":
		at := time.Unix(1e9, 0)
		return set(vfs.SetAttr{Valid: vfs.MaskAtime | vfs.MaskMtime, Atime: at, Mtime: at})
	case "access-r":
		return access(vfs.AccessRead)
	case "access-w":
		return access(vfs.AccessModify | vfs.AccessExtend)
	case "access-x":
		if c.Kind == "dir" {
			return access(vfs.AccessLookup)
		}
		return access(vfs.AccessExecute)
	case "link":
		_, _, err = f.Link(ctx, obj, dir, "linked")
		return err
	case "list":
		for _, err := range f.ReadDir(ctx, obj, vfs.Pos{}, 0, 0) {
			if err != nil {
				return err
			}
		}
		return nil
	case "lookup":
		_, _, _, err = f.Lookup(ctx, obj, "child")
		return err
	case "create":
		return make(vfs.CreateHow{Type: vfs.TypeReg, Set: mode(0o644)})
	case "mkdir":
		return make(vfs.CreateHow{Type: vfs.TypeDir, Set: mode(0o755)})
	case "symlink":
		return make(vfs.CreateHow{Type: vfs.TypeSymlink, Target: "target"})
	case "mkfifo":
		return make(vfs.CreateHow{Type: vfs.TypeFIFO, Set: mode(0o644)})
	case "remove":
		return remove("child", false)
	case "remove-own":
		return remove("own", false)
	case "rename":
		return rename("child", "moved")
	case "rename-own":
		return rename("own", "moved")
	case "replace":
		return rename("own", "child")
	case "rmdir":
		return remove("sub", true)
	case "link-in":
		_, _, err = f.Link(ctx, free, obj, "linked")
		return err
	}
	return fmt.Errorf("no operation %q", c.Op)
}

// nfsRule reports whether NFSv3 grants what the kernel refuses: the owner reads
// and writes whatever the mode says, and a caller that may run a file may read it.
func (c *matrixCase) nfsRule(who *vfs.Caller) bool {
	if c.Kind != "file" {
		return false
	}
	switch c.Op {
	case "write", "overwrite", "truncate":
		return who.UID == matrixUID
	case "read":
		class := c.mode
		if who.InGroup(matrixGID) {
			class >>= 3
		}
		return who.UID == matrixUID || class&1 != 0
	}
	return false
}

// keepsSetGID reports whether the kernel leaves a set-gid bit that we take: that of
// a file which its group may not run, when a member of the group writes. A write is
// made as the user, without the groups.
func (c *matrixCase) keepsSetGID(who *vfs.Caller) bool {
	writes := c.Op == "overwrite" || c.Op == "truncate"
	return writes && c.mode&0o2010 == 0o2000 && who.UID != 0 && who.InGroup(matrixGID)
}

// TestJudge is the judge's process. By itself it does nothing.
func TestJudge(t *testing.T) {
	if os.Getenv(judgeEnv) == "" {
		return
	}
	unix.Umask(0)
	var cases []matrixCase
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	said := make([]uint32, len(cases))
	for i := range cases {
		s, known := vfs.StatusOf(cases[i].judged())
		if !known {
			t.Fatalf("%s: %v", cases[i].Op, cases[i].judged())
		}
		said[i] = uint32(s)
	}
	b, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nJUDGE %s\n", b)
}

// judge has a process with the identity of who do the cases below base.
func judge(t *testing.T, base string, who *vfs.Caller, cases []matrixCase) []uint32 {
	t.Helper()
	in, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestJudge$", "-test.timeout=60s")
	child.Env = append(os.Environ(), judgeEnv+"=1")
	child.Dir = base
	child.Stdin = bytes.NewReader(in)
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: who.UID, Gid: who.GID, Groups: who.Groups}}
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("the judge: %v\n%s", err, out)
	}
	_, after, ok := bytes.Cut(out, []byte("JUDGE "))
	var said []uint32
	if !ok || json.NewDecoder(bytes.NewReader(after)).Decode(&said) != nil || len(said) != len(cases) {
		t.Fatalf("the judge says\n%s", out)
	}
	return said
}

// state is what a tree looks like to root: names, types, modes, owners, sizes.
func state(t *testing.T, dir string) string {
	t.Helper()
	var b bytes.Buffer
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		size := st.Size
		if d.IsDir() {
			size = 0
		}
		name, err := filepath.Rel(dir, p)
		fmt.Fprintf(&b, "%s %o %d:%d %d\n", name, st.Mode, st.Uid, st.Gid, size)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRightsMatrix(t *testing.T) {
	needRoot(t)
	bothModes(t, func(t *testing.T, o Options) {
		for name, who := range matrixCallers() {
			t.Run(name, func(t *testing.T) {
				runMatrix(t, o.anew(t), who)
			})
		}
	})
}

func runMatrix(t *testing.T, o Options, who *vfs.Caller) {
	base := inMemory(t)
	// The judge is to get there.
	if err := errors.Join(os.Chmod(base, 0o755), os.Chmod(filepath.Dir(base), 0o1777)); err != nil {
		t.Fatal(err)
	}
	kernels, ours := filepath.Join(base, "kernel"), filepath.Join(base, "ours")
	for _, d := range []string{kernels, ours} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var cases []matrixCase
	add := func(kind string, modes []uint32, ops []string) {
		for i, mode := range modes {
			for j, op := range ops {
				if !soak() && (i*len(ops)+j)%matrixSample != 0 {
					continue
				}
				c := matrixCase{Dir: fmt.Sprint(len(cases)), Op: op, mode: mode, Kind: kind}
				c.lay(t, kernels, who)
				c.lay(t, ours, who)
				cases = append(cases, c)
			}
		}
	}
	add("file", fileModes, fileOps)
	add("dir", dirModes, dirOps)
	said := judge(t, kernels, who, cases)
	f := open(t, ours, o)
	if f.Squashed() {
		need.Missing(t, "root", "root here cannot act for others")
	}
	view := f.As(who)
	for i := range cases {
		c := &cases[i]
		dir, _, _, err := f.Lookup(t.Context(), f.root, c.Dir)
		if err != nil {
			t.Fatal(err)
		}
		obj, _, _, err := f.Lookup(t.Context(), dir, "obj")
		if err != nil {
			t.Fatal(err)
		}
		var free vfs.Handle
		if c.Kind == "dir" {
			if free, _, _, err = f.Lookup(t.Context(), dir, "free"); err != nil {
				t.Fatal(err)
			}
		}
		got, _ := vfs.StatusOf(c.served(t, view, who, dir, obj, free))
		if want := vfs.Status(said[i]); got != want && !(got == 0 && c.nfsRule(who)) {
			t.Errorf("%s of a %s of mode %o: %v, the kernel says %v", c.Op, c.Kind, c.mode, name(got), name(want))
			continue
		} else if got != want {
			continue // a rule of NFS: there is nothing to compare with
		}
		if c.keepsSetGID(who) {
			continue
		}
		if a, b := state(t, filepath.Join(ours, c.Dir)), state(t, filepath.Join(kernels, c.Dir)); a != b {
			t.Errorf("%s of a %s of mode %o (%v) leaves\n%sand the kernel\n%s", c.Op, c.Kind, c.mode, name(got), a, b)
		}
	}
}

func name(s vfs.Status) string {
	if s == 0 {
		return "OK"
	}
	return s.Name()
}
