//go:build linux

package fusefs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// TestAppends: what is appended by several goes to the end, whatever the kernel believes the size to be.
func TestAppends(t *testing.T) {
	need.Fuse(t)
	served := t.TempDir()
	url := serve(t, served)
	one, two := mount(t, url, Options{}), mount(t, url, Options{})
	where := []string{one, served, two}
	for _, dir := range where { // entries and attributes are cached from now on
		_, err := os.ReadDir(dir)
		expect.OK(t, err)
	}
	want := ""
	put := func(flags int, dir, line string) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(dir, "log"), flags, 0o666)
		expect.OK(t, err)
		_, err = f.WriteString(line)
		expect.OK(t, err)
		expect.OK(t, f.Close())
	}
	for i := range 12 {
		line := fmt.Sprintf("line %d\n", i)
		put(os.O_WRONLY|os.O_APPEND|os.O_CREATE, where[i%len(where)], line)
		want += line
	}
	for _, dir := range where {
		expect.Content(t, filepath.Join(dir, "log"), want)
	}

	// One that stays open goes on where others have been, also after a truncation.
	f, err := os.OpenFile(filepath.Join(one, "log"), os.O_RDWR|os.O_APPEND, 0)
	expect.OK(t, err)
	put(os.O_WRONLY|os.O_APPEND, served, "between\n")
	_, err = f.WriteString("open\n")
	expect.OK(t, err)
	expect.OK(t, f.Sync())
	expect.OK(t, os.Truncate(filepath.Join(served, "log"), 5))
	_, err = f.WriteString("after\n")
	expect.OK(t, err)
	expect.OK(t, f.Close())
	for _, dir := range where {
		expect.Content(t, filepath.Join(dir, "log"), "line after\n")
	}
}
