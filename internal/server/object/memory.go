package object

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// memoryChunk is how many bytes Memory reads at a time, and so how far it may exceed its
// bounds.
const memoryChunk = 32 << 10

// MemoryOptions are the options of [NewMemory]. The zero value has no bounds.
type MemoryOptions struct {
	Now     func() time.Time // nil: time.Now
	MaxSize int64            // of one object; more is ErrTooLarge. 0: no bound
	Space   int64            // of all objects; more is ErrNoSpace. 0: no bound
}

// Memory is a Store in memory: the fake for tests, and the model that drivers are
// compared with. Nothing survives the process.
type Memory struct {
	o MemoryOptions

	mu      sync.RWMutex
	closed  bool
	used    int64
	objects map[string]memoryObject
}

// memoryObject is an object; its content is never changed.
type memoryObject struct {
	info    Info
	content []byte
}

// NewMemory returns an empty store.
func NewMemory(o MemoryOptions) *Memory {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Memory{o: o, objects: make(map[string]memoryObject)}
}

// Put implements [Store].
func (m *Memory) Put(ctx context.Context, key string, r io.Reader, o PutOptions) (Info, error) {
	info, err := m.put(ctx, key, r, o)
	return info, Fail("put", key, err)
}

func (m *Memory) put(ctx context.Context, key string, r io.Reader, o PutOptions) (Info, error) {
	if err := CheckKey(key); err != nil {
		return Info{}, err
	}
	if m.o.MaxSize > 0 && o.Size > m.o.MaxSize {
		return Info{}, ErrTooLarge
	}
	_, err := m.find(ctx, key)
	switch {
	case err == nil && o.IfAbsent:
		return Info{}, ErrExist
	case err != nil && !errors.Is(err, ErrNotExist):
		return Info{}, err
	}
	content, err := m.read(ctx, r, o.Size)
	if err != nil {
		return Info{}, err
	}
	info := Info{Key: key, Size: int64(len(content)), Sum: SumOf(content)}
	if err := o.Check(info.Size, info.Sum); err != nil {
		return Info{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old, exists := m.objects[key]
	switch grown := m.used + info.Size - old.info.Size; {
	case m.closed:
		return Info{}, ErrClosed
	case exists && o.IfAbsent:
		return Info{}, ErrExist
	case m.o.Space > 0 && grown > m.o.Space:
		return Info{}, ErrNoSpace
	default:
		m.used = grown
	}
	info.ModTime = m.o.Now()
	m.objects[key] = memoryObject{info, content}
	return info, nil
}

// read reads r to its end, or to one byte beyond the bound.
func (m *Memory) read(ctx context.Context, r io.Reader, size int64) ([]byte, error) {
	var all bytes.Buffer
	for chunk := make([]byte, memoryChunk); ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := r.Read(chunk)
		all.Write(chunk[:n])
		switch got := int64(all.Len()); {
		case size >= 0 && got > size:
			return nil, ErrMismatch
		case m.o.MaxSize > 0 && got > m.o.MaxSize:
			return nil, ErrTooLarge
		case m.o.Space > 0 && got > m.o.Space:
			return nil, ErrNoSpace
		case err == io.EOF:
			return all.Bytes(), nil
		case err != nil:
			return nil, err
		}
	}
}

func (m *Memory) find(ctx context.Context, key string) (memoryObject, error) {
	if err := CheckKey(key); err != nil {
		return memoryObject{}, err
	}
	if err := ctx.Err(); err != nil {
		return memoryObject{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return memoryObject{}, ErrClosed
	}
	o, ok := m.objects[key]
	if !ok {
		return memoryObject{}, ErrNotExist
	}
	return o, nil
}

// Get implements [Store].
func (m *Memory) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, Info, error) {
	o, err := m.find(ctx, key)
	if err != nil {
		return nil, Info{}, Fail("get", key, err)
	}
	n, err = Range(o.info.Size, off, n)
	if err != nil {
		return nil, Info{}, Fail("get", key, err)
	}
	part := o.content[off : off+n]
	whole := off == 0 && n == o.info.Size
	return &memoryReader{ctx: ctx, r: bytes.NewReader(part), key: key, damaged: whole && sha256.Sum256(part) != o.info.Sum}, o.info, nil
}

// memoryReader is what Get returns.
type memoryReader struct {
	ctx     context.Context
	r       *bytes.Reader
	key     string
	damaged bool // the bytes are not those of the sum
	closed  bool
}

func (r *memoryReader) Read(p []byte) (int, error) {
	if r.closed {
		return 0, Fail("get", r.key, ErrClosed)
	}
	if err := r.ctx.Err(); err != nil {
		return 0, Fail("get", r.key, err)
	}
	n, err := r.r.Read(p)
	if errors.Is(err, io.EOF) && r.damaged {
		err = Fail("get", r.key, ErrCorrupted)
	}
	return n, err
}

func (r *memoryReader) Close() error {
	r.closed = true
	return nil
}

// Stat implements [Store].
func (m *Memory) Stat(ctx context.Context, key string) (Info, error) {
	o, err := m.find(ctx, key)
	return o.info, Fail("stat", key, err)
}

// List implements [Store].
func (m *Memory) List(ctx context.Context, prefix, after string, limit int) (Page, error) {
	limit, err := CheckList(prefix, after, limit)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Page{}, Fail("list", prefix, err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return Page{}, Fail("list", prefix, ErrClosed)
	}
	var p Page
	for _, key := range slices.Sorted(maps.Keys(m.objects)) {
		if !strings.HasPrefix(key, prefix) || key <= after {
			continue
		}
		if len(p.Objects) == limit {
			p.More = true
			break
		}
		info := m.objects[key].info
		info.Sum = Sum{}
		p.Objects = append(p.Objects, info)
	}
	return p, nil
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, key string) error {
	_, err := m.find(ctx, key)
	if errors.Is(err, ErrNotExist) {
		return nil
	}
	if err != nil {
		return Fail("delete", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return Fail("delete", key, ErrClosed)
	}
	m.used -= m.objects[key].info.Size
	delete(m.objects, key)
	return nil
}

// Close implements [Store].
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Corrupt flips a bit of a stored object at byte off, as a bad disk would, and
// reports whether there is such a byte.
func (m *Memory) Corrupt(key string, off int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key]
	if !ok || off < 0 || off >= o.info.Size {
		return false
	}
	o.content = bytes.Clone(o.content)
	o.content[off] ^= 1
	m.objects[key] = o
	return true
}
