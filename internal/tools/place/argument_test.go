package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestArguments: what the end of an argument says of what it names.
func TestArguments(t *testing.T) {
	for arg, want := range map[string]struct {
		isDir, contents bool
		of              string
	}{
		"a":              {false, false, "a/."},
		"a/":             {true, false, "a/."},
		"a/.":            {true, true, "a/."},
		"a/./":           {true, true, "a/./"},
		"a/..":           {true, true, "a/.."},
		".":              {true, true, "."},
		"..":             {true, true, ".."},
		"a.":             {false, false, "a./."},
		"a/...":          {false, false, "a/.../."},
		"nfs://h/e":      {false, false, "nfs://h/e/."},
		"nfs://h/e/?a=b": {true, false, "nfs://h/e/.?a=b"},
		"nfs://h/e?a=/.": {false, false, "nfs://h/e/.?a=/."},
		"nfs://h/e/.?a":  {true, true, "nfs://h/e/.?a"},
	} {
		if got := MeansDir(arg); got != want.isDir {
			t.Errorf("%q means a directory: %v", arg, got)
		}
		if got := NamesContents(arg); got != want.contents {
			t.Errorf("%q names contents: %v", arg, got)
		}
		if got := ContentsOf(arg); got != want.of {
			t.Errorf("the contents of %q are %q, want %q", arg, got, want.of)
		}
	}
	for path, want := range map[string]string{"a": "a", "a/": "a", "a/././/": "a", "a/..": "a/..", "/a/.": "/a", "a.": "a.", "/": "/", "/.": "/."} {
		if got := withoutEnd(path); got != want {
			t.Errorf("%q without its end is %q, want %q", path, got, want)
		}
	}
}

