package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/internal/testkit/sim/rpcfault"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// change is a call that changes something and whose reply is thrown away after
// it has been executed. What it works on is there before:
//
//	file   a file that holds "old"
//	other  a file that holds "other"
//	dir/   an empty directory
//	full/  a directory with a file x
type change struct {
	name string
	proc *xdr.Proc
	do   func(ctx context.Context, s *scene) error
	// done reports whether the change is there, looking at the server's own tree.
	done func(s *scene) bool
	// refused is what the server truly answers, if it refuses the call.
	refused error
	// decided: the client can always tell, so it must say so: nil, or refused.
	decided bool
}

// scene is what the changes work on.
type scene struct {
	*faulty
	file, other, dir, full vfs.Handle
}

func newScene(f *faulty) *scene {
	s := &scene{faulty: f}
	put(f.t, f.at, "file", []byte("old"))
	put(f.t, f.at, "other", []byte("other"))
	put(f.t, f.at, "full/x", nil)
	put(f.t, f.at, "dir/x", nil)
	// The client has looked everything up, as callers have that name a thing.
	for name, h := range map[string]*vfs.Handle{"file": &s.file, "other": &s.other, "dir": &s.dir, "full": &s.full} {
		var err error
		if *h, _, _, err = f.fs.Lookup(f.t.Context(), f.root, name); err != nil {
			f.t.Fatal(err)
		}
	}
	if _, err := f.at.Remove(f.t.Context(), s.dirAt("dir"), "x", false); err != nil {
		f.t.Fatal(err)
	}
	return s
}

