package config

import (
	"fmt"
	"os"
	"path/filepath"
)

// DefaultStateDir is where state lives by default:
// /var/lib/nfsbox for root, else nfsbox in $XDG_STATE_HOME or in ~/.local/state
// (the XDG base directory specification).
func DefaultStateDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/nfsbox", nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "nfsbox"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for the state: %w: name a directory with --state-dir, or set XDG_STATE_HOME", err)
	}
	return filepath.Join(home, ".local", "state", "nfsbox"), nil
}
