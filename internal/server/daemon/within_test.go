package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/daemon/paths"
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

// TestReachedBy: of the exports whose directories hold another one's, the nearest whose
// rules give more than the other's is named, whichever is as strict between them.
func TestReachedBy(t *testing.T) {
	few := []export.Rule{{Match: "10.0.0.1"}}
	type ex struct {
		dir     string
		clients []export.Rule
	}
	for _, x := range []struct {
		what    string
		exports map[string]ex // "/in" is the one that is asked for
		want    string
	}{
		{"below one for all", map[string]ex{"/out": {"/srv", nil}, "/in": {"/srv/a/b", few}}, "/out"},
		{"below one for as few", map[string]ex{"/out": {"/srv", few}, "/in": {"/srv/a", few}}, ""},
		{"below one for fewer", map[string]ex{"/out": {"/srv", few}, "/in": {"/srv/a", nil}}, ""},
		{"beside one for all", map[string]ex{"/out": {"/srv", nil}, "/in": {"/srvs", few}}, ""},
		{"above one for all", map[string]ex{"/out": {"/srv/a", nil}, "/in": {"/srv", few}}, ""},
		{"the same directory", map[string]ex{"/out": {"/srv", nil}, "/in": {"/srv", few}}, "/out"},
		{"one as strict between", map[string]ex{"/out": {"/srv", nil}, "/mid": {"/srv/a", few}, "/in": {"/srv/a/b", few}}, "/out"},
		{"two for all", map[string]ex{"/out": {"/srv", nil}, "/mid": {"/srv/a", nil}, "/in": {"/srv/a/b", few}}, "/mid"},
		{"more rights", map[string]ex{"/out": {"/srv", nil}, "/in": {"/srv/a", []export.Rule{{Match: "*", ReadOnly: true}}}}, "/out"},
	} {
		var all []export.Export
		var trees []paths.Tree
		for name, e := range x.exports {
			all = append(all, export.Export{Path: name, FS: &unopened{}, Clients: e.clients})
			trees = append(trees, paths.Tree{Name: name, Dir: e.dir})
		}
		table, err := export.New(export.Options{}, all...)
		if err != nil {
			t.Fatal(err)
		}
		n := paths.Nest(trees)
		for i := range trees {
			if trees[i].Name != "/in" {
				continue
			}
			if got, client, more := reachedBy(n, &trees[i], table); got != x.want || (got == "") != (more == "") || got != "" && client != "*" {
				t.Errorf("%s: reached by %q, as client %q, who gets %q; want %q", x.what, got, client, more, x.want)
			}
		}
	}
}