// dirAt is the server's own handle of a directory in the root.
func (s *scene) dirAt(name string) vfs.Handle {
	s.t.Helper()
	root, _, err := s.at.Root(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if name == "" {
		return root
	}
	h, _, _, err := s.at.Lookup(s.t.Context(), root, name)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// has reports whether the server has the name, in its root or in a directory.
func (s *scene) has(dir, name string) bool {
	s.t.Helper()
	_, _, _, err := s.at.Lookup(s.t.Context(), s.dirAt(dir), name)
	if err != nil && !errors.Is(err, vfs.ErrNoEnt) {
		s.t.Fatal(err)
	}
	return err == nil
}

func (s *scene) attr(name string) vfs.Attr {
	s.t.Helper()
	_, a, _, err := s.at.Lookup(s.t.Context(), s.dirAt(""), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *scene) create(ctx context.Context, name string, how vfs.CreateHow) error {
	_, _, _, err := s.fs.Create(ctx, s.root, name, &how)
	return err
}

func (s *scene) remove(ctx context.Context, name string, isDir bool) error {
	_, err := s.fs.Remove(ctx, s.root, name, isDir)
	return err
}

func (s *scene) rename(ctx context.Context, from, to string) error {
	_, _, err := s.fs.Rename(ctx, s.root, from, s.root, to)
	return err
}

func (s *scene) setattr(ctx context.Context, guard *time.Time) error {
	_, err := s.fs.SetAttr(ctx, s.file, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o612}, guard)
	return err
}

// appears is a done for what makes name.
func appears(name string) func(s *scene) bool {
	return func(s *scene) bool { return s.has("", name) }
}

// vanishes is a done for what removes name.
func vanishes(name string) func(s *scene) bool {
	return func(s *scene) bool { return !s.has("", name) }
}

func never(*scene) bool { return false }

var reg = vfs.CreateHow{Type: vfs.TypeReg}

var changesMade = []change{
	{name: "CREATE guarded", proc: nfs3.NFSPROC3_CREATE, done: appears("new"), do: func(ctx context.Context, s *scene) error {
		return s.create(ctx, "new", reg)
	}},
	{name: "CREATE exclusive", proc: nfs3.NFSPROC3_CREATE, done: appears("new"), decided: true, do: func(ctx context.Context, s *scene) error {
		return s.create(ctx, "new", vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateExclusive, Verf: vfs.Verifier{1, 2, 3}})
	}},
	{name: "CREATE unchecked", proc: nfs3.NFSPROC3_CREATE, done: appears("new"), decided: true, do: func(ctx context.Context, s *scene) error {
		return s.create(ctx, "new", vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked})
	}},
	{name: "MKDIR", proc: nfs3.NFSPROC3_MKDIR, done: appears("new"), do: func(ctx context.Context, s *scene) error {
		return s.create(ctx, "new", vfs.CreateHow{Type: vfs.TypeDir})
	}},
	{name: "SYMLINK", proc: nfs3.NFSPROC3_SYMLINK, done: appears("new"), do: func(ctx context.Context, s *scene) error {
		return s.create(ctx, "new", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "there"})
	}},
	{name: "MKNOD", proc: nfs3.NFSPROC3_MKNOD, done: appears("new"), do: func(ctx context.Context, s *scene) error {
		return s.create(ctx, "new", vfs.CreateHow{Type: vfs.TypeFIFO})
	}},
	{name: "LINK", proc: nfs3.NFSPROC3_LINK, done: appears("new"), decided: true, do: func(ctx context.Context, s *scene) error {
		_, _, err := s.fs.Link(ctx, s.file, s.root, "new")
		return err
	}},
	{name: "REMOVE", proc: nfs3.NFSPROC3_REMOVE, done: vanishes("file"), do: func(ctx context.Context, s *scene) error {
		return s.remove(ctx, "file", false)
	}},
	{name: "RMDIR", proc: nfs3.NFSPROC3_RMDIR, done: vanishes("dir"), do: func(ctx context.Context, s *scene) error {
		return s.remove(ctx, "dir", true)
	}},
	{name: "RENAME", proc: nfs3.NFSPROC3_RENAME, done: appears("new"), decided: true, do: func(ctx context.Context, s *scene) error {
		return s.rename(ctx, "file", "new")
	}},
	{name: "RENAME over", proc: nfs3.NFSPROC3_RENAME, done: vanishes("file"), decided: true, do: func(ctx context.Context, s *scene) error {
		return s.rename(ctx, "file", "other")
	}},
	{name: "RENAME of a directory", proc: nfs3.NFSPROC3_RENAME, done: appears("new"), decided: true, do: func(ctx context.Context, s *scene) error {
		return s.rename(ctx, "full", "new")
	}},
	{
		name: "SETATTR", proc: nfs3.NFSPROC3_SETATTR, decided: true, done: func(s *scene) bool { return s.attr("file").Mode == 0o612 },
		do: func(ctx context.Context, s *scene) error { return s.setattr(ctx, nil) },
	},
	{
		name: "SETATTR guarded", proc: nfs3.NFSPROC3_SETATTR, done: func(s *scene) bool { return s.attr("file").Mode == 0o612 },
		do: func(ctx context.Context, s *scene) error {
			ctime := s.attr("file").Ctime
			return s.setattr(ctx, &ctime)
		},
	},
	{
		name: "WRITE", proc: nfs3.NFSPROC3_WRITE, decided: true,
		done: func(s *scene) bool { return string(get(s.t, s.at, "file")) == "new" },
		do:   func(ctx context.Context, s *scene) error { return write(ctx, s.fs, s.root, "file", []byte("new")) },
	},
	{
		name: "COMMIT", proc: nfs3.NFSPROC3_COMMIT, decided: true,
		done: func(s *scene) bool { return string(get(s.t, s.at, "file")) == "new" },
		do:   func(ctx context.Context, s *scene) error { return write(ctx, s.fs, s.root, "file", []byte("new")) },
	},
}

