//go:build linux

package identity

import (
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// fakeIDs are the ids of a thread, in memory, that refuse to be set back.
type fakeIDs struct {
	uid, gid int
	broken   bool
}

func (f *fakeIDs) calls() Calls {
	set := func(at *int) func(int) (int, error) {
		return func(id int) (int, error) {
			old := *at
			if id != noID && !(f.broken && id == 0) {
				*at = id
			}
			return old, nil
		}
	}
	return Calls{
		SetGroups: func([]int) error { return nil },
		SetFSGID:  set(&f.gid),
		SetFSUID:  set(&f.uid),
		SetCaps:   func(*linux.Caps) error { return nil },
	}
}

func TestLostIdentity(t *testing.T) {
	var ids fakeIDs
	c := &Switcher{Calls: ids.calls(), threads: make(map[int]bool), able: true}
	done := make(chan struct{})
	go func() { // whose thread ends with it
		defer close(done)
		ran := false
		ids.broken = true
		err := c.As(&Identity{uid: 7, gid: 7}, Whole, func() error { ran = true; return vfs.ErrExist })
		if !ran || !errors.Is(err, ErrLost) || !errors.Is(err, vfs.ErrExist) {
			t.Errorf("ran %v, error %v", ran, err)
		}
		if err := c.Check(); !errors.Is(err, ErrLost) {
			t.Errorf("the thread is used on: %v", err)
		}
		elsewhere := make(chan error)
		go func() { elsewhere <- c.Check() }()
		if err := <-elsewhere; err != nil {
			t.Errorf("another thread is refused: %v", err)
		}
		ids.broken = false
		if err := c.Check(); err != nil || ids.uid != 0 || c.lost.Load() != 0 {
			t.Errorf("the thread was not healed: %v, uid %d", err, ids.uid)
		}
	}()
	<-done
}

func TestRefusedIdentityRunsNothing(t *testing.T) {
	ids := fakeIDs{}
	calls := ids.calls()
	calls.SetFSUID = func(int) (int, error) { return 0, nil } // a user that this namespace does not know
	c := &Switcher{Calls: calls, threads: make(map[int]bool)}
	err := c.As(&Identity{uid: 7, gid: 7}, Whole, func() error { t.Error("it ran"); return nil })
	if !errors.Is(err, vfs.ErrServerFault) {
		t.Errorf("error %v", err)
	}
	if c.lost.Load() != 0 {
		t.Error("the thread counts as lost")
	}
}
