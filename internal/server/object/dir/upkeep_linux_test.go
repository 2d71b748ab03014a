package dir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
)

// TestSweep looks for leftovers by age, and leaves those alone that are in use, or
// are none.
func TestSweep(t *testing.T) {
	path := memory(t)
	s := reopen(t, path, Options{Create: true, Sys: named{osSys{}}})
	put(t, s, "a/b/key", "x")
	now := time.Now()
	for name, age := range map[string]time.Duration{
		"old": time.Hour, "older": 2 * time.Hour, "young": time.Minute,
	} {
		for _, folder := range []string{".", "a", "a/b/=ke"} {
			file := filepath.Join(path, folder, layout.TempMark+name)
			if err := os.WriteFile(file, []byte("part"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, now.Add(-age), now.Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(path, layout.TempMark+"directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	done := make(chan error)
	go func() {
		_, err := s.Put(context.Background(), "a/b/kept", r, object.PutOptions{Size: -1})
		done <- err
	}()
	if _, err := w.Write([]byte("x")); err != nil { // The Put is under way.
		t.Fatal(err)
	}
	if n, more, err := s.Sweep(t.Context(), now.Add(-30*time.Minute)); n != 6 || more || err != nil {
		t.Errorf("the sweep: %d, %v, %v", n, more, err)
	}
	if n, more, err := s.Sweep(t.Context(), now.Add(time.Hour)); n != 3 || more || err != nil {
		t.Errorf("the second sweep: %d, %v, %v", n, more, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the Put that was under way: %v", err)
	}
	if got := content(t, s, "a/b/kept") + content(t, s, "a/b/key"); got != "xx" {
		t.Errorf("the objects are %q", got)
	}
}

// TestSweepIsBounded has more leftovers than one sweep removes.
func TestSweepIsBounded(t *testing.T) {
	path := memory(t)
	s := reopen(t, path, Options{Create: true, NoSync: true})
	put(t, s, "key", "x")
	for i := range MaxSweep + 10 {
		folder := []string{".", "=ke"}[i%2]
		if err := os.WriteFile(filepath.Join(path, folder, fmt.Sprint(layout.TempMark, i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{MaxSweep, 10} {
		if n, more, err := s.Sweep(t.Context(), time.Now().Add(time.Hour)); n != want || more != (want == MaxSweep) || err != nil {
			t.Errorf("%d, %v, %v", n, more, err)
		}
	}
	sound(t, s, path)
}

// TestCheck damages objects in every way, and puts things among them.
func TestCheck(t *testing.T) {
	path := memory(t)
	s := reopen(t, path, Options{Create: true, NoSync: true})
	large := strings.Repeat("0123456789", 20_000)
	damage := map[string]func(file string) error{
		"good/small":  nil,
		"good/large":  nil,
		"bad/content": func(string) error { flip(t, s, path, "bad/content", 100_000); return nil },
		"bad/trailer": func(string) error { flip(t, s, path, "bad/trailer", -30); return nil },
		"bad/magic":   func(string) error { flip(t, s, path, "bad/magic", -64); return nil },
		"bad/cut":     func(f string) error { return os.Truncate(f, 1000) },
		"bad/empty":   func(f string) error { return os.Truncate(f, 0) },
		"bad/longer":  func(f string) error { return os.Truncate(f, 300_000) },
		"bad/moved":   func(f string) error { return os.Rename(s.file(path, "good/small"), f) },
		"bad/link":    func(f string) error { return errors.Join(os.Remove(f), os.Symlink("/etc/passwd", f)) },
		"bad/folder":  func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o700)) },
		"bad/pipe":    func(f string) error { return errors.Join(os.Remove(f), unix.Mkfifo(f, 0o600)) },
	}
	for key := range damage {
		put(t, s, key, large)
	}
	put(t, s, object.ContentKey(object.SumOf([]byte("x"))), "y")
	for key, how := range damage {
		if how == nil {
			continue
		}
		if err := how(s.file(path, key)); err != nil {
			t.Fatal(err)
		}
	}
	strays := []string{"stray", "UPPER", "=st", "good/=sm/wrong-bucket", "good/=sm/=sm", "bad/..x"}
	for _, name := range strays {
		if err := os.WriteFile(filepath.Join(path, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var bad, stray []string
	c, err := s.Check(t.Context(), func(f Finding) {
		if f.Key == "" {
			stray = append(stray, f.Path)
			return
		}
		bad = append(bad, f.Key)
		if !errors.Is(f.Err, object.ErrCorrupted) {
			t.Errorf("%s: %v", f.Key, f.Err)
		}
		if _, content := object.ContentSum(f.Key); content {
			return
		}
		r, _, err := s.Get(t.Context(), f.Key, 0, -1)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			err = errors.Join(err, r.Close())
		}
		if !errors.Is(err, object.ErrCorrupted) {
			t.Errorf("a Get of %s: %v", f.Key, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{object.ContentKey(object.SumOf([]byte("x")))}
	for key, how := range damage {
		if how != nil {
			want = append(want, key)
		}
	}
	slices.Sort(want)
	slices.Sort(bad)
	if !slices.Equal(bad, want) {
		t.Errorf("damaged: %q, want %q", bad, want)
	}
	slices.Sort(strays)
	slices.Sort(stray)
	if !slices.Equal(stray, strays) {
		t.Errorf("strays: %q, want %q", stray, strays)
	}
	if c.Damaged != len(want) || c.Strays != len(strays) || c.Objects < 1 {
		t.Errorf("%+v", c)
	}
	for _, key := range want { // What is damaged can be replaced, or deleted.
		if strings.HasSuffix(key, "folder") {
			continue // which rename cannot replace
		}
		put(t, s, key, "new")
		if got := content(t, s, key); got != "new" {
			t.Errorf("%s is %q", key, got)
		}
		if err := s.Delete(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
}

// TestCheckStops ends a check early.
func TestCheckStops(t *testing.T) {
	s := fresh(t, Options{})
	put(t, s, "key", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Check(ctx, func(f Finding) { t.Error(f) }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, _, err := s.Sweep(ctx, time.Now()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestHostileTree has symbolic links in the place of directories and objects. No
// call follows one, and what they lead to is neither read nor changed.
func TestHostileTree(t *testing.T) {
	path, outside := memory(t), t.TempDir()
	s := reopen(t, path, Options{Create: true, NoSync: true})
	put(t, s, "good/key", "x")
	secret := filepath.Join(outside, "key")
	if err := os.Mkdir(filepath.Join(outside, "=ke"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{secret, filepath.Join(outside, "=ke", "key")} {
		if err := os.WriteFile(file, []byte(strings.Repeat("secret", 100)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(
		os.Symlink(outside, filepath.Join(path, "linked")),
		os.Mkdir(filepath.Join(path, "bucket"), 0o700),
		os.Symlink(filepath.Join(outside, "=ke"), filepath.Join(path, "bucket", "=ke")),
		os.Symlink("..", filepath.Join(path, "up")),
		os.Symlink(secret, filepath.Join(path, "good", "=ke", "kez")),
	); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"linked/key", "linked/new", "bucket/key", "bucket/kew", "up/key", "up/new"} {
		if _, err := s.Put(t.Context(), key, strings.NewReader("evil"), object.PutOptions{Size: 4}); err == nil {
			t.Errorf("%s could be put", key)
		}
		if _, err := s.Stat(t.Context(), key); err == nil {
			t.Errorf("%s can be seen", key)
		}
		if _, _, err := s.Get(t.Context(), key, 0, -1); err == nil {
			t.Errorf("%s can be read", key)
		}
		if err := s.Delete(t.Context(), key); err == nil {
			t.Errorf("%s could be deleted", key)
		}
	}
	if _, _, err := s.Get(t.Context(), "good/kez", 0, -1); !errors.Is(err, object.ErrCorrupted) {
		t.Errorf("a link in the place of an object: %v", err)
	}
	for _, prefix := range []string{"", "linked/", "bucket/", "up/", "good/", "linked/k", "bucket/key"} {
		var all []string
		var end error
		for info, err := range object.All(t.Context(), s, prefix) {
			if all, end = append(all, info.Key), err; err != nil {
				break
			}
		}
		if !errors.Is(end, object.ErrForeign) {
			t.Errorf("listed from %q on: %q, %v", prefix, all, end)
		}
		if only, ok := errors.AsType[*object.ForeignError](end); ok != (prefix == "good/") || ok && (only.Key != "good/kez" || len(all) != 2) {
			t.Errorf("listed from %q on: %q, %v", prefix, all, end)
		}
	}
	put(t, s, "good/kez-", "behind") // it hides nothing but itself
	if page, err := s.List(t.Context(), "good/", "good/kez", 0); err != nil || len(page.Objects) != 1 || page.Objects[0].Key != "good/kez-" {
		t.Errorf("behind the link: %+v, %v", page, err)
	}
	if err := s.Delete(t.Context(), "good/kez-"); err != nil {
		t.Error(err)
	}
	put(t, s, "good/kez", "mine") // replaces the link, not what it leads to
	page, err := s.List(t.Context(), "good/", "", 0)
	if err != nil || len(page.Objects) != 2 || page.Objects[0].Key != "good/key" {
		t.Errorf("listed: %+v, %v", page, err)
	}
	for _, file := range []string{secret, filepath.Join(outside, "=ke", "key")} {
		if b, err := os.ReadFile(file); err != nil || string(b) != strings.Repeat("secret", 100) {
			t.Errorf("%s is %q, %v", file, b, err)
		}
	}
	if list, err := os.ReadDir(outside); err != nil || len(list) != 2 {
		t.Errorf("outside there is %v, %v", list, err)
	}
}
