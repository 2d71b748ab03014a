package reqlog

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// limitFiles lets no file grow beyond n bytes, as if the disk were full, until the
// result is called.
func limitFiles(t *testing.T, n uint64) (undo func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	set := func(l syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
			t.Fatal(err)
		}
	}
	set(syscall.Rlimit{Cur: n, Max: before.Max})
	return func() {
		set(before)
		signal.Reset(syscall.SIGXFSZ)
	}
}

// TestTornLine has the disk fill up in the middle of a line: what is written when
// there is room again does not stand on that line.
func TestTornLine(t *testing.T) {
	f, dir := open(t, FileOptions{Size: megabyte})
	write := func(line string) error {
		_, err := f.Write([]byte(line))
		return err
	}
	if err := write("first\n"); err != nil {
		t.Fatal(err)
	}
	undo := limitFiles(t, uint64(len("first\nsec")))
	torn, lost := write("second\n"), write("third\n")
	undo()
	if torn == nil || lost == nil {
		t.Errorf("%v, %v: no error", torn, lost)
	}
	for _, line := range []string{"fourth\n", "fifth\n"} {
		if err := write(line); err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "calls.log")); err != nil || string(text) != "first\nsec\nfourth\nfifth\n" {
		t.Errorf("%q, %v", text, err)
	}
}
