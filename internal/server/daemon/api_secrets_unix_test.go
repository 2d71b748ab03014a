//go:build unix

package daemon

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// TestPipesForSecrets does not wait for what a pipe never says.
func TestPipesForSecrets(t *testing.T) {
	pipe, file := filepath.Join(t.TempDir(), "pipe"), filepath.Join(t.TempDir(), "file")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	writeSecret(t, file, "")
	for what, a := range map[string]config.API{
		"callers": {Callers: pipe}, "a certificate": {TLSCert: pipe, TLSKey: file},
	} {
		if _, err := readSecrets(&a); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := loadKey(pipe, counter()); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("the key of the handles: %v", err)
	}
	if _, err := config.Load(config.Flags{File: pipe}); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a configuration: %v", err)
	}
}
