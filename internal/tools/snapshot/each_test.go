package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// TestEach: what cannot be read is yielded under the name of its key, and the others follow.
func TestEach(t *testing.T) {
	store := object.NewMemory(object.MemoryOptions{})
	take(t, mem(t), store, Meta{Name: "a", Complete: true})
	take(t, mem(t), store, Meta{Name: "ab"})
	put(t, store, rootPrefix+"a/bad", []byte("{}\n"))
	put(t, store, partialPrefix+"ab", []byte("{}\n"))
	put(t, store, partialPrefix+"abc", []byte("{}\n"))
	list := func(name string) (all []string) {
		for ref, err := range Each(t.Context(), store, name) {
			if err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(ref.Text(), " ", err == nil))
		}
		return all
	}
	id := strings.ToLower(epoch.Format(idLayout))
	for name, want := range map[string][]string{
		"":   {"a@" + id + " true", "a@bad false", "ab@" + id + " true", "partial ab false", "partial abc false"},
		"a":  {"a@" + id + " true", "a@bad false"},
		"ab": {"ab@" + id + " true", "partial ab false"},
		"x":  nil,
	} {
		if got := list(name); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	for _, err := range Each(t.Context(), store, "A") {
		if !errors.Is(err, ErrName) {
			t.Error(err)
		}
	}
}
