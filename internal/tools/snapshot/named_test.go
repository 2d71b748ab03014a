package snapshot

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// TestNamed: the beginning of an id names a snapshot if that alone has it, and a whole id that one always.
func TestNamed(t *testing.T) {
	store := object.NewMemory(object.MemoryOptions{})
	for _, key := range []string{
		"a/20261127t230000.000z", "a/20261127t230000.000zz", "a/20261128t010000.000z", "a/20261128t010000.001z", "a/20261128t010000.002z/x",
		"a/2025", "a/20250101t010000.000z", "a/bad", "ab/20270101t010000.000z",
	} {
		put(t, store, rootPrefix+key, []byte("{}"))
	}
	for text, want := range map[string]string{
		"a@20261128t010000.001z":  "a@20261128t010000.001z",
		"a@20261127t230000.000z":  "a@20261127t230000.000z", // though another begins so
		"a@20261127t230000.000zz": "a@20261127t230000.000zz",
		"a@2025":                  "a@2025", // a whole one, too
		"a@20250":                 "a@20250101t010000.000z",
		"a@bad":                   "a@bad",
		"ab@2027":                 "ab@20270101t010000.000z",
		"a@20261127t230000.0":     "several", "a@20261128": "several", "a@20261128t010000.00": "several", "a@2026": "several",
		"a@20261128t010000.002": "none", "a@2027": "none", "a@1999": "none", "c@2026": "none", "a@2026.": "none",
		"a@202": "no name", "a@ba": "no name", "a@": "no name", "a": "no name", "@2026": "no name", "": "no name", "a@2026/": "no name", "a@2026A": "no name",
	} {
		ref, err := Named(t.Context(), store, text)
		got := ref.Text()
		several, is := errors.AsType[*AmbiguousError](err)
		switch {
		case is:
			if got = "several"; len(several.Some) < 2 || several.More || !errors.Is(err, ErrName) {
				t.Error(text, several)
			}
			for _, s := range several.Some {
				if !strings.HasPrefix(s, text) {
					t.Error(text, several.Some)
				}
			}
		case errors.Is(err, ErrName):
			got = "no name"
		case errors.Is(err, ErrNoSnapshot):
			got = "none"
		case err != nil:
			t.Error(text, err)
		}
		if got != want {
			t.Errorf("%q is %s, want %s: %v", text, got, want, err)
		}
		if err != nil && ref.Name != "" {
			t.Errorf("%q: %v, and %s besides", text, err, ref.Text())
		}
	}
	// Whether a whole id is there is not asked, and it is never the beginning of another.
	for _, text := range []string{"a@20261128t010000.002z", "a@20261127t230000.001z"} {
		if ref, err := Named(t.Context(), store, text); err != nil || ref.Text() != text {
			t.Errorf("%s, %v", ref.Text(), err)
		}
		if _, err := Find(t.Context(), store, text); !errors.Is(err, ErrNoSnapshot) {
			t.Error(err)
		}
	}
	for i := range maxCandidates + 1 {
		put(t, store, rootPrefix+"many/"+strings.ToLower(epoch.Add(time.Duration(i)*time.Millisecond).Format(idLayout)), []byte("{}"))
	}
	_, err := Named(t.Context(), store, "many@"+epoch.UTC().Format("2006"))
	if several, is := errors.AsType[*AmbiguousError](err); !is || len(several.Some) != maxCandidates || !several.More || !slices.IsSorted(several.Some) {
		t.Error(err)
	}
}

// TestNamedUnlisted: where a listing fails that says which ids begin so, none is named.
func TestNamedUnlisted(t *testing.T) {
	store := object.NewMemory(object.MemoryOptions{})
	put(t, store, rootPrefix+"a/20261127t230000.000z", []byte("{}"))
	if ref, err := Named(t.Context(), &stuck{store}, "a@2026"); !errors.Is(err, object.ErrForeign) {
		t.Errorf("%s, %v", ref.Text(), err)
	}
}