// changesRefused are answered with an error, each time. It must not turn into a
// success because the call was sent twice.
var changesRefused = []change{
	{name: "CREATE guarded", proc: nfs3.NFSPROC3_CREATE, refused: vfs.ErrExist, done: never, do: func(ctx context.Context, s *scene) error {
		return s.create(ctx, "other", reg)
	}},
	{name: "CREATE exclusive", proc: nfs3.NFSPROC3_CREATE, refused: vfs.ErrExist, decided: true, done: never, do: func(ctx context.Context, s *scene) error {
		return s.create(ctx, "other", vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateExclusive, Verf: vfs.Verifier{1, 2, 3}})
	}},
	{name: "MKDIR", proc: nfs3.NFSPROC3_MKDIR, refused: vfs.ErrExist, done: never, do: func(ctx context.Context, s *scene) error {
		return s.create(ctx, "full", vfs.CreateHow{Type: vfs.TypeDir})
	}},
	{name: "SYMLINK", proc: nfs3.NFSPROC3_SYMLINK, refused: vfs.ErrExist, done: never, do: func(ctx context.Context, s *scene) error {
		return s.create(ctx, "other", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "there"})
	}},
	{name: "LINK", proc: nfs3.NFSPROC3_LINK, refused: vfs.ErrExist, done: never, do: func(ctx context.Context, s *scene) error {
		_, _, err := s.fs.Link(ctx, s.file, s.root, "other")
		return err
	}},
	{name: "REMOVE", proc: nfs3.NFSPROC3_REMOVE, refused: vfs.ErrNoEnt, done: never, do: func(ctx context.Context, s *scene) error {
		return s.remove(ctx, "none", false)
	}},
	{name: "RMDIR of nothing", proc: nfs3.NFSPROC3_RMDIR, refused: vfs.ErrNoEnt, done: never, do: func(ctx context.Context, s *scene) error {
		return s.remove(ctx, "none", true)
	}},
	{name: "RMDIR", proc: nfs3.NFSPROC3_RMDIR, refused: vfs.ErrNotEmpty, done: vanishes("full"), do: func(ctx context.Context, s *scene) error {
		return s.remove(ctx, "full", true)
	}},
	{name: "RENAME", proc: nfs3.NFSPROC3_RENAME, refused: vfs.ErrNoEnt, done: appears("new"), do: func(ctx context.Context, s *scene) error {
		return s.rename(ctx, "none", "new")
	}},
	{name: "RENAME onto what is there", proc: nfs3.NFSPROC3_RENAME, refused: vfs.ErrNoEnt, done: never, do: func(ctx context.Context, s *scene) error {
		return s.rename(ctx, "none", "other")
	}},
	{name: "SETATTR guarded", proc: nfs3.NFSPROC3_SETATTR, refused: vfs.ErrNotSync, done: never, do: func(ctx context.Context, s *scene) error {
		ctime := time.Unix(1, 0)
		return s.setattr(ctx, &ctime)
	}},
}

// losses are the ways in which a reply is lost on the way.
var losses = []loss{
	{"connection cut", rpcfault.Fault{Kind: rpcfault.CutInReply}},
	{"connection cut within the reply", rpcfault.Fault{Kind: rpcfault.CutInReply, At: rpcfault.Anywhere}},
	{"connection open", rpcfault.Fault{Kind: rpcfault.DropReply}},
	{"held", rpcfault.Fault{Kind: rpcfault.EditReply, Edit: func(m *rpcfault.Message, _ *sim.Rand) { m.Claim = len(m.Record) + 400 }}},
}

type loss struct {
	name  string
	fault rpcfault.Fault
}

// useless is a reply that comes and says nothing: it is not asked for again.
var useless = loss{"useless", rpcfault.Fault{Kind: rpcfault.EditReply, Edit: rpcfault.Truncate(2)}}

