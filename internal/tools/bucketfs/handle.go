package bucketfs

import (
	"container/list"
	"crypto/sha256"
	"strings"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// A handle is a byte, which says what follows, and a key below the root, or the hash of one.
const (
	tagKey  = 'k'
	tagHash = 'h'
	hashLen = 24
)

// handle is that of a key.
func (f *FS) handle(key string) vfs.Handle {
	b := append(make([]byte, 0, vfs.MaxHandleV3), tagKey)
	if b = append(b, key...); len(b) > vfs.MaxHandleV3 {
		h := hashOf(key)
		f.long.put(h, key)
		b = append(append(b[:0], tagHash), h[:]...)
	}
	h, err := vfs.MakeHandle(b)
	if err != nil {
		panic(err) // it has a byte, and not too many
	}
	return h
}

func hashOf(key string) [hashLen]byte {
	sum := sha256.Sum256([]byte(key))
	return [hashLen]byte(sum[:])
}

// key is what a handle stands for.
func (f *FS) key(h *vfs.Handle) (string, error) {
	b := h.Bytes()
	if len(b) == 0 {
		return "", vfs.ErrBadHandle
	}
	rest := string(b[1:])
	switch b[0] {
	case tagKey:
		if !isKey(rest) {
			return "", vfs.ErrBadHandle
		}
		return rest, nil
	case tagHash:
		if len(rest) != hashLen {
			return "", vfs.ErrBadHandle
		}
		key, ok := f.long.get([hashLen]byte(b[1:]))
		if !ok {
			return "", vfs.ErrStale
		}
		return key, nil
	}
	return "", vfs.ErrBadHandle
}

// isKey reports whether all parts of a key stand for names.
func isKey(key string) bool {
	for dir := ""; dir != key; {
		end := strings.IndexByte(key[len(dir):], '/') + 1
		if end == 0 {
			_, ok := nameOf(dir, key)
			return ok
		}
		next := key[:len(dir)+end]
		if _, ok := nameOf(dir, next); !ok {
			return false
		}
		dir = next
	}
	return true
}

// dir is the key of a directory.
func (f *FS) dir(h *vfs.Handle) (string, error) {
	key, err := f.key(h)
	if err == nil && kindOf(key) != isDir {
		err = vfs.ErrNotDir
	}
	return key, err
}

// table remembers up to a number of things. The one that was used longest ago gives way.
type table[K comparable, V any] struct {
	mu    sync.Mutex
	most  int
	of    map[K]*list.Element
	order *list.List // the one that was used last is at the front
}

type row[K comparable, V any] struct {
	k K
	v V
}

func newTable[K comparable, V any](most int) *table[K, V] {
	return &table[K, V]{most: most, of: make(map[K]*list.Element), order: list.New()}
}

func (t *table[K, V]) put(k K, v V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.of[k]; e != nil {
		e.Value.(*row[K, V]).v = v
		t.order.MoveToFront(e)
		return
	}
	if len(t.of) >= t.most {
		last := t.order.Back()
		delete(t.of, t.order.Remove(last).(*row[K, V]).k)
	}
	t.of[k] = t.order.PushFront(&row[K, V]{k, v})
}

func (t *table[K, V]) get(k K) (v V, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.of[k]
	if e == nil {
		return v, false
	}
	t.order.MoveToFront(e)
	return e.Value.(*row[K, V]).v, true
}

func (t *table[K, V]) drop(k K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.of[k]; e != nil {
		delete(t.of, k)
		t.order.Remove(e)
	}
}
