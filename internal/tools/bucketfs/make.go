package bucketfs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.Maker = (*FS)(nil)

// Make implements vfs.Maker. It waits until there is memory for the file.
func (f *FS) Make(ctx context.Context, dir vfs.Handle, name string, a *vfs.Attr, mark string) (vfs.Making, error) {
	key, others, err := f.clearing(ctx, &dir, name, isFile)
	given := *a
	a = &given
	f.owned(a)
	switch {
	case err != nil:
		return nil, err
	case a.Size > maxMade:
		return nil, fmt.Errorf("it has %d bytes, and a file in a bucket can have %d GiB: %w", a.Size, maxMade>>30, vfs.ErrFBig)
	case a.Size > uint64(f.whole):
		return f.makeParts(ctx, key, a, others, mark)
	}
	if mark != "" { // the file was longer
		if err := f.Unmake(ctx, mark); err != nil {
			return nil, err
		}
	}
	m := &making{f: f, key: key, attr: *a, others: others, held: int64(a.Size)}
	if err := f.memory.Acquire(ctx, m.held); err != nil {
		return nil, err
	}
	m.content = make([]byte, a.Size)
	return m, nil
}

// MakeLink implements vfs.Maker.
func (f *FS) MakeLink(ctx context.Context, dir vfs.Handle, name, target string, a *vfs.Attr) (vfs.Handle, vfs.Attr, error) {
	how := vfs.CreateHow{Type: vfs.TypeSymlink, Target: target}
	if err := how.Check(); err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	key, others, err := f.clearing(ctx, &dir, name, isLink)
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	given := *a
	f.owned(&given)
	now, err := f.put(ctx, key, []byte(target), &given)
	if err == nil {
		err = f.clear(ctx, others)
	}
	return f.handle(key), now, err
}

// clearing is the key of a name that is to be made, if no directory has it, and the keys of objects that give way when it is made: of a
// link that becomes a file, or a file that becomes a link.
func (f *FS) clearing(ctx context.Context, dir *vfs.Handle, name string, k kind) (key string, others []string, err error) {
	in, err := f.dir(dir)
	if err == nil {
		err = errors.Join(ctx.Err(), vfs.CheckName(name))
	}
	if err != nil {
		return "", nil, err
	}
	if key = keyOf(in, name, k); len(f.root+key) > maxKey {
		return "", nil, tooLong(f.root + key)
	}
	if f.fresh.take(in, name) {
		return key, nil, nil
	}
	full, err := f.holds(ctx, keyOf(in, name, isDir))
	switch {
	case err != nil:
		return "", nil, err
	case full:
		return "", nil, vfs.ErrIsDir
	case k == isLink:
		return key, []string{keyOf(in, name, isFile)}, nil
	}
	return key, []string{keyOf(in, name, isLink)}, nil
}

// clear deletes objects.
func (f *FS) clear(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if len(f.root+key) > maxKey {
			continue
		}
		if err := f.delete(ctx, key); err != nil {
			return fmt.Errorf("remove what had the name: %w", err)
		}
	}
	return nil
}

// making is a file that is put by one request.
type making struct {
	f      *FS
	key    string
	attr   vfs.Attr
	others []string
	held   int64 // of the memory

	mu      sync.RWMutex // held alone to change anything but bytes of content
	content []byte
	closed  bool
}

// ReadAt implements vfs.File.
func (m *making) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.use(ctx); err != nil {
		return 0, false, err
	}
	if post != nil {
		*post = vfs.Attr{}
	}
	size := uint64(len(m.content))
	n = copy(p, m.content[min(off, size):])
	return n, off+uint64(n) >= size, nil
}

// use is the error of a call that comes too late. m.mu is held.
func (m *making) use(ctx context.Context) error {
	if m.closed {
		return vfs.ErrInval
	}
	return ctx.Err()
}

// WriteAt implements vfs.File. Nothing is stable before Publish, and needs no Commit either.
func (m *making) WriteAt(ctx context.Context, p []byte, off uint64, _ vfs.Stability, w *vfs.Written) (int, error) {
	*w = vfs.Written{Committed: vfs.FileSync}
	end := off + uint64(len(p))
	if off > maxWhole || end > maxWhole {
		return 0, vfs.ErrFBig
	}
	if err := m.grow(ctx, end); err != nil {
		return 0, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.use(ctx); err != nil {
		return 0, err
	}
	return copy(m.content[off:], p), nil
}

// grow makes room for what is behind the size that was announced.
func (m *making) grow(ctx context.Context, size uint64) error {
	m.mu.RLock()
	enough := size <= uint64(len(m.content))
	m.mu.RUnlock()
	if enough {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.use(ctx); err != nil {
		return err
	}
	if more := int64(size) - int64(len(m.content)); more > 0 {
		m.content = append(m.content, make([]byte, more)...)
	}
	return nil
}

// Commit implements vfs.File: Publish makes all stable.
func (m *making) Commit(ctx context.Context, _, _ uint64, w *vfs.Written) error {
	*w = vfs.Written{Committed: vfs.FileSync}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.use(ctx)
}

// Truncate implements vfs.File.
func (m *making) Truncate(ctx context.Context, size uint64) (vfs.WCC, error) {
	if size > maxWhole {
		return vfs.WCC{}, vfs.ErrFBig
	}
	if err := m.grow(ctx, size); err != nil {
		return vfs.WCC{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.use(ctx); err != nil {
		return vfs.WCC{}, err
	}
	m.content = m.content[:size]
	return vfs.WCC{}, nil
}

// Mark implements vfs.Making: to go on is not worth it.
func (m *making) Mark() string { return "" }

// Keep implements vfs.Making.
func (m *making) Keep() {}

// Resumed implements vfs.Making.
func (m *making) Resumed() uint64 { return 0 }

// Publish implements vfs.Making.
func (m *making) Publish(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.use(ctx); err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	if !m.attr.Has(vfs.MaskMtime) {
		m.attr.Mtime, m.attr.Valid = time.Now(), m.attr.Valid|vfs.MaskMtime
	}
	a, err := m.f.put(ctx, m.key, m.content, &m.attr)
	if err == nil {
		err = m.f.clear(ctx, m.others)
	}
	return m.f.handle(m.key), a, err
}

// Close implements vfs.File.
func (m *making) Close(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return vfs.ErrInval
	}
	m.closed, m.content = true, nil
	m.f.memory.Release(m.held)
	return nil
}
