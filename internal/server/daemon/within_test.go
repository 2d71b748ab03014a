package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// TestNothingOfOursWithin refuses whatever clients could read or replace, also by a
// link that lies in the tree, and before anything is made there.
func TestNothingOfOursWithin(t *testing.T) {
	tree, outside := t.TempDir(), t.TempDir()
	real := filepath.Join(outside, "real")
	writeSecret(t, real, "")
	link, chain := filepath.Join(tree, "link"), filepath.Join(outside, "chain")
	for at, to := range map[string]string{link: real, chain: link, filepath.Join(outside, "dir"): tree} {
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	for what, set := range map[string]func(c *config.Config, w *World, path string){
		"the callers":             func(c *config.Config, _ *World, path string) { c.API.Callers = path },
		"the key":                 func(c *config.Config, _ *World, path string) { c.API.TLSKey, c.API.TLSCert = path, real },
		"the certificate":         func(c *config.Config, _ *World, path string) { c.API.TLSKey, c.API.TLSCert = real, path },
		"the authorities":         func(c *config.Config, _ *World, path string) { c.API.TLSClientCA = path },
		"the log":                 func(c *config.Config, _ *World, path string) { c.Log.File = path },
		"the log of requests":     func(c *config.Config, _ *World, path string) { c.Log.Requests = path },
		"the configuration":       func(_ *config.Config, w *World, path string) { w.File = path },
		"the place for local I/O": func(c *config.Config, _ *World, path string) { c.LocalIO, c.LocalIODir = config.LocalIOOn, path },
	} {
		for _, path := range []string{
			link, chain, filepath.Join(tree, "new"), filepath.Join(outside, "dir", "new"), outside + "/dir/../" + filepath.Base(tree) + "/new",
		} {
			c, w := apiConfig(tree, t.TempDir()), World{Rand: counter()}
			if set(&c, &w, path); c.API.TLSClientCA != "" {
				c.API.Callers, c.API.TLSKey, c.API.TLSCert = real, real, real
			}
			err := Serve(t.Context(), c, w, func(Running) error { return context.Canceled })
			if err == nil || !strings.Contains(err.Error(), "lies within") {
				t.Errorf("%s at %s: %v", what, path, err)
			}
		}
	}
	if left, err := os.ReadDir(tree); err != nil || len(left) != 1 {
		t.Errorf("left in the tree: %v, %v", left, err)
	}
}
