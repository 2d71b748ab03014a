package bucketfs

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nfsbox/nfsbox/vfs"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"plain name (1).txt": "plain name (1).txt",
		"100%":               "100%",
		"100%25":             "100%25",
		"a%41":               "a%41",
		"%C3%A9":             "%C3%A9",
		"é":                  "é",
		"line\nbreak":        "line%0Abreak",
		"line%0Abreak":       "line%250Abreak",
		"line%250Abreak":     "line%25250Abreak",
		"100%\n":             "100%25%0A",
		"\xff\xc3":           "%FF%C3",
		"dots...":            "dots...",
		"\uffff":             "%EF%BF%BF",
		"a.rclonelink":       "a%2Erclonelink",
		".rclonelink":        "%2Erclonelink",
		"a%2Erclonelink":     "a%252Erclonelink",
		"a.rclonelink.b":     "a.rclonelink.b",
	} {
		if got := keyOf("d/", name, isFile); got != "d/"+want {
			t.Errorf("the file %q: %q, want %q", name, got, want)
		}
		for _, k := range []kind{isFile, isLink, isDir} {
			if back, ok := nameOf("d/", keyOf("d/", name, k)); !ok || back != name {
				t.Errorf("%q comes back as %q (%v)", name, back, ok)
			}
		}
	}
	for _, key := range []string{"d//", "d/./", "d/../", "d/.", "d/..", "d/.rclonelink", "d/a.rclonelink/", "d/a.rclonelink.rclonelink", "d/...rclonelink", "d/a\n", "d/\xff", "d/%00", "d/" + strings.Repeat("a", 256)} {
		if name, ok := nameOf("d/", key); ok {
			t.Errorf("the key %q stands for %q", key, name)
		}
	}
}

// FuzzNames: no two names have one key, and no two keys one name.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"a", "%25", "%2525%0A", "x.rclonelink", "\xff%", ".", "%2F", "%2Erclonelink"} {
		f.Add(seed, uint8(0))
	}
	f.Fuzz(func(t *testing.T, s string, n uint8) {
		k := kind(n % 3)
		if vfs.CheckName(s) == nil {
			key := keyOf("", s, k)
			if !utf8.ValidString(key) || strings.ContainsAny(strings.TrimSuffix(key, "/"), "/\x00\n\r\t\x7f") || kindOf(key) != k {
				t.Fatalf("%q has the key %q", s, key)
			}
			if back, ok := nameOf("", key); !ok || back != s {
				t.Fatalf("%q has the key %q, which is %q (%v)", s, key, back, ok)
			}
		}
		key := s + [...]string{"", linkSuffix, "/"}[k]
		if name, ok := nameOf("", key); ok && (keyOf("", name, kindOf(key)) != key || vfs.CheckName(name) != nil) {
			t.Fatalf("the key %q stands for %q, which has %q", key, name, keyOf("", name, kindOf(key)))
		}
	})
}
