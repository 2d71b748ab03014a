package reqlog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// open makes a File in a folder of its own.
func open(t *testing.T, o FileOptions) (*File, string) {
	t.Helper()
	dir := t.TempDir()
	o.Path = filepath.Join(dir, "calls.log")
	f, err := OpenFile(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f, dir
}

// names are the files of a folder.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// eventually waits for what another goroutine does in its own time.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come to be that %s", what)
		}
	}
}

// TestSize fills files, and sees that no line is lost and no file too large, and
// that the oldest go.
func TestSize(t *testing.T) {
	f, dir := open(t, FileOptions{Size: 1, Keep: 2}) // rounded up to a megabyte
	line := []byte(strings.Repeat("x", megabyte/4-1) + "\n")
	for i := range 4 * 5 {
		line[0] = byte('a' + i)
		if n, err := f.Write(line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
		if i%4 == 3 {
			time.Sleep(2 * time.Millisecond) // names are told apart by milliseconds
		}
	}
	eventually(t, "three files are left", func() bool { return len(names(t, dir)) == 3 })
	var all []byte
	for _, name := range names(t, dir) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if len(text) != megabyte {
			t.Errorf("%s has %d bytes", name, len(text))
		}
		for l := range bytes.Lines(text) {
			all = append(all, l[0])
		}
	}
	if string(all) != "ijklmnopqrst" {
		t.Errorf("the lines are %s", all)
	}
	if info, err := os.Stat(filepath.Join(dir, "calls.log")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestDays lets days pass.
func TestDays(t *testing.T) {
	now := time.Now()
	f, dir := open(t, FileOptions{Size: megabyte, Days: 3, Now: func() time.Time { return now }})
	old := filepath.Join(dir, "calls-2001-02-03T04-05-06.000.log")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(line string) {
		t.Helper()
		if _, err := f.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	now = now.Add(rotateAfter - 1)
	write("second\n")
	eventually(t, "the old file is gone", func() bool { _, err := os.Stat(old); return os.IsNotExist(err) })
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("%q", got)
	}
	now = now.Add(1)
	write("third\n")
	text, err := os.ReadFile(filepath.Join(dir, "calls.log"))
	if got := names(t, dir); len(got) != 2 || err != nil || string(text) != "third\n" {
		t.Errorf("%q, %q, %v", got, text, err)
	}
}

// TestContinue opens a file that is there, and rotates it by hand.
func TestContinue(t *testing.T) {
	f, dir := open(t, FileOptions{Size: megabyte})
	path := filepath.Join(dir, "calls.log")
	if err := os.WriteFile(path, []byte("before\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"after\n", "again\n"} {
		if _, err := f.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "before\nafter\nagain\n" {
		t.Errorf("%q, %v", text, err)
	}
	if err := f.Rotate(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// TestOneGoroutine opens a file anew many times, as others put it aside: it costs no
// more than the goroutine that the library does not end.
func TestOneGoroutine(t *testing.T) {
	count := func() int {
		stacks := make([]byte, 1<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "created by gopkg.in/natefinch/lumberjack")
	}
	f, dir := open(t, FileOptions{Size: megabyte})
	before := count()
	for i := range 10 {
		if _, err := f.Write([]byte("line\n")); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "calls.log"), filepath.Join(dir, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	if n := count() - before; n != 1 {
		t.Errorf("%d goroutines", n)
	}
	if got := names(t, dir); len(got) != 10 {
		t.Errorf("%q", got)
	}
}

// TestRefused gives what no log can be made of.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	for _, o := range []FileOptions{
		{Path: "relative", Size: 1}, {Path: dir, Size: 1}, {Path: filepath.Join(dir, "none", "log"), Size: 1}, {Path: "/dev/null", Size: 1},
		{Path: path}, {Path: path, Size: MaxSize + 1}, {Path: path, Size: 1, Keep: -1}, {Path: path, Size: 1, Keep: MaxKeep + 1},
		{Path: path, Size: 1, Days: -1}, {Path: path, Size: 1, Days: MaxDays + 1},
	} {
		if f, err := OpenFile(o); err == nil {
			t.Errorf("%+v: %v", o, f)
		}
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("%q are left", got)
	}
}

// TestCutShort has others cut the file short, and write to it, after it was put aside
// by its size, by hand and by others: every line begins where the file ends.
func TestCutShort(t *testing.T) {
	f, dir := open(t, FileOptions{Size: megabyte})
	path := filepath.Join(dir, "calls.log")
	write := func(line string) {
		t.Helper()
		if _, err := f.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	for what, aside := range map[string]func() error{
		"by size": func() error {
			write(strings.Repeat("x", megabyte-2) + "\n")
			return nil
		},
		"by hand":   f.Rotate,
		"by others": func() error { return errors.Join(os.Rename(path, path+".1"), f.Close()) },
	} {
		write("before\n")
		if err := aside(); err != nil {
			t.Fatal(err)
		}
		write("first\n")
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		write("second\n")
		other, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = other.WriteString("of another\n")
		if err = errors.Join(err, other.Close()); err != nil {
			t.Fatal(err)
		}
		write("third\n")
		if text, err := os.ReadFile(path); err != nil || string(text) != "second\nof another\nthird\n" {
			t.Errorf("%s: %.100q, %v", what, text, err)
		}
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
}
