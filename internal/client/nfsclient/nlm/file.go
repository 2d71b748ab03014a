package nlm

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// file is an open file. It looks for a fence before each read and write.
type file struct {
	vfs.File // below
	s        *shared
	key      key
	near     vfs.Near // nil if the file below is not one

	born uint64                    // the generation of fences at its opening: they do not concern it
	seen atomic.Uint64             // the generation at the last look
	lost atomic.Pointer[LostError] // it is fenced

	verf atomic.Uint64 // the verifier of its last WRITE or COMMIT while locks were held; 0: none
}

var (
	_ vfs.File      = (*file)(nil)
	_ vfs.Near      = (*file)(nil)
	_ vfs.Unwrapper = (*file)(nil)
	_ vfs.Holder    = (*file)(nil)
)

// Open opens a file below.
func (f *FS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	born := f.s.fences.gen.Load()
	inner, opened, err := f.FS.Open(ctx, at, how)
	if err != nil {
		return nil, opened, err
	}
	o := &file{File: inner, s: f.s, key: key{opened.H, how.Owner}, born: born}
	o.seen.Store(born)
	o.near, _ = vfs.As[vfs.Near](inner)
	return o, opened, nil
}

// Unwrap returns the file below.
func (f *file) Unwrap() any { return f.File }

// Holds implements vfs.Holder. Powers to write past a fence end here.
func (f *file) Holds(power any) bool {
	_, appends := power.(*vfs.Appender)
	return !appends
}

// Near implements vfs.Near. A fenced file is near as well: so wrappers above read it here, and not from
// what they have read ahead.
func (f *file) Near() bool {
	return f.lost.Load() != nil || f.near != nil && f.near.Near() || f.fenced() != nil
}

// fenced returns the loss for which the file cannot be used.
func (f *file) fenced() error {
	gen := f.s.fences.gen.Load()
	if gen == f.born {
		return nil
	}
	if lost := f.lost.Load(); lost != nil {
		return lost
	}
	if gen == f.seen.Load() {
		return nil
	}
	lost := f.s.fences.get(&f.key, f.born)
	if f.seen.Store(gen); lost == nil {
		return nil
	}
	f.lost.Store(lost)
	return lost
}

// ReadAt reads below.
func (f *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	if err := f.fenced(); err != nil {
		return 0, false, err
	}
	return f.File.ReadAt(ctx, p, off, post)
}

// WriteAt writes below.
func (f *file) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	if err := f.fenced(); err != nil {
		return 0, err
	}
	n, err := f.File.WriteAt(ctx, p, off, how, w)
	if err == nil && f.s.held.Load() > 0 {
		f.wrote(w)
	}
	return n, err
}

// Commit commits below. It is not fenced: what was written before the loss may still become stable.
func (f *file) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	err := f.File.Commit(ctx, off, n, w)
	if err == nil && f.s.held.Load() > 0 {
		f.wrote(w)
	}
	return err
}

// wrote looks at the verifier of a WRITE or COMMIT: another one than before is that of another start of
// the server.
func (f *file) wrote(w *vfs.Written) {
	verf := binary.BigEndian.Uint64(w.Verf[:])
	if before := f.verf.Swap(verf); before != 0 && verf != 0 && before != verf {
		f.s.suspect()
	}
}

// Truncate cuts the file below.
func (f *file) Truncate(ctx context.Context, size uint64) (vfs.WCC, error) {
	if err := f.fenced(); err != nil {
		return vfs.WCC{}, err
	}
	return f.File.Truncate(ctx, size)
}

// fences are the losses for which open files cannot be used any more.
type fences struct {
	gen atomic.Uint64 // how many were put up

	mu   sync.Mutex
	list map[key]fence
	old  []key // in the order in which they came
}

type fence struct {
	gen  uint64
	lost *LostError
}

// put fences all files of k that are open.
func (f *fences) put(k key, lost *LostError) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.list == nil {
		f.list = make(map[key]fence)
	}
	if _, again := f.list[k]; again {
		f.old = slices.DeleteFunc(f.old, func(o key) bool { return o == k })
	} else if len(f.old) >= maxFences {
		delete(f.list, f.old[0])
		f.old = f.old[1:]
	}
	f.old = append(f.old, k)
	f.list[k] = fence{f.gen.Load() + 1, lost}
	f.gen.Add(1) // after the list: who sees it finds the fence
}

// get returns the loss of k since the generation born.
func (f *fences) get(k *key, born uint64) *LostError {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x, ok := f.list[*k]; ok && x.gen > born {
		return x.lost
	}
	return nil
}
