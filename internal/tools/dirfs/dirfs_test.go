package dirfs

import (
	"testing"
)

// open makes an FS over dir and closes it with the test.
func open(t testing.TB, dir string, o Options) *FS {
	t.Helper()
	f, err := New(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if n := len(f.files); n != 0 {
			t.Errorf("%d files are still open", n)
		}
		if n := len(f.calls) + len(f.lists); n != 0 {
			t.Errorf("%d calls are still at work", n)
		}
	})
	return f
}
