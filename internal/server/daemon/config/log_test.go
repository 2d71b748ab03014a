package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogRefuses names what is wrong with [log], and where.
func TestLogRefuses(t *testing.T) {
	const rest = "[[export]]\npath = \"/\"\ndir = \"/srv\"\n"
	for text, want := range map[string]string{
		"[log]\nlevels = \"info\"\n":                             ":2: log.levels: no such key",
		"[log]\nlevel = \"loud\"\n":                              ":2: log.level: \"loud\" is not one of debug",
		"[log]\n\nformat = \"xml\"\n":                            ":3: log.format: \"xml\" is not one of text, json",
		"log-level = \"info\"\n":                                 ":1: log-level: no such key",
		"[log]\nsample = 0\n":                                    ":2: log.sample: 0 is not within 1",
		"[log]\nmax-files = -1\n":                                ":2: log.max-files: -1 is not within 0",
		"[log]\nmax-size = \"1000\"\n":                           ":2: log.max-size: 1000 is neither 0 nor whole MiB",
		"[log]\nmax-size = \"2TiB\"\n":                           ":2: log.max-size: 2TiB is neither",
		"[log]\nmax-age = \"36h\"\n":                             ":2: log.max-age: 36h is not whole days",
		"[log]\nmax-age = \"9999d\"\n":                           ":2: log.max-age: \"9999d\" is not within 0 and 3650d",
		"[log]\nmax-age = \"-1d\"\n":                             ":2: log.max-age: \"-1d\" is no time",
		"[log]\nfile = \"a.log\"\n":                              ":2: log.file: \"a.log\" is not an absolute path",
		"[log]\nrequests = \"a.log\"\n":                          ":2: log.requests: \"a.log\" is not an absolute path",
		"[log]\nfile = \"/a.log\"\nrequests = \"/x/../a.log\"\n": ":3: log.requests: /x/../a.log is the file of the server's own log already",
	} {
		path := configFile(t, text+rest)
		if _, err := Load(Flags{File: path}); err == nil || !strings.Contains(err.Error(), path+want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}

// TestLogFlags lays flags over the table, by names that begin with its own.
func TestLogFlags(t *testing.T) {
	path := configFile(t, "[log]\nlevel = \"warn\"\nsample = 7\nmax-age = \"7d\"\n[[export]]\ndir = \"/srv\"\n")
	flags := Flags{File: path, Given: map[string]bool{"log-sample": true, "sample": true, "level": true}}
	flags.Config.Log.Sample = 9
	c, err := Load(flags)
	if err != nil {
		t.Fatal(err)
	}
	want := defaultLog()
	want.Level, want.Sample, want.MaxAge = "warn", 9, Duration(7*day)
	if c.Log != want {
		t.Errorf("%+v, want %+v", c.Log, want)
	}
	flags.Config.Log.Sample = -1
	if _, err = Load(flags); err == nil || !strings.HasPrefix(err.Error(), "--log-sample: -1 is not within") {
		t.Error(err)
	}
}

// TestLogFlagsAreRelative: what the command line names lies where the command was given.
func TestLogFlagsAreRelative(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	f := Flags{Dir: dir, Config: served("", ""), Given: map[string]bool{"log-file": true, "log-requests": true}}
	f.Config.Log.File, f.Config.Log.Requests = "a.log", filepath.Join("sub", "b.log")
	c, err := Load(f)
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil || c.Log.File != filepath.Join(here, "a.log") || c.Log.Requests != filepath.Join(here, "sub", "b.log") {
		t.Errorf("%v: %q, %q", err, c.Log.File, c.Log.Requests)
	}
}
