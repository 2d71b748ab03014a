package vfstest

import (
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// mutantEnv names the mutant that a child process runs the suite on.
const mutantEnv = "VFSTEST_MUTANT"

// mutants are file systems with one lie each. The suite must find every one.
var mutants = map[string]func(vfs.FS) vfs.FS{
	"readdir-repeats-an-entry":     func(f vfs.FS) vfs.FS { return repeats{f} },
	"readdir-starts-over":          func(f vfs.FS) vfs.FS { return startsOver{f} },
	"remove-ignores-isdir":         func(f vfs.FS) vfs.FS { return removesAll{f} },
	"read-ends-too-early":          func(f vfs.FS) vfs.FS { return opens{f, func(g vfs.File) vfs.File { return endsEarly{g} }} },
	"rename-leaves-the-old-name":   func(f vfs.FS) vfs.FS { return renamesHalf{f} },
	"guarded-create-overwrites":    func(f vfs.FS) vfs.FS { return overwrites{f} },
	"commit-verifier-changes":      func(f vfs.FS) vfs.FS { return opens{f, func(g vfs.File) vfs.File { return &verifies{File: g} }} },
	"setattr-ignores-the-guard":    func(f vfs.FS) vfs.FS { return unguarded{f} },
	"link-does-not-count":          func(f vfs.FS) vfs.FS { return miscounts{f} },
	"lookup-of-missing-is-an-eio":  func(f vfs.FS) vfs.FS { return fails{f} },
	"write-says-stable-too-little": func(f vfs.FS) vfs.FS { return opens{f, func(g vfs.File) vfs.File { return unstable{g} }} },
	"names-are-cut":                func(f vfs.FS) vfs.FS { return cuts{f} },
	"cancel-is-ignored":            func(f vfs.FS) vfs.FS { return deaf{f} },
	"unlock-frees-too-much":        func(f vfs.FS) vfs.FS { return unlocks{f, f.(vfs.Locker)} },
	"locks-do-not-exclude":         func(f vfs.FS) vfs.FS { return shares{f, f.(vfs.Locker)} },
	"lock-holder-is-someone-else":  func(f vfs.FS) vfs.FS { return blames{f, f.(vfs.Locker)} },
	"acl-default-is-forgotten":     func(f vfs.FS) vfs.FS { return forgets{f, f.(vfs.ACLer)} },
	"acl-mask-is-left-out":         func(f vfs.FS) vfs.FS { return unmasks{f, f.(vfs.ACLer)} },
}

// TestMutants runs the suite on each mutant, in a process of its own, where it must fail.
func TestMutants(t *testing.T) {
	if name := os.Getenv(mutantEnv); name != "" {
		runMutant(t, name)
		return
	}
	finds := make(map[string]string) // and which test must fail
	for name := range mutants {
		finds[name] = ""
	}
	for name, lie := range lies {
		finds[name] = ".*/" + lie.test + " "
	}
	for name, test := range finds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMutants$", "-test.failfast", "-test.timeout=60s")
			child.Env = append(os.Environ(), mutantEnv+"="+name)
			out, err := child.CombinedOutput()
			var exit *exec.ExitError
			failed := regexp.MustCompile(`--- FAIL: TestMutants/` + test)
			if !errors.As(err, &exit) || !failed.Match(out) {
				t.Fatalf("the suite does not find it: %v\n%s", err, out)
			}
			if strings.Contains(string(out), "panic:") {
				t.Errorf("the suite panics:\n%s", out)
			}
		})
	}
}

func runMutant(t *testing.T, name string) {
	if lie, ok := lies[name]; ok {
		RunPowers(t, PowersConfig{New: func(_ *testing.T, over vfs.FS) vfs.FS { return lie.make(over) }})
		return
	}
	mutate, ok := mutants[name]
	if !ok {
		t.Skipf("there is no mutant %q", name) // which the parent takes for a failure
	}
	Run(t, Config{New: func(*testing.T) vfs.FS { return mutate(memfs.New(memfs.Options{})) }})
}

// TestUnknownDifference wants a name that no subtest has to fail the run.
func TestUnknownDifference(t *testing.T) {
	if os.Getenv(mutantEnv) != "" {
		checkDifferences(t, map[string]string{"rename/no-such-test": "no reason"})
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUnknownDifference$", "-test.timeout=60s")
	child.Env = append(os.Environ(), mutantEnv+"=none")
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), `"rename/no-such-test"`) {
		t.Fatalf("the run does not fail: %v\n%s", err, out)
	}
}

type repeats struct{ vfs.FS }

func (f repeats) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		n := 0
		for e, err := range f.FS.ReadDir(ctx, dir, from, want, maxBytes) {
			if !yield(e, err) {
				return
			}
			if n++; n == 100 && !yield(e, err) {
				return
			}
		}
	}
}

// startsOver ignores places in the middle of a large directory.
type startsOver struct{ vfs.FS }

