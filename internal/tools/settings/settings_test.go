package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// with reads settings from a file of this text, with these variables.
func with(t *testing.T, text string, env map[string]string) (*Settings, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nfsbox.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(file, true, func(name string) string { return env[name] })
}

const sample = `
[alias]
filer = "nfs://10.0.0.5/export?uid=1000"
root = "nfs://h/"

[flags]
progress = "lines"
quiet = true
[flags.cp]
verify = true
progress = "none"
[flags."bench compare"]
rounds = 7
[flags.bench.read]
sizes = ["1", "2"]

[server."10.0.0.5"]
max-load = 16
[server.H]
soft = true
timeo = 50
[server."*"]
nconnect = 2
`

func TestPlaces(t *testing.T) {
	s, err := with(t, sample, nil)
	if err != nil {
		t.Fatal(err)
	}
	for arg, want := range map[string]string{
		"filer:":                "nfs://10.0.0.5/export?uid=1000&max-load=16&nconnect=2",
		"filer:a/b":             "nfs://10.0.0.5/export/a/b?uid=1000&max-load=16&nconnect=2",
		"filer:/a/":             "nfs://10.0.0.5/export/a/?uid=1000&max-load=16&nconnect=2",
		"filer:a?b%c#":          "nfs://10.0.0.5/export/a%3Fb%25c%23?uid=1000&max-load=16&nconnect=2",
		"root:x":                "nfs://h/x?soft&timeo=50&nconnect=2",
		"nfs://H/x?hard":        "nfs://H/x?hard&timeo=50&nconnect=2", // what contradicts the URL is left out
		"nfs://h/x?timeo=7":     "nfs://h/x?timeo=7&soft&nconnect=2",
		"nfs://other/":          "nfs://other/?nconnect=2",
		"nfs://10.0.0.5/?wrong": "nfs://10.0.0.5/?wrong",
		"./filer:a":             "./filer:a",
		"Filer:a":               "Filer:a",
		"none:a":                "none:a",
		"filer":                 "filer",
		"/a":                    "/a",
		"":                      "",
		"http://10.0.0.5/":      "http://10.0.0.5/",
	} {
		got, ok := s.Alias(arg)
		if !ok {
			got = arg
		}
		if got = s.Server(got); got != want {
			t.Errorf("%q stands for %q, want %q", arg, got, want)
		}
	}
	var names []string
	for name := range s.Aliases() {
		names = append(names, name)
	}
	if got := strings.Join(names, " "); got != "filer root" {
		t.Errorf("aliases: %s", got)
	}
}