// forLosses runs a test for each change and way of losing its reply, with so many
// replies lost before one comes; 0: all.
func forLosses(t *testing.T, changes []change, losses []loss, lost []uint64, test func(t *testing.T, s *scene, c *change)) {
	for i := range changes {
		c := &changes[i]
		for _, l := range losses {
			for _, n := range lost {
				t.Run(fmt.Sprintf("%s/%s/%d", c.name, l.name, n), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := inMemory(t, memfs.New(memfs.Options{Mode: 0o777}), seeds(t, 1)[0], "timeo=100&retrans=4")
						s := newScene(f)
						f.p.SetRules(rpcfault.Rule{Procs: []*xdr.Proc{c.proc}, Budget: n, Fault: l.fault})
						test(t, s, c)
						if f.p.Stats().Injected[l.fault.Kind] == 0 {
							t.Error("nothing was injected")
						}
					})
				})
			}
		}
	}
}

// ends makes the change and sees to it that this comes to an end.
func (c *change) ends(t *testing.T, s *scene) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	start := time.Now()
	err := c.do(ctx, s)
	if took := time.Since(start); took > 10*time.Minute {
		t.Errorf("took %v", took)
	}
	return err
}

// TestOutcomeOfWhatWasExecuted loses the replies to calls that the server has
// executed. The caller gets the truth, or an error that says that it is unknown;
// never an error that a second execution has made.
func TestOutcomeOfWhatWasExecuted(t *testing.T) {
	need.Time(t, "replies that are lost for each change")
	forLosses(t, changesMade, append(losses, useless), []uint64{1, 2, 0}, func(t *testing.T, s *scene, c *change) {
		err := c.ends(t, s)
		if !c.done(s) {
			t.Error("the change is not there: the test is of no use")
		}
		_, answered := vfs.StatusOf(err)
		if err != nil && !errors.Is(err, vfs.ErrUnknownOutcome) && (answered || c.proc != nfs3.NFSPROC3_COMMIT) {
			t.Errorf("a definite answer that is not true: %v", err)
		}
		s.intact(t, c)
	})
}

// TestOutcomeOfWhatWasRefused is the same for calls that the server refuses: no
// success is made of them.
func TestOutcomeOfWhatWasRefused(t *testing.T) {
	forLosses(t, changesRefused, append(losses, useless), []uint64{1, 0}, func(t *testing.T, s *scene, c *change) {
		err := c.ends(t, s)
		switch {
		case c.done(s):
			t.Error("the change is there: the test is of no use")
		case err == nil:
			t.Error("success of what was refused")
		case !errors.Is(err, c.refused) && !errors.Is(err, vfs.ErrUnknownOutcome):
			t.Errorf("neither %v nor unknown: %v", c.refused, err)
		}
		s.intact(t, c)
	})
}

// intact looks at what no change was to touch.
func (s *scene) intact(t *testing.T, c *change) {
	t.Helper()
	if c.name != "RENAME over" && !bytes.Equal(get(t, s.at, "other"), []byte("other")) {
		t.Error("another file has changed")
	}
	if c.name == "RENAME over" && !bytes.Equal(get(t, s.at, "other"), []byte("old")) {
		t.Error("the file did not come along")
	}
	if c.name != "RENAME of a directory" && !s.has("full", "x") {
		t.Error("another directory has changed")
	}
}

// TestOutcomeDecided: one reply is lost on the way, and the next one comes. Where
// the client can tell what has happened, it must.
func TestOutcomeDecided(t *testing.T) {
	for _, table := range [][]change{changesMade, changesRefused} {
		decided := slices.DeleteFunc(slices.Clone(table), func(c change) bool { return !c.decided })
		forLosses(t, decided, losses, []uint64{1}, func(t *testing.T, s *scene, c *change) {
			err := c.ends(t, s)
			switch {
			case c.refused == nil && err != nil:
				t.Errorf("it was done, and the client can know: %v", err)
			case c.refused != nil && (!errors.Is(err, c.refused) || errors.Is(err, vfs.ErrUnknownOutcome)):
				t.Errorf("it was refused, and the client can know: %v", err)
			}
		})
	}
}