func (f startsOver) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	if from.Cookie > 100 {
		from = vfs.Pos{}
	}
	return f.FS.ReadDir(ctx, dir, from, want, maxBytes)
}

type removesAll struct{ vfs.FS }

func (f removesAll) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	w, err := f.FS.Remove(ctx, dir, name, isDir)
	if errors.Is(err, vfs.ErrIsDir) || errors.Is(err, vfs.ErrNotDir) {
		return f.FS.Remove(ctx, dir, name, !isDir)
	}
	return w, err
}

type renamesHalf struct{ vfs.FS }

func (f renamesHalf) Rename(ctx context.Context, fromDir vfs.Handle, from string, toDir vfs.Handle, to string) (a, b vfs.WCC, err error) {
	a, b, err = f.FS.Rename(ctx, fromDir, from, toDir, to)
	if err != nil {
		return a, b, err
	}
	if h, attr, _, found := f.FS.Lookup(ctx, toDir, to); found == nil && attr.Type == vfs.TypeReg {
		_, _, err = f.FS.Link(ctx, h, fromDir, from)
		if errors.Is(err, vfs.ErrExist) {
			err = nil
		}
	}
	return a, b, err
}

type overwrites struct{ vfs.FS }

func (f overwrites) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	if how.Type == vfs.TypeReg && how.Mode == vfs.CreateGuarded {
		other := *how
		other.Mode = vfs.CreateUnchecked
		how = &other
	}
	return f.FS.Create(ctx, dir, name, how)
}

type unguarded struct{ vfs.FS }

func (f unguarded) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, _ *time.Time) (vfs.WCC, error) {
	return f.FS.SetAttr(ctx, h, set, nil)
}

type miscounts struct{ vfs.FS }

func (f miscounts) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	a, err := f.FS.GetAttr(ctx, h, want)
	if a.Type != vfs.TypeDir {
		a.Nlink = min(a.Nlink, 1)
	}
	return a, err
}

type fails struct{ vfs.FS }

func (f fails) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, attr, dirAttr vfs.Attr, err error) {
	h, attr, dirAttr, err = f.FS.Lookup(ctx, dir, name)
	if errors.Is(err, vfs.ErrNoEnt) {
		err = vfs.ErrIO
	}
	return h, attr, dirAttr, err
}

type cuts struct{ vfs.FS }

func (f cuts) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	return f.FS.Create(ctx, dir, name[:min(len(name), vfs.MaxName)], how)
}

type deaf struct{ vfs.FS }

func (f deaf) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	return f.FS.Remove(context.WithoutCancel(ctx), dir, name, isDir)
}

// opens lies about files.
type opens struct {
	vfs.FS
	wrap func(vfs.File) vfs.File
}

func (f opens) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	g, opened, err := f.FS.Open(ctx, at, how)
	if err != nil {
		return nil, opened, err
	}
	return f.wrap(g), opened, nil
}

// endsEarly reports the end of the file whenever the buffer was filled.
type endsEarly struct{ vfs.File }

func (f endsEarly) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	n, eof, err := f.File.ReadAt(ctx, p, off, post)
	return n, eof || n == len(p) && n > 1, err
}

type verifies struct {
	vfs.File
	commits byte
}

func (f *verifies) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	err := f.File.Commit(ctx, off, n, w)
	f.commits++
	w.Verf[7] += f.commits
	return err
}

type unstable struct{ vfs.File }

func (f unstable) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	return f.File.WriteAt(ctx, p, off, vfs.Unstable, w)
}

// unlocks frees all that an owner has.
type unlocks struct {
	vfs.FS
	vfs.Locker
}

func (f unlocks) Unlock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	return f.Locker.Unlock(ctx, h, &vfs.Lock{Owner: l.Owner})
}

// shares makes every lock shared.
type shares struct {
	vfs.FS
	vfs.Locker
}

func (f shares) Lock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	s := *l
	s.Exclusive = false
	return f.Locker.Lock(ctx, h, &s)
}

type blames struct {
	vfs.FS
	vfs.Locker
}

func (f blames) TestLock(ctx context.Context, h vfs.Handle, l *vfs.Lock) (vfs.Lock, bool, error) {
	holder, free, err := f.Locker.TestLock(ctx, h, l)
	holder.Owner.N ^= 1
	return holder, free, err
}

type forgets struct {
	vfs.FS
	vfs.ACLer
}

func (f forgets) SetACL(ctx context.Context, h vfs.Handle, acl vfs.ACL) error {
	acl.Default = nil
	return f.ACLer.SetACL(ctx, h, acl)
}

type unmasks struct {
	vfs.FS
	vfs.ACLer
}

func (f unmasks) ACL(ctx context.Context, h vfs.Handle) (vfs.ACL, error) {
	acl, err := f.ACLer.ACL(ctx, h)
	acl.Access = slices.DeleteFunc(acl.Access, func(e vfs.ACLEntry) bool { return e.Tag == vfs.ACLMask })
	return acl, err
}
