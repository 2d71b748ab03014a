package object

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"
)

func TestCheckKey(t *testing.T) {
	segment := strings.Repeat("s", MaxSegment)
	for _, key := range []string{
		"a", "0", "a/b", "a.b", "a-b_c.d", "a..b", "a.", "a-", "sha256/00ff", segment, segment + "/" + segment,
		strings.Repeat("d/", MaxSegments-1) + "d",
	} {
		if err := CheckKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for key, why := range map[string]string{
		"": "empty", "/": "empty", "/a": "empty", "a/": "empty", "a//b": "empty",
		".": "begins", "..": "begins", "a/../b": "begins", ".a": "begins", "-a": "begins", "a/_": "begins",
		"A": "contains", "a b": "contains", "a\x00": "contains", "=": "contains", "ä": "contains", "a\\b": "contains",
		segment + "s":                           "longer than 128",
		strings.Repeat("d/", MaxSegments) + "d": "more than 16",
		strings.Repeat(segment+"/", 4) + "x":    "longer than 512",
	} {
		err := CheckKey(key)
		if !errors.Is(err, ErrKey) || !errors.Is(err, fs.ErrInvalid) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", key, err, why)
		}
	}
	for _, prefix := range []string{"", "a", "a/", "a/b", "a/b/"} {
		if err := CheckPrefix(prefix); err != nil {
			t.Errorf("the prefix %q: %v", prefix, err)
		}
	}
}

// FuzzCheckKey wants a key to be a clean relative path of safe names, whose
// beginnings are all prefixes.
func FuzzCheckKey(f *testing.F) {
	for _, seed := range []string{"", "a/b", "../a", "a//b", "a/./b", ".a", "sha256/00", "a\x00", strings.Repeat("a/", 20)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		err := CheckKey(key)
		if err != nil {
			if !errors.Is(err, ErrKey) || len(err.Error()) > 200 {
				t.Fatalf("%q: %v", key, err)
			}
			return
		}
		if !fs.ValidPath(key) || path.Clean(key) != key || key == "." || strings.ToLower(key) != key || len(key) > MaxKey {
			t.Fatalf("%q is let through", key)
		}
		for _, segment := range strings.Split(key, "/") {
			if segment == "" || strings.Trim(segment[:1], ".-_") == "" || len(segment) > MaxSegment || strings.ContainsAny(segment, "=:\\ \x00") {
				t.Fatalf("%q is let through", key)
			}
		}
		for n := range len(key) + 1 {
			if err := CheckPrefix(key[:n]); err != nil {
				t.Fatalf("%q is a key, and its beginning %q no prefix: %v", key, key[:n], err)
			}
		}
	})
}

func TestSum(t *testing.T) {
	sum := SumOf([]byte("abc"))
	const digits = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-4
	if sum.String() != digits || sum.IsZero() || !(Sum{}).IsZero() {
		t.Errorf("%v", sum)
	}
	if got, err := ParseSum(digits); err != nil || got != sum {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", digits[1:], digits + "0", "g" + digits[1:], strings.ToUpper(digits)} {
		if got, err := ParseSum(bad); err == nil || !got.IsZero() {
			t.Errorf("%q: %v", bad, got)
		}
	}
	key := ContentKey(sum)
	if err := CheckKey(key); err != nil || key != "sha256/"+digits {
		t.Errorf("%s: %v", key, err)
	}
	if got, ok := ContentSum(key); !ok || got != sum {
		t.Errorf("%v, %v", got, ok)
	}
	for _, other := range []string{"sha256/00", "sha256", digits, "packs/" + digits, key + "/x"} {
		if _, ok := ContentSum(other); ok {
			t.Errorf("%q is taken for a content's key", other)
		}
	}
}

func TestErrors(t *testing.T) {
	for err, wide := range map[error]error{ErrNotExist: fs.ErrNotExist, ErrExist: fs.ErrExist, ErrKey: fs.ErrInvalid, ErrClosed: fs.ErrClosed} {
		wrapped := Fail("put", "k", err)
		if !errors.Is(wrapped, err) || !errors.Is(wrapped, wide) || errors.Is(wrapped, ErrBusy) {
			t.Errorf("%v", wrapped)
		}
	}
	if Fail("put", "k", nil) != nil {
		t.Error("no failure is one")
	}
	if got := Fail("put", "k", Fail("put", "k", ErrBusy)).Error(); got != `put "k": object: the store is busy` {
		t.Error(got)
	}
	if got := Fail("put", strings.Repeat("\n", 1000), ErrKey).Error(); len(got) > 300 {
		t.Errorf("a message of %d bytes", len(got))
	}
}
