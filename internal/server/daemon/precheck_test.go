package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// TestCheck finds what a start would find, and makes nothing.
func TestCheck(t *testing.T) {
	tree, dir := t.TempDir(), t.TempDir()
	file, none := filepath.Join(dir, "file"), filepath.Join(dir, "none", "file")
	if err := os.WriteFile(file, []byte("nothing of use"), 0o644); err != nil {
		t.Fatal(err)
	}
	for what, x := range map[string]struct {
		change func(*config.Config)
		want   string
	}{
		"all well":              {func(*config.Config) {}, ""},
		"no directory":          {func(c *config.Config) { c.Exports[0].Dir = none }, "no such file"},
		"a file to serve":       {func(c *config.Config) { c.Exports[0].Dir = file }, file + ": it is no directory"},
		"state in the tree":     {func(c *config.Config) { c.StateDir = filepath.Join(tree, "state") }, "lies within"},
		"no callers":            {func(c *config.Config) { c.API.Callers = none }, "no such file"},
		"callers for everybody": {func(c *config.Config) { c.API.Callers = file }, "mode 0644"},
		"no certificate":        {func(c *config.Config) { c.API.TLSCert, c.API.TLSKey = none, none }, "no such file"},
		"a log in no folder":    {func(c *config.Config) { c.Log.File = none }, "log.file: "},
		"a folder for requests": {func(c *config.Config) { c.Log.Requests = dir }, "log.requests: "},
		"a client that is none": {func(c *config.Config) { c.Exports[0].Allow = []string{"no..host"} }, "not an address"},
		"one file for both logs": {func(c *config.Config) {
			c.Log.File = filepath.Join(dir, "log")
			c.Log.Requests = c.Log.File + ".link"
			if err := errors.Join(os.WriteFile(c.Log.File, nil, 0o600), os.Symlink(c.Log.File, c.Log.Requests)); err != nil {
				t.Error(err)
			}
		}, "are one file"},
		"a value":           {func(c *config.Config) { c.API.MaxCalls = 0 }, "api-max-calls"},
		"addresses":         {func(c *config.Config) { c.Metrics, c.Listen = "127.0.0.1:9", []string{"127.0.0.1:9"} }, "is the address of NFS already"},
		"one address twice": {func(c *config.Config) { c.Listen = []string{"127.0.0.1:9", "127.0.0.1:9"} }, "listen: 127.0.0.1:9 is the address of NFS already"},
	} {
		c := apiConfig(tree, filepath.Join(dir, "state"))
		c.Log.File = filepath.Join(dir, "log")
		x.change(&c)
		err := Check(c, World{})
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: %v; want %q", what, err, x.want)
		}
		if x.want == "" {
			continue
		}
		starts := Serve(t.Context(), c, World{Rand: counter()}, func(Running) error { return errors.New("it serves") })
		if starts == nil || !strings.Contains(starts.Error(), x.want) {
			t.Errorf("%s: a start says: %v", what, starts)
		}
		for _, made := range []string{filepath.Join(dir, "state"), filepath.Join(dir, "log"), filepath.Join(dir, "log.link")} {
			if err := os.RemoveAll(made); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := Check(apiConfig(tree, filepath.Join(dir, "state")), World{}); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestCheckFiles says of each file where its key stands, whatever else is wrong.
func TestCheckFiles(t *testing.T) {
	dir := t.TempDir()
	none, file := filepath.Join(dir, "none"), filepath.Join(dir, "nfsbox.toml")
	text := "io-pool = \"warp\"\n[log]\nrequests = \"" + none + "/x\"\n[api]\nlisten = [\"127.0.0.1:0\"]\ncallers = \"" + none +
		"\"\ntls-cert = \"" + none + "\"\ntls-key = \"" + none + "\"\n[[export]]\npath = \"/\"\ndir = \"" + none + "\"\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	flags := config.Flags{File: file}
	c, err := config.Load(flags)
	if err == nil || c == nil {
		t.Fatalf("%v, %v", c, err)
	}
	err = CheckFiles(c, World{Locate: flags.Locate})
	var got []string
	if err != nil {
		got = strings.Split(err.Error(), "\n")
	}
	want := []string{":3: log.requests: ", ":6: api.callers: ", ":7: api.tls-cert: ", ":11: export[0].dir: "}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], file+want[i]) || !strings.Contains(got[i], "no such file") {
			t.Errorf("%s; want %s", got[i], want[i])
		}
	}
}