// TestMeant: HOST:/PATH is a place of a server, as for mount(8) and rsync, unless it is one of this
// host.
func TestMeant(t *testing.T) {
	t.Chdir(t.TempDir())
	if runtime.GOOS != "windows" {
		if err := os.MkdirAll("there:/e/f", 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for arg, want := range map[string]string{
		"filer:/export/a b":   "nfs://filer/export/a%20b",
		"filer:/":             "nfs://filer/",
		"192.0.2.1:/e":        "nfs://192.0.2.1/e",
		"[2001:db8::1]:/e/f":  "nfs://[2001:db8::1]/e/f",
		"[fe80::1%eth0]:/e":   "nfs://[fe80::1%25eth0]/e",
		"filer:/e/50%?":       "nfs://filer/e/50%25%3F",
		"filer:/e/*.[ch]":     "nfs://filer/e/*.[ch]",
		"a_b-c.example:/e:/f": "nfs://a_b-c.example/e:/f",
		"there:/e/none":       "nfs://there/e/none",
		"filer":               "",
		"filer:":              "",
		"filer:e":             "",
		":/e":                 "",
		"./a:/b":              "",
		"/a:/b":               "",
		"dir/a:/b":            "",
		"user@filer:/e":       "",
		"two words:/e":        "",
		"[2001:db8::1:/e":     "",
		"[192.0.2.1]:/e":      "",
		"[name]:/e":           "",
		"nfs://h/e":           "",
		"s3://h/e":            "",
		"filer://e":           "",
		`C:\x`:                "",
		"":                    "",
	} {
		if want == "" {
			want = arg
		}
		if got := Meant(arg); got != want {
			t.Errorf("%q means %q, want %q", arg, got, want)
		}
		if got := Meant(want); got != want {
			t.Errorf("%q means %q", want, got)
		}
	}
	if got := Meant("there:/e/f"); runtime.GOOS != "windows" && got != "there:/e/f" {
		t.Errorf("what is there means %q", got)
	}
	for drive, is := range map[string]bool{"C:/x": false, "c:/": false, "cc:/x": true} {
		if _, _, ok := remote(drive, true); ok != is {
			t.Errorf("where there are drives, %s is remote: %v", drive, ok)
		}
	}
}

// TestHostWithPort: HOST:PORT and a path is no place, and the error has the URL that it stands for. What is
// here by that name is a path of this host.
func TestHostWithPort(t *testing.T) {
	t.Chdir(t.TempDir())
	for arg, want := range map[string]string{
		"10.0.0.1:2050/a/b": "nfs://10.0.0.1:2050/a/b", "filer:2050:/a": "nfs://filer:2050/a", "[::1]:2050/": "nfs://[::1]:2050/",
	} {
		_, err := Open(t.Context(), arg, Options{})
		if !errors.Is(err, ErrUsage) || !strings.HasSuffix(err.Error(), ", say "+want) {
			t.Errorf("%s: %v", arg, err)
		}
	}
	for _, arg := range []string{"filer:2050", "filer:70000/a", ":2050/a", "a/b:1/c"} {
		if _, err := Open(t.Context(), arg, Options{}); errors.Is(err, ErrUsage) {
			t.Errorf("%s: %v", arg, err)
		}
	}
	if runtime.GOOS == "windows" {
		return // no such name can be there
	}
	if err := os.Mkdir("filer:2050", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), "filer:2050/new", Options{}); err != nil {
		t.Error(err)
	}
}

// TestSpelled: of a URL every byte that cannot stand in one is escaped, and nothing else; the result names
// the same.
func TestSpelled(t *testing.T) {
	for text, want := range map[string]string{
		"nfs://h/e/a\nb\x1b\xff c?uid=0&x=/": "nfs://h/e/a%0Ab%1B%FF%20c?uid=0&x=/",
		"nfs://h/e/%2A*[a]#~!'(),;:@&=+$é":   "nfs://h/e/%2A*[a]#~!'(),;:@&=+$%C3%A9",
		"nfs://h/a?":                         "nfs://h/a?",
		"./a\nb":                             "./a\nb",
	} {
		p := &Place{Text: text}
		if got := p.Spelled(); got != want {
			t.Errorf("%q is spelled %q, want %q", text, got, want)
		}
		was, err := nfsbox.ParseURL(text)
		is, ierr := nfsbox.ParseURL(want)
		if err == nil && (ierr != nil || was.Path != is.Path) {
			t.Errorf("%q names %q, and %q %q, %v", text, was.Path, want, is.Path, ierr)
		}
	}
}

// TestNoExport: an error names the export that was meant, or those that there are.
func TestNoExport(t *testing.T) {
	for _, c := range []struct{ url, exports, below, advice string }{
		{"nfs://h/", "/srv/b /srv/a /home", "home srv/a srv/b", "which nfsbox ls lists: home, srv/a, srv/b; give one of them, as nfs://h/home"},
		{"nfs://h/srv/", "/srv/b /srv/a/ /home /srvx", "a b", "which nfsbox ls lists: a, b; give one of them, as nfs://h/srv/a"},
		{"nfs://h/exprot/a/b?uid=0", "/home /export", "", "did you mean nfs://h/export/a/b?uid=0?"},
		{"nfs://h/srv/hoem/x", "/srv/home /srv/other", "", "did you mean nfs://h/srv/home/x?"},
		{"nfs://h/Export", "/export", "", "did you mean nfs://h/export?"},
		{"nfs://h/exprots", "/exports/alpha", "", "did you mean nfs://h/exports?"},
		{"nfs://h/srv/nfs/ab", "/srv/nfs/xy", "", "the server has /srv/nfs/xy"},
		{"nfs://h/a/b", "/b/a", "", "the server has /b/a"},
		{"nfs://h/other", "/1 /2 /3 /4 /5 /6 /7", "", "the server has /1, /2, /3, /4, /5 and 2 more"},
		{"nfs://h/other", "", "", "exports nothing"},
	} {
		u, err := nfsbox.ParseURL(c.url)
		if err != nil {
			t.Fatal(err)
		}
		e := &NoExport{URL: u, arg: c.url, Exports: strings.Fields(c.exports), err: vfs.ErrNoEnt}
		if got, first, some := e.Error(), c.url+": the server exports no such path: it exports /", c.exports != ""; strings.HasPrefix(got, first) != some {
			t.Errorf("%s: %s", c.url, got)
		}
		if got := strings.Join(e.Below(), " "); got != c.below {
			t.Errorf("%s: %q is below, want %q", c.url, got, c.below)
		}
		if got := e.Advice(); !strings.Contains(got, c.advice) {
			t.Errorf("%s: %q, want %q", c.url, got, c.advice)
		}
	}
}

// TestSchemeMeant: what lacks a part of nfs:// is told with the URL that was meant.
func TestSchemeMeant(t *testing.T) {
	t.Chdir(t.TempDir())
	for arg, want := range map[string]string{"nfs//h": "nfs://h", "nfs//h/x": "nfs://h/x", "nfs//": "", "nfs/h": "", "x//h": ""} {
		_, err := Open(t.Context(), arg, Options{})
		if (err != nil && strings.Contains(err.Error(), "did you mean "+want+"?")) != (want != "") || want != "" && !errors.Is(err, ErrUsage) {
			t.Errorf("%s: %v", arg, err)
		}
	}
	for arg, want := range map[string]string{"nfs:/127.0.0.1/x": "nfs://127.0.0.1/x", "nfs:/h": "nfs://h/", "nfs:/": "", "h:/x": "", "nfs://nfs:1/h/x": ""} {
		u, err := nfsbox.ParseURL(Meant(arg))
		if err != nil {
			t.Fatal(err)
		}
		if got := meantHost(u); got != want {
			t.Errorf("%s: %q, want %q", arg, got, want)
		}
	}
}

// TestNoExportLeftOut: of a list that has nothing but what nobody can mount, it is not said that it is empty.
func TestNoExportLeftOut(t *testing.T) {
	u, err := nfsbox.ParseURL("nfs://h/x")
	if err != nil {
		t.Fatal(err)
	}
	e := &NoExport{URL: u, LeftOut: &nfsbox.ExportsError{Empty: 2, TooLong: 1}}
	if got := e.Advice(); !strings.Contains(got, "2 without a path, 1 with one of more than 1024 bytes") {
		t.Error(got)
	}
}

// TestDivided: what a URL names is known by its name in a directory, unless its end says that a
// directory is meant, or what holds it lies above the export.
func TestDivided(t *testing.T) {
	for arg, want := range map[string][2]string{
		"nfs://h/e/n":             {"nfs://h/e/", "n"},
		"nfs://h/n":               {"nfs://h/", "n"},
		"nfs://h/e/a%2F":          {},
		"nfs://h/e/a%2Fb":         {},
		"nfs://h/e/%2E":           {},
		"nfs://h/e/a%20%3F?uid=0": {"nfs://h/e/?uid=0", "a ?"},
		"nfs://h/e/n?export=/e":   {"nfs://h/e/?export=/e", "n"},
		"nfs://h/e/n?export=/e/n": {},
		"nfs://h/e/n/":            {},
		"nfs://h/e/n/.":           {},
		"nfs://h/":                {},
		"nfs://h":                 {},
		"/e/n":                    {},
		"s3://h/n":                {},
	} {
		if dir, name, ok := divided(arg); ok != (want[1] != "") || ok && want != [2]string{dir, name} {
			t.Errorf("%q is %q in %q, %v, want %q", arg, name, dir, ok, want)
		}
	}
}

// TestReached: what a server or this host answers about a path is an answer; everything
// else says that neither could be asked.
func TestReached(t *testing.T) {
	for _, err := range []error{
		vfs.ErrNoEnt, vfs.ErrNotDir, vfs.ErrAccess, vfs.ErrPerm, vfs.ErrNameTooLong, vfs.ErrOutside,
		syscall.ENOENT, syscall.ENOTDIR, syscall.EACCES, syscall.ELOOP, fs.ErrNotExist,
	} {
		if got := Reached(fmt.Errorf("wrapped: %w", err)); errors.Is(got, ErrUnreachable) {
			t.Errorf("%v: %v", err, got)
		}
	}
	for _, err := range []error{vfs.ErrIO, vfs.ErrStale, vfs.ErrNoAnswer, vfs.ErrServerFault, syscall.EIO, errors.New("else")} {
		if got := Reached(fmt.Errorf("wrapped: %w", err)); !errors.Is(got, ErrUnreachable) || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
	if Reached(nil) != nil {
		t.Error("no error is one")
	}
}
