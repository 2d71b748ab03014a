package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/export"
)

// counter makes randomness that differs from call to call.
func counter() func([]byte) {
	var mu sync.Mutex
	n := byte(0)
	return func(p []byte) {
		mu.Lock()
		defer mu.Unlock()
		n++
		for i := range p {
			p[i] = n + byte(i)
		}
	}
}

func keyPath(t *testing.T) string { return filepath.Join(t.TempDir(), keyName) }

func TestKeyIsKept(t *testing.T) {
	path, random := keyPath(t), counter()
	first, err := loadKey(path, random)
	if err != nil {
		t.Fatal(err)
	}
	if first == (export.Key{}) {
		t.Error("the key is all zeros")
	}
	again, err := loadKey(path, random)
	if err != nil {
		t.Fatal(err)
	}
	if again != first {
		t.Error("the key has changed")
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 || info.Size() != int64(keySize) {
		t.Errorf("mode %v, %d bytes", info.Mode(), info.Size())
	}
	if left, err := filepath.Glob(path + "?*"); err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// TestKeyMadeOnce makes the key from many sides at once: all have the same.
func TestKeyMadeOnce(t *testing.T) {
	path, random := keyPath(t), counter()
	var wg sync.WaitGroup
	keys := make([]export.Key, 16)
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = loadKey(path, random); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if k != keys[0] {
			t.Fatal("two keys")
		}
	}
}

// TestHostileKey refuses what is no key file of ours, and leaves it as it is.
func TestHostileKey(t *testing.T) {
	good := keyPath(t)
	if _, err := loadKey(good, counter()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	flip := func(i int) []byte {
		c := append([]byte(nil), b...)
		c[i] ^= 1
		return c
	}
	for what, x := range map[string]struct {
		data []byte
		mode os.FileMode
		want string
	}{
		"empty":              {nil, 0o600, "damaged"},
		"cut":                {b[:len(b)-1], 0o600, "damaged"},
		"too long":           {append(append([]byte(nil), b...), 0), 0o600, "damaged"},
		"huge":               {make([]byte, 1<<20), 0o600, "damaged"},
		"other magic":        {flip(0), 0o600, "damaged"},
		"a later version":    {flip(7), 0o600, "version"},
		"a flipped key bit":  {flip(8), 0o600, "damaged"},
		"a flipped sum bit":  {flip(31), 0o600, "damaged"},
		"readable by others": {b, 0o644, "open to others"},
		"writable by others": {b, 0o602, "open to others"},
	} {
		path := keyPath(t)
		if err := os.WriteFile(path, x.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, x.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := loadKey(path, counter()); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", what, err, x.want)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != string(x.data) {
			t.Errorf("%s: the file was changed (%v)", what, err)
		}
	}
}

// TestKeyIsNoFile refuses a link and a folder.
func TestKeyIsNoFile(t *testing.T) {
	good := keyPath(t)
	if _, err := loadKey(good, counter()); err != nil {
		t.Fatal(err)
	}
	for what, make := range map[string]func(string) error{
		"link":   func(p string) error { return os.Symlink(good, p) },
		"folder": func(p string) error { return os.Mkdir(p, 0o700) },
	} {
		path := keyPath(t)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if _, err := loadKey(path, counter()); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add([]byte(keyMagic))
	f.Add(make([]byte, keySize))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := parseKey("x", b); err == nil && len(b) != keySize {
			t.Errorf("%d bytes are taken for a key", len(b))
		}
	})
}

func TestStateDirectory(t *testing.T) {
	tree, base := t.TempDir(), filepath.Join(t.TempDir(), "a", "b")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(tree, link); err != nil {
		t.Fatal(err)
	}
	c := stateOf(tree, base)
	dir, key, err := c.state()
	if err != nil {
		t.Fatal(err)
	}
	c.c.Exports[0].Dir = link
	if d, k, err := c.state(); err != nil || d != dir || k != key {
		t.Errorf("by way of a link: %s, %v; want %s", d, err, dir)
	}
	c.c.Exports[0].Dir = t.TempDir()
	if d, k, err := c.state(); err != nil || d == dir || k == key {
		t.Errorf("another tree has the same state (%v)", err)
	}
	for p := dir; p != filepath.Dir(filepath.Dir(base)); p = filepath.Dir(p) {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", p, info.Mode(), err)
		}
	}
}

// TestStateWithinTree refuses a state directory that clients could reach, before
// it makes anything.
func TestStateWithinTree(t *testing.T) {
	tree := t.TempDir()
	inside := filepath.Join(tree, "inside")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(inside, link); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{tree, inside, filepath.Join(tree, "new", "folder"), link, filepath.Join(link, "new")} {
		c := stateOf(tree, base)
		if err := c.privateOutside(c.c); err == nil || !strings.Contains(err.Error(), "lies within") {
			t.Errorf("%s: %v", base, err)
		}
	}
	entries, err := os.ReadDir(tree)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d entries in the tree, %v", len(entries), err)
	}
}

// TestStateOpenToOthers refuses a folder that others may have written to.
func TestStateOpenToOthers(t *testing.T) {
	c := stateOf(t.TempDir(), t.TempDir())
	dir, _, err := c.state()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.state(); err == nil || !strings.Contains(err.Error(), "open to others") {
		t.Errorf("%v", err)
	}
}

// stateOf is a server of dir that has not begun.
func stateOf(dir, base string) *daemon {
	c := confOf(dir, base)
	return &daemon{c: &c, w: World{Rand: counter()}, log: slog.New(slog.DiscardHandler)}
}