func TestFlags(t *testing.T) {
	s, err := with(t, sample, map[string]string{
		"NFSBOX_LS_COLOR": "never", "NFSBOX_COLOR": "always", "NFSBOX_PROGRESS": "bar", "NFSBOX_BENCH_COMPARE_JSON": "true", "NFSBOX_QUIET": "",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ command, flag, value, from string }{
		{"ls", "color", "never", "NFSBOX_LS_COLOR"},
		{"stat", "color", "always", "NFSBOX_COLOR"},
		{"cp", "progress", "bar", "NFSBOX_PROGRESS"},
		{"cp", "verify", "true", ":10"},
		{"verify", "quiet", "true", ":8"},
		{"bench compare", "rounds", "7", ":13"},
		{"bench compare", "json", "true", "NFSBOX_BENCH_COMPARE_JSON"},
		{"bench read", "sizes", "1,2", ":15"},
		{"cp", "job", "", ""},
	} {
		value, from, _, ok := s.Flag(c.command, c.flag)
		if value != c.value || !strings.HasSuffix(from, c.from) || ok != (c.from != "") {
			t.Errorf("--%s of %s: %q from %q, %v, want %q from %q", c.flag, c.command, value, from, ok, c.value, c.from)
		}
	}
	s, err = with(t, sample, nil)
	if err != nil {
		t.Fatal(err)
	}
	if value, _, _, _ := s.Flag("cp", "progress"); value != "none" {
		t.Errorf("what is said of one command does not come first: %q", value)
	}
}

// TestCheck: a flag that is not there is an error with its line, and the one that was meant.
func TestCheck(t *testing.T) {
	known := map[string][]string{"cp": {"verify", "progress"}, "ls": {"long"}}
	for text, want := range map[string]string{
		"[flags]\nverify = true\nlong = true\n[flags.cp]\nverify = false": "",
		"[flags]\nverfy = true":        ":2: there is no flag --verfy; did you mean verify?",
		"[flags.ls]\nverify = true":    ":2: there is no flag --verify of ls",
		"[flags.ls]\n\nlog = true":     ":3: there is no flag --log of ls; did you mean long?",
		"[flags.cpp]\nverify = true":   ":2: there is no command cpp; did you mean cp?",
		"[flags.serve]\nlisten = \"\"": ":2: there is no command serve",
	} {
		s, err := with(t, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Check(these(known))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// these are commands, when they are asked for.
func these(known map[string][]string) func() (map[string][]string, error) {
	return func() (map[string][]string, error) { return known, nil }
}

// TestCommandsAreAskedForLate: finding all commands takes time, which most runs do not need.
func TestCommandsAreAskedForLate(t *testing.T) {
	asked := errors.New("asked")
	known := func() (map[string][]string, error) { return nil, asked }
	s, err := with(t, "[alias]\nfiler = \"nfs://h/\"", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(known); err != nil {
		t.Errorf("a file without flags: %v", err)
	}
	if _, err := Stray([]string{"HOME=/", "NFSBOX_CONFIG=x", "NFSBOX_VERIFY="}, known); err != nil {
		t.Errorf("no variable for a flag: %v", err)
	}
	if _, err := Stray([]string{"NFSBOX_VERIFY=1"}, known); !errors.Is(err, asked) {
		t.Errorf("a variable for a flag: %v", err)
	}
	if s, err = with(t, sample, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(known); !errors.Is(err, asked) {
		t.Errorf("a file with flags: %v", err)
	}
}

// TestWrongFiles: what is wrong in the file has its line.
func TestWrongFiles(t *testing.T) {
	for text, want := range map[string]string{
		"[alias]\nx = \"nfs://h/\"":           ":2: alias.x: a name has two or more letters",
		"[alias]\n\"a:b\" = \"nfs://h/\"":     ":2: alias.a:b: a name",
		"[alias]\nfiler = \"/srv\"":           ":2: alias.filer: ",
		"[alias]\nfiler = 5":                  ":2: alias.filer: ",
		"[alias.a]\nb = \"nfs://h/\"":         ":2: alias.a.b: no such key",
		"[server.h]\nmax-lod = 5":             ":2: as an argument of a URL: max-lod: ",
		"[server.h]\nuid = \"x\"":             ":2: as an argument of a URL: uid: ",
		"[server.h]\nreadonly = false":        ":2: readonly: what is not set is left out",
		"[server.h]\nuid = {a = 1}":           ":2: server.h.uid: a string",
		"a = 1":                               ":1: a: no such key",
		"[[flags]]\na = 1":                    ":1: [[flags]]: there are no lists",
		"[flags]\n\na = \n":                   ":3: ",
		"[flags]\na = 1\na = 2\n":             ":3: ",
		"\xff":                                ":1: ",
		strings.Repeat("#", maxFile) + "\n":   ": longer than",
		"[flags]\na = \"" + "\x1b" + "[31m\"": ":2: ",
	} {
		_, err := with(t, text, nil)
		if err == nil || !strings.Contains(err.Error(), "nfsbox.toml"+want) {
			t.Errorf("%.40q: %v, want ...%s", text, err, want)
		}
	}
	if _, err := Read(t.TempDir(), false, nil); err == nil {
		t.Error("a directory was read")
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none"), true, os.Getenv); err == nil {
		t.Error("a file that is named is not there, and nobody is told")
	}
	for _, none := range []string{"", filepath.Join(t.TempDir(), "none")} {
		if s, err := Read(none, false, os.Getenv); err != nil || s.Server("nfs://a/b") != "nfs://a/b" {
			t.Errorf("no file: %v", err)
		}
	}
}

func TestFile(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"HOME": "/h"}, "/h/.config/nfsbox/nfsbox.toml"},
		{map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/c"}, "/c/nfsbox/nfsbox.toml"},
		{map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "c"}, "/h/.config/nfsbox/nfsbox.toml"},
		{map[string]string{"HOME": "/h", "NFSBOX_CONFIG": "x"}, "x"},
		{map[string]string{"HOME": "/h", "NFSBOX_CONFIG": ""}, ""},
		{nil, ""},
	} {
		got, named := File(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
		if _, want := c.env["NFSBOX_CONFIG"]; got != c.want || named != want {
			t.Errorf("%v: %q, want %q", c.env, got, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample)
	f.Add("[flags]\na.b = 1\nc = {x = 1}\n[[x]]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := with(t, text, nil)
		if err == nil {
			_ = s.Check(these(map[string][]string{"cp": {"verify"}}))
			url, _ := s.Alias("filer:x")
			s.Server(url)
		}
	})
}

// TestStray: of variables that set nothing those are told that were meant for another one.
func TestStray(t *testing.T) {
	known := map[string][]string{"cp": {"verify", "json", "max-load"}, "bench compare": {"rounds"}, "ls": {"sort", "json"}, "bench upload": {"token-file"}}
	for name, want := range map[string]string{
		"NFSBOX_CP_VERFY": "NFSBOX_CP_VERIFY", "NFSBOX_VERFIY": "NFSBOX_VERIFY", "NFSBOX_MAX_LAOD": "NFSBOX_MAX_LOAD",
		"NFSBOX_BENCH_COMPARE_ROUND": "NFSBOX_BENCH_COMPARE_ROUNDS", "NFSBOX_CONFG": "NFSBOX_CONFIG", "NFSBOX_CP-VERIFY": "NFSBOX_CP_VERIFY",
		"NFSBOX_CP_VERIFY": "", "NFSBOX_JSON": "", "NFSBOX_CONFIG": "", "NFSBOX_ALLOW": "", "NFSBOX_BINARY": "", "NFSBOX_TOKEN": "", "NFSBOX_PORT": "",
		"NFSBOX_SERVICE_HOST": "", "CP_VERFY": "", "NFSBOX_": "",
	} {
		told, err := Stray([]string{"HOME=/", name + "=true", "NFSBOX_VERIF="}, these(known))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(told, "; ")
		if want != "" {
			want = name + " sets nothing; did you mean " + want + "?"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestNearAlias proposes an alias for a name that is none.
func TestNearAlias(t *testing.T) {
	s, err := with(t, sample, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"fielr": "filer", "filers": "filer", "filer": "", "rot": "root", "C": "", "nothing": ""} {
		if got := s.NearAlias(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
