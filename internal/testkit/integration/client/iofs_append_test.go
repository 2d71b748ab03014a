package client

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// TestIofsAppend: what several programs' worth of Files append to one log, by trees of
// their own over one client, is all there, line by line and each one's in its order.
func TestIofsAppend(t *testing.T) {
	const writers, lines = 8, 50
	first, c := mounted(t, memfs.New(memfs.Options{Mode: 0o777}), "")
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() { errs[i] = appendLines(t, first, c.FS(), i, lines) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	data, err := first.ReadFile("log")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.SplitAfter(string(data), "\n")
	got = got[:len(got)-1]
	if len(got) != writers*lines {
		t.Errorf("%d lines of %d", len(got), writers*lines)
	}
	for i := range writers {
		mine := slices.DeleteFunc(slices.Clone(got), func(l string) bool { return !strings.HasPrefix(l, fmt.Sprint(i, " ")) })
		for n, line := range mine {
			if line != logLine(i, n) {
				t.Fatalf("line %d of writer %d: %q", n, i, line)
			}
		}
	}
}

func logLine(writer, n int) string {
	return fmt.Sprint(writer, " ", n, strings.Repeat(".", writer*n), "\n")
}

// appendLines is one writer: every second of them has a tree of its own, and every
// fourth writes to the disk at once.
func appendLines(t *testing.T, tree *iofs.FS, fs vfs.FS, i, lines int) (err error) {
	flag := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if i%2 == 1 {
		if tree, err = iofs.Root(t.Context(), fs); err != nil {
			return err
		}
	}
	if i%4 == 0 {
		flag |= os.O_SYNC
	}
	log, err := tree.OpenFile("log", flag, 0o644)
	if err != nil {
		return err
	}
	for n := range lines {
		if _, err := log.WriteString(logLine(i, n)); err != nil {
			return errors.Join(err, log.Close())
		}
	}
	return log.Close()
}
