package config

import (
	"os"
	"testing"
)

func TestDefaultStateDir(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/somewhere")
	dir, err := DefaultStateDir()
	want := "/somewhere/nfsbox"
	if os.Geteuid() == 0 {
		want = "/var/lib/nfsbox"
	}
	if err != nil || dir != want {
		t.Errorf("%s, %v; want %s", dir, err, want)
	}
}
