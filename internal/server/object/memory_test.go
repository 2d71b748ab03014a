package object_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/objecttest"
)

func TestMemory(t *testing.T) {
	objecttest.Run(t, objecttest.Config{
		New: func(*testing.T) object.Store { return object.NewMemory(object.MemoryOptions{}) },
		Corrupt: func(t *testing.T, s object.Store, key string) {
			if !s.(*object.Memory).Corrupt(key, 0) {
				t.Fatalf("%s has no byte", key)
			}
		},
	})
}

// TestMemoryBounds fills a fake that has bounds.
func TestMemoryBounds(t *testing.T) {
	m := object.NewMemory(object.MemoryOptions{MaxSize: 100, Space: 150})
	put := func(key string, size, announced int64) error {
		_, err := m.Put(t.Context(), key, io.LimitReader(strings.NewReader(strings.Repeat("x", 1000)), size), object.PutOptions{Size: announced})
		return err
	}
	for _, c := range []struct {
		key             string
		size, announced int64
		want            error
	}{
		{"a", 100, 100, nil},
		{"b", 101, 101, object.ErrTooLarge},
		{"b", 101, -1, object.ErrTooLarge},
		{"b", 51, -1, object.ErrNoSpace},
		{"b", 50, -1, nil},
		{"a", 100, -1, nil}, // in its own place
		{"c", 1, -1, object.ErrNoSpace},
		{"a", 90, -1, nil},
		{"c", 10, -1, nil},
	} {
		if err := put(c.key, c.size, c.announced); !errors.Is(err, c.want) {
			t.Fatalf("%+v: %v", c, err)
		}
	}
	if err := m.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := put("d", 90, -1); err != nil {
		t.Errorf("in the room of a deleted object: %v", err)
	}
	if m.Corrupt("d", 90) || m.Corrupt("none", 0) || !m.Corrupt("d", 89) {
		t.Error("what cannot be corrupted was, or the other way round")
	}
	r, _, err := m.Get(t.Context(), "d", 80, -1) // of a part nobody knows
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || bytes.Equal(b, []byte("xxxxxxxxxx")) {
		t.Errorf("%q, %v", b, err)
	}
}
