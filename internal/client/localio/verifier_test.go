//go:build linux

package localio

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
)

// replaceFD puts a device in the place of the descriptor that file writes by:
// /dev/null takes all bytes and cannot be synced, /dev/full takes none.
func replaceFD(t *testing.T, file vfs.File, device string) {
	t.Helper()
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	g := file.(interface{ writer() *grant }).writer()
	if g == nil {
		t.Fatal("the file is remote")
	}
	if err := errors.Join(unix.Dup3(int(f.Fd()), g.fd, unix.O_CLOEXEC), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func (f *file) writer() *grant { return f.write.grant.Load() }

// TestLostByCommit has a commit fail.
func TestLostByCommit(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	other, _ := open(t, f, "other", readWrite)
	w, o := write(t, file, "content", 0, vfs.Unstable), write(t, other, "content", 0, vfs.Unstable)
	replaceFD(t, file, "/dev/null")
	if err := file.Commit(t.Context(), 0, 0, new(vfs.Written)); err == nil {
		t.Error("a commit that cannot sync succeeds")
	}
	r.revoke(all)
	if c := commit(t, file); c.Verf == w.Verf {
		t.Error("what was lost looks committed")
	}
	if again := write(t, file, "content", 0, vfs.Unstable); again.Verf != commit(t, file).Verf {
		t.Error("what was written again does not look committed")
	}
	if commit(t, other).Verf != o.Verf {
		t.Error("another file is as if it had been lost as well")
	}
}

// TestLostByRevocation has the sync of a descriptor fail that was taken back.
func TestLostByRevocation(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	w := write(t, file, "content", 0, vfs.Unstable)
	replaceFD(t, file, "/dev/null")
	r.revoke(all)
	wantChanged(t, file, w)
}

// wantChanged commits, which may fail once, as the sync of what was taken back
// does, and wants another verifier than w's.
func wantChanged(t *testing.T, file vfs.File, w vfs.Written) {
	t.Helper()
	var c vfs.Written
	if err := file.Commit(t.Context(), 0, 0, &c); err != nil {
		c = commit(t, file)
	}
	if c.Verf == w.Verf {
		t.Error("what was lost looks committed")
	}
}

// TestLostWhileClosed forgets nothing when the file is closed.
func TestLostWhileClosed(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	w := write(t, file, "content", 0, vfs.Unstable)
	replaceFD(t, file, "/dev/null")
	if err := file.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.revoke(all)
	eventually(t, "the close", func() bool { return r.closes.Load() > 0 && f.Stats().Files == 0 })
	again, _ := open(t, f, "file", readWrite)
	if commit(t, again).Verf == w.Verf {
		t.Error("what was lost looks committed")
	}
}

// TestLostByClose tells who closes the FS.
func TestLostByClose(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	write(t, file, "content", 0, vfs.Unstable)
	replaceFD(t, file, "/dev/null")
	if err := file.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err == nil || !strings.Contains(err.Error(), "may not be stable") {
		t.Errorf("close: %v", err)
	}
}

// TestDiskFull is an answer, and taken for what may have cost other bytes.
func TestDiskFull(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	w := write(t, file, "content", 0, vfs.Unstable)
	replaceFD(t, file, "/dev/full")
	for how := vfs.Unstable; how <= vfs.FileSync; how++ {
		if _, err := file.WriteAt(t.Context(), []byte("CON"), 0, how, new(vfs.Written)); !errors.Is(err, vfs.ErrNoSpace) {
			t.Errorf("write: %v", err)
		}
	}
	r.revoke(all)
	wantChanged(t, file, w)
	r.wantTraffic(0, 0, 0)
}

// TestStableWriteFails where the sync does.
func TestStableWriteFails(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	write(t, file, "content", 0, vfs.Unstable)
	for how := vfs.DataSync; how <= vfs.FileSync; how++ {
		replaceFD(t, file, "/dev/null")
		if _, err := file.WriteAt(t.Context(), []byte("CON"), 0, how, new(vfs.Written)); err == nil {
			t.Error("a stable write that cannot sync succeeds")
		}
	}
}

// TestStableWritesFail where the sync does, whichever of several calls makes it.
func TestStableWritesFail(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	write(t, file, "content", 0, vfs.Unstable)
	replaceFD(t, file, "/dev/null")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 2000 {
				if _, err := file.WriteAt(t.Context(), []byte("CON"), 0, vfs.DataSync, new(vfs.Written)); err == nil {
					t.Error("a stable write succeeds, and the sync that took it has failed")
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestLostByReader has a caller that can only read commit what another has written.
func TestLostByReader(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	reader, _ := open(t, f, "file", vfs.ShareRead)
	w := write(t, file, "content", 0, vfs.Unstable)
	replaceFD(t, file, "/dev/null")
	var c vfs.Written
	if err := reader.Commit(t.Context(), 0, 0, &c); err == nil && c.Verf == w.Verf {
		t.Error("what cannot be synced looks committed")
	}
}

// TestServerForgets changes the verifier of the server, before and after another
// write tells of it.
func TestServerForgets(t *testing.T) {
	for _, tells := range []bool{false, true} {
		r := newRig(t, inMemory(t))
		r.mute.Store(true)
		f := r.fs(Options{})
		file, _ := open(t, f, "file", readWrite)
		first := write(t, file, "content", 0, vfs.Unstable)
		if commit(t, file).Verf != first.Verf {
			t.Error("a commit has another verifier")
		}
		r.below.s.verf.Add(1)
		second := write(t, file, "content", 0, vfs.Unstable)
		if second.Verf != first.Verf || commit(t, file).Verf != second.Verf {
			t.Error("nothing was lost, and the verifier changes")
		}
		third := write(t, file, "content", 0, vfs.Unstable)
		r.below.s.verf.Add(1)
		if tells {
			write(t, file, "other", 100, vfs.Unstable)
		}
		c := commit(t, file)
		if c.Verf == third.Verf {
			t.Errorf("what was lost looks committed (told before: %t)", tells)
		}
		if fourth := write(t, file, "content", 0, vfs.Unstable); fourth.Verf != c.Verf || commit(t, file).Verf != c.Verf {
			t.Error("the verifier does not settle")
		}
	}
}

// TestWritesDrain writes over the network, becomes local, and wants the writes of
// before committed before others take the other way.
func TestWritesDrain(t *testing.T) {
	r := newRig(t, inMemory(t))
	r.refuses(localio.SESSION_CROWDED, 0)
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	w := write(t, file, "content", 0, vfs.Unstable)
	r.wantTraffic(0, 1, 0)
	r.refuse.Store(nil)
	file.(interface{ forget() }).forget()
	wantBytes(t, file, 0, "content") // reads are local at once
	write(t, file, "CON", 0, vfs.Unstable)
	r.wantTraffic(0, 2, 0)
	// A commit is on its way: writes meanwhile, and from then on, are local.
	during := func(op string) error {
		if op == "commit" {
			write(t, file, "more", 10, vfs.Unstable)
			r.below.s.fault.Store(nil)
		}
		return nil
	}
	r.below.s.fault.Store(&during)
	if commit(t, file).Verf != w.Verf {
		t.Error("the verifier has changed though nothing was lost")
	}
	write(t, file, "mOre", 10, vfs.Unstable)
	if commit(t, file).Verf != w.Verf {
		t.Error("the verifier has changed though nothing was lost")
	}
	r.wantTraffic(0, 2, 1)
	wantBytes(t, file, 0, "CONtent\x00\x00\x00mOre")
}

// forget has the next call ask again for what was refused.
func (f *file) forget() {
	f.n.mu.Lock()
	clear(f.n.refusals)
	f.n.mu.Unlock()
	f.read.refusal.Store(nil)
	f.write.refusal.Store(nil)
}

// TestWriteInDoubt cuts a write off that may still be carried out.
func TestWriteInDoubt(t *testing.T) {
	r := newRig(t, inMemory(t))
	r.refuses(localio.SESSION_CROWDED, 0)
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	cut := func(op string) error { return fmt.Errorf("%s: %w", op, vfs.ErrUnknownOutcome) }
	r.below.s.fault.Store(&cut)
	if _, err := file.WriteAt(t.Context(), []byte("x"), 0, vfs.FileSync, new(vfs.Written)); !errors.Is(err, vfs.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	r.refuse.Store(nil)
	file.(interface{ forget() }).forget()
	during := func(op string) error {
		if op == "commit" {
			r.below.s.fault.Store(nil)
			write(t, file, "during", 0, vfs.Unstable)
		}
		return nil
	}
	r.below.s.fault.Store(&during)
	write(t, file, "behind", 0, vfs.Unstable)
	commit(t, file)
	r.wantTraffic(0, 3, 1) // all over the network, so that nothing overtakes
	commit(t, file)
	write(t, file, "local", 0, vfs.Unstable)
	r.wantTraffic(0, 3, 2)
}

// TestCutInDoubt cuts a change of size off that may still be carried out: what is
// written from then on must not come before it.
func TestCutInDoubt(t *testing.T) {
	for op, cut := range map[string]func(f *FS, file vfs.File, h vfs.Handle) error{
		"truncate": func(_ *FS, file vfs.File, _ vfs.Handle) error {
			_, err := file.Truncate(t.Context(), 0)
			return err
		},
		"setattr": func(f *FS, _ vfs.File, h vfs.Handle) error {
			_, err := f.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskSize}, nil)
			return err
		},
		"open": func(f *FS, _ vfs.File, h vfs.Handle) error {
			_, _, err := f.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: readWrite, Trunc: true})
			return err
		},
	} {
		for _, mode := range []Mode{Auto, Require} {
			t.Run(op+" "+mode.String(), func(t *testing.T) {
				r := newRig(t, inMemory(t))
				f := r.ready(Options{Mode: mode})
				file, h := open(t, f, "file", readWrite)
				write(t, file, "content", 0, vfs.Unstable)
				commit(t, file)
				fault := func(what string) error {
					if what == op {
						return fmt.Errorf("%s: %w", op, vfs.ErrUnknownOutcome)
					}
					return nil
				}
				r.below.s.fault.Store(&fault)
				if err := cut(f, file, h); !errors.Is(err, vfs.ErrUnknownOutcome) {
					t.Fatal(err)
				}
				wrote := int64(1)
				_, err := file.WriteAt(t.Context(), []byte("behind"), 0, vfs.Unstable, new(vfs.Written))
				if mode == Require {
					wrote = 0
				}
				if err != nil {
					t.Errorf("write: %v", err)
				}
				commit(t, file)
				r.wantTraffic(0, wrote, 1)
				write(t, file, "local", 0, vfs.Unstable)
				r.wantTraffic(0, wrote, 1)
			})
		}
	}
}

// TestRemembered closes files with what is to be remembered of them, and more of
// them than can be.
func TestRemembered(t *testing.T) {
	r := newRig(t, inMemory(t))
	r.mute.Store(true)
	f := r.fs(Options{})
	file, h := open(t, f, "file", readWrite)
	first := write(t, file, "content", 0, vfs.Unstable)
	if err := file.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.below.s.verf.Add(1)
	file, _ = open(t, f, "file", readWrite)
	if commit(t, file).Verf == first.Verf {
		t.Error("what was lost looks committed")
	}
	second := write(t, file, "content", 0, vfs.Unstable)
	if err := file.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range maxRemembered {
		var n vfs.Handle
		n, err := vfs.MakeHandle(fmt.Appendf(nil, "handle %d", i))
		if err != nil {
			t.Fatal(err)
		}
		x := f.s.enter(n)
		x.answered(vfs.Verifier{1})
		f.s.drop(x)
	}
	if n := f.s.find(h); n != nil {
		t.Error("more is remembered than may be")
	}
	file, _ = open(t, f, "file", readWrite)
	if commit(t, file).Verf == second.Verf {
		t.Error("what was forgotten looks committed")
	}
}
