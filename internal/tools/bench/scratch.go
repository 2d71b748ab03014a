package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// Prefix begins the name of every file that bench makes.
const Prefix = "nfsbox-bench-"

// randomName is how much of a name is random, in bytes. Two runs never meet.
const randomName = 12

// scratch makes files in a directory, and removes those and no others.
type scratch struct {
	fs  vfs.FS
	dir vfs.Handle
	o   *Options

	mu   sync.Mutex
	made []made
}

// made is a file that was made, or may have been: a call that was cut off leaves
// it open, and then h is zero.
type made struct {
	name string
	h    vfs.Handle
}

func newScratch(m *mount) *scratch {
	return &scratch{fs: m.fs, dir: m.target.Handle, o: m.o}
}

// create makes an empty file that did not exist before, and opens it.
func (s *scratch) create(ctx context.Context) (vfs.File, vfs.Handle, error) {
	name := Prefix + s.o.random(randomName)
	whole, end := outlast(ctx)
	defer end()
	h, _, _, err := s.fs.Create(whole, s.dir, name, &vfs.CreateHow{
		Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600},
	})
	if err == nil || errors.Is(err, vfs.ErrUnknownOutcome) {
		s.mu.Lock()
		s.made = append(s.made, made{name, h})
		s.mu.Unlock()
	}
	if err != nil {
		return nil, h, fmt.Errorf("create %s: %w", name, err)
	}
	f, _, err := s.fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite})
	if err != nil {
		return nil, h, fmt.Errorf("open %s: %w", name, err)
	}
	return f, h, nil
}

func (s *scratch) remove(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all error
	for _, m := range s.made {
		if err := s.removeOne(ctx, m); err != nil {
			all = errors.Join(all, fmt.Errorf("%s is left behind: %w", m.name, err))
		}
	}
	s.made = nil
	return all
}

// removeOne removes a file unless its name has become another's.
func (s *scratch) removeOne(ctx context.Context, m made) error {
	h, _, _, err := s.fs.Lookup(ctx, s.dir, m.name)
	switch {
	case errors.Is(err, vfs.ErrNoEnt):
		return nil
	case err != nil:
		return err
	case h != m.h && !m.h.IsZero():
		return errors.New("the name stands for another file by now")
	}
	_, err = s.fs.Remove(ctx, s.dir, m.name, false)
	if errors.Is(err, vfs.ErrNoEnt) {
		return nil // the reply to a first try was lost
	}
	return err
}

// noise is n bytes that no one can compress, the same for the same seed.
func noise(n int, seed uint64) []byte {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	p := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(p) // which never fails
	return p
}
