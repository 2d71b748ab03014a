package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// served serves dir on loopback, and over it alone.
func served(dir, state string) Config {
	c, x := Default(), DefaultExport()
	c.LocalIO = LocalIOOff
	c.Listen, c.StateDir = []string{"127.0.0.1:0"}, state
	x.Dir = dir
	c.Exports = []Export{x}
	return c
}

// configFile writes a file for Load.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nfsbox.toml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLoadRefuses names what is wrong with a file, and where.
func TestLoadRefuses(t *testing.T) {
	const good = "[[export]]\npath = \"/\"\ndir = \"/srv\"\n"
	for _, x := range []struct {
		what, text, want string
	}{
		{"an unknown key", "liste = [\"x\"]\n" + good, ":1: liste: no such key"},
		{"two things at once", good + "from = \"nfs://filer/e\"\n", ":4: export[0].from: an export is a directory (dir) or another server's (from)"},
		{"no URL", "[[export]]\nfrom = \"filer:/e\"\n", ":2: export[0].from: \"filer:/e\" is no URL of an export"},
		{"a cache of a directory", good + "cache = \"/c\"\n", ":4: export[0].cache: it is for what another server has"},
		{"mounts of another server", "[[export]]\nfrom = \"nfs://filer/e\"\ncrossmnt = true\n", ":3: export[0].crossmnt: it is for a directory of this host"},
		{"a map of another server", "[[export]]\nfrom = \"nfs://filer/e\"\nhandles = \"map\"\n", ":3: export[0].handles: \"map\" is not one of auto, verbatim"},
		{"verbatim handles beside others", good + "[[export]]\npath = \"/f\"\nfrom = \"nfs://filer/e\"\nhandles = \"verbatim\"\n", ":7: export[1].handles: verbatim handles do not say"},
		{"nothing to read from", "[[export]]\nfrom = \"nfs://filer/e\"\noffline = \"1h\"\n", ":3: export[0].offline: there is no cache to read from"},
		{"one cache for two", "[[export]]\nfrom = \"nfs://filer/e\"\ncache = \"/c\"\n[[export]]\npath = \"/f\"\nfrom = \"nfs://filer/f\"\ncache = \"/c/\"\n", ":7: export[1].cache: \"/c\" is the cache of export[0] already"},
		{"an unknown key of an export", good + "root_squash = true\n", ":4: export.root_squash: no such key"},
		{"an unknown key of a client", good + "clients = [\n {match = \"*\"},\n {match = \"*\", rw = true},\n]\n", ":6: export.rw: no such key"},
		{"two unknown keys", "a = 1\nb = 2\n" + good, ":2: b: no such key"},
		{"broken syntax", "udp = \n" + good, ":1: "},
		{"a wrong kind", "udp = \"yes\"\n" + good, ":1: udp: true or false is wanted, and there is: string"},
		{"an address for a list", "listen = \"127.0.0.1:0\"\n" + good, ":1: listen: a list of strings is wanted"},
		{"a wrong kind in an export", good + "squash = 3\n", ":4: export.squash: a string is wanted"},
		{"names for clients", good + "clients = [\n  \"10.0.0.7\",\n]\n", `:5: export.clients: a table is wanted, and there is: string; write clients = [{match = "10.0.0.7", ro = true}], or allow = ["10.0.0.7"]`},
		{"a name for clients", good + "clients = \"10.0.0.7\"\n", ":4: export.clients: a list of tables is wanted, and there is: string; write clients = [{"},
		{"an export that is none", "export = 5\n", ":1: export: an [[export]] is wanted"},
		{"a time without a unit", "udp = true\ngrace = 90\n" + good, ":2: grace: 90 is not in quotes, as in \"90s\""},
		{"a time in capitals", "Grace = 90\n" + good, ":1: grace: 90 is not in quotes"},
		{"a time that is true", "\ngrace = true\n" + good, ":2: grace: true is not in quotes"},
		{"a time in a table", good + "[api]\nidle-timeout = 30.5\n", ":5: api.idle-timeout: 30.5 is not in quotes"},
		{"a user who is a number", good + "[api]\nloopback = 1000\n", ":5: api.loopback: 1000 is not in quotes, as in \"1000:1000\""},
		{"no size", "\nmax-request-bytes = \"lots\"\n" + good, ":2: max-request-bytes: \"lots\" is no size"},
		{"no time", "grace = \"soon\"\n" + good, ":1: grace: \"soon\" is no time"},
		{"a bad address", "listen = [\n  \"127.0.0.1:2049\",\n  \"nowhere\",\n]\n" + good, ":3: listen[1]: \"nowhere\" is no address"},
		{"a bad port", "metrics = \"127.0.0.1:99999\"\n" + good, ":1: metrics: "},
		{"an unknown kind", "io-pool = \"warp\"\n" + good, ":1: io-pool: \"warp\" is not one of auto"},
		{"a kind that is gone", "io-pool = \"uring\"\n" + good, ":1: io-pool: there is no kind \"uring\" any more: use auto"},
		{"no time to be idle", "idle-timeout = \"0s\"\n" + good, ":1: idle-timeout: 0s is no time"},
		{"too few threads", "io-threads = 3\n" + good, ":1: io-threads: 3 is not within 4"},
		{"priority without threads", "io-priority-threads = 2\n" + good, "kind c"},
		{"too few connections", "max-connections = 0\n" + good, ":1: max-connections: 0 is not within 1"},
		{"a view without a port", "http = \"localhost\"\n" + good, ":1: http: \"localhost\" is no address and port"},
		{"one address for two", "http = \"127.0.0.1:9464\"\nmetrics = \"127.0.0.1:9464\"\n" + good, ":1: http: 127.0.0.1:9464 is the address of metrics already"},
		{"one address for two others", "http = \"127.0.0.1:9464\"\npprof = \"127.0.0.1:9464\"\n" + good, ":2: pprof: 127.0.0.1:9464 is the address of http already"},
		{"open profiles", "pprof = \"0.0.0.0:6060\"\n" + good, ":1: pprof: 0.0.0.0:6060 is not on loopback"},
		{"no exports", "udp = true\n", "nothing is exported"},
		{"no directory", "[[export]]\npath = \"/x\"\n", ":1: export[0].dir: no directory"},
		{"a relative path", "[[export]]\ndir = \"/srv\"\npath = \"x\"\n", ":3: export[0].path: \"x\" is not absolute"},
		{"a path twice", good + good, ":5: export[1].path: \"/\" is the path of export[0]"},
		{"an option of the export in its path", "[[export]]\ndir = \"/srv\"\npath = \"/x,ro\"\n", ":3: export[0].path: \"/x,ro\": a path takes no options: ro is set by the flag --ro, or by the key ro of nfsbox.toml in [[export]]"},
		{"an option of the server in a directory", "[[export]]\npath = \"/x\"\ndir = \"/x,max-file-size=1G\"\n", "--api-max-file-size, or by the key max-file-size of nfsbox.toml in [api]"},
		{"an unknown option in a path", "[[export]]\ndir = \"/srv\"\npath = \"/x,y,sec=krb5\"\n", "a path takes no options, such as \"sec=krb5\""},
		{"a number twice", good + "fsid = 7\n[[export]]\npath = \"/b\"\ndir = \"/b\"\nfsid = 7\n", ":8: export[1].fsid: 7 is the number"},
		{"an unknown squash", good + "squash = \"some\"\n", ":4: export[0].squash: \"some\" is not one of none, root, all"},
		{"a network with host bits", good + "allow = [\"10.0.0.1/8\"]\n", ":4: export[0].allow[0]: \"10.0.0.1/8\" has bits"},
		{"a client without a match", good + "[[export.clients]]\nmatch = \"*\"\n[[export.clients]]\nro = true\n", ":6: export[0].clients[1].match: \"\" is no client"},
		{"a client's squash", good + "clients = [{match = \"*\", squash = \"x\"}]\n", ":4: export[0].clients[0].squash"},
		{"kernel handles over mounts", good + "crossmnt = true\nhandles = \"kernel\"\n", ":5: export[0].handles"},
	} {
		path := configFile(t, x.text)
		_, err := Load(Flags{File: path})
		if err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), path) && !strings.Contains(x.want, "kind c") {
			t.Errorf("%s: %v; want %s", x.what, err, x.want)
		}
	}
}

// TestLoadSaysAll: all that is wrong is told at once, with its line, and for a key that is
// none of ours the one that may have been meant.
func TestLoadSaysAll(t *testing.T) {
	path := configFile(t, `lisen = ["127.0.0.1:2049"]
dir = "/x"
grcae = "10s"
slow = 5
io-threads = 3
[log]
leve = "info"
max-conections = 4
frobnicate = 1
[[export]]
path = "x"
dri = "/srv"
readonly = true
clients = [{match = "*", squsah = "all"}]
`)
	_, err := Load(Flags{File: path})
	if err == nil {
		t.Fatal("no error")
	}
	var got []string
	for line := range strings.Lines(err.Error()) {
		got = append(got, strings.TrimPrefix(strings.TrimSpace(line), path))
	}
	want := []string{
		":1: lisen: no such key; did you mean listen?",
		":2: dir: no such key; did you mean dir in [[export]]?",
		":3: grcae: no such key; did you mean grace?",
		`:4: slow: 5 is not in quotes, as in "90s"`,
		":5: io-threads: 3 is not within 4 and 5000",
		":7: log.leve: no such key; did you mean level?",
		":8: log.max-conections: no such key; did you mean max-connections, above all tables?",
		":9: log.frobnicate: no such key",
		":10: export[0].dir: no directory",
		`:11: export[0].path: "x" is not absolute and clean, such as / or /home`,
		":12: export.dri: no such key; did you mean dir?",
		":13: export.readonly: no such key; did you mean --ro (ro = true)?",
		":14: export.squsah: no such key; did you mean squash?",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLoadSaysAllKinds: a value of the wrong kind does not end the search, wherever it is.
func TestLoadSaysAllKinds(t *testing.T) {
	path := configFile(t, `udp = "yes"   # with a comment
listen = [
  "127.0.0.1:2049",
  5,
]
grace = "soon"
io-pool = "warp"
[log]
sample = "often"
level = "loud"
[[export]]
path = "/a"
dir = 3
allow = ["10.0.0.0/8", "@group", "host..x"]
[[export]]
path = 7
squash = "some"
clients = [{match = "10.0.0.1"}, {match = "10.0.0.2", squash = "any"}]
`)
	_, err := Load(Flags{File: path})
	if err == nil {
		t.Fatal("no error")
	}
	var got []string
	for line := range strings.Lines(err.Error()) {
		got = append(got, strings.TrimPrefix(strings.TrimSpace(line), path))
	}
	want := []string{
		":1: udp: true or false is wanted, and there is: string",
		":4: listen: a string is wanted, and there is: integer",
		`:6: grace: "soon" is no time; write it as 500ms, 90s, 10m, 1h30m or 7d`,
		`:7: io-pool: "warp" is not one of auto, none, go, c`,
		":9: log.sample: a whole number is wanted, and there is: string",
		`:10: log.level: "loud" is not one of debug, info, warn, error`,
		":13: export.dir: a string is wanted, and there is: integer",
		`:14: export[0].allow[1]: "@group": netgroups are not supported; name networks or a domain`,
		`:14: export[0].allow[2]: "host..x": not an address, a network, a name, a domain (*.example.org) or *`,
		":15: export[1].dir: no directory",
		":16: export.path: a string is wanted, and there is: integer",
		`:17: export[1].squash: "some" is not one of none, root, all`,
		`:18: export[1].clients[1].squash: "any" is not one of none, root, all`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLoadComma: a path may have a comma, and a directory any name.
func TestLoadComma(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data,ro,max-file-size=1G")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/data,old", dir} {
		if c, err := Load(Flags{Dir: dir, Export: Export{Path: path}, Given: map[string]bool{"export": true}}); err != nil || c.Exports[0].Path != path {
			t.Errorf("%q: %+v, %v", path, c.Exports, err)
		}
	}
	if _, err := Load(Flags{Export: Export{Path: "/data,udp"}, Given: map[string]bool{"export": true}}); err == nil ||
		!strings.Contains(err.Error(), "nfsbox serve DIR --export /data; ") || !strings.Contains(err.Error(), "--udp") {
		t.Errorf("--export without a directory: %v", err)
	}
}

// TestLoadOtherServersOptions: options as other servers' lists of exports have them are
// refused, with how they are spelled here, and are no part of a path.
func TestLoadOtherServersOptions(t *testing.T) {
	there := t.TempDir()
	for path, want := range map[string]string{
		"/x,all_squash":                        `all_squash is --squash all (squash = "all") here; the path alone is "/x"`,
		"/x, ro":                               `ro is set by the flag --ro, or by the key ro of nfsbox.toml in [[export]]; the path alone is "/x"`,
		"/x;ro":                                `--ro, or by the key ro`,
		"/x(ro)":                               `--ro, or by the key ro`,
		"/x (RW,no_root_squash)":               `RW is what holds without --ro here; the path alone is "/x"`,
		"/x:ro":                                `--ro, or by the key ro`,
		"/x ro":                                `--ro, or by the key ro`,
		"/x -ro":                               `--ro, or by the key ro`,
		"/x --ro":                              `--ro, or by the key ro`,
		"/x ro ":                               `--ro, or by the key ro`,
		"/x RO":                                `--ro, or by the key ro`,
		"/x,Ro":                                `--ro, or by the key ro`,
		"/x(RO)":                               `--ro, or by the key ro`,
		"/x ro=true":                           `--ro, or by the key ro`,
		"/x 'ro'":                              `--ro, or by the key ro`,
		"/x -ro,all_squash":                    `--ro, or by the key ro of nfsbox.toml in [[export]]; the path alone is "/x"`,
		"/x 10.0.0.0/8(sync)":                  `sync is what holds without --async here; the path alone is "/x"`,
		"/x 10.0.0.0/8":                        `10.0.0.0/8 is let in by the flag --allow, or by the key allow of nfsbox.toml in [[export]]; the path alone is "/x"`,
		"/x *":                                 `--allow`,
		"/x\nro":                               `--ro, or by the key ro`,
		"/x\n":                                 `it has a line feed, or another control character; the path alone is "/x"`,
		"/x:anonuid=0":                         `--anonuid, or by the key anonuid`,
		filepath.Join(there, "") + ",whatever": `there is no such directory, and a path takes no options, such as "whatever"`,
	} {
		_, err := Load(Flags{Dir: there, Export: Export{Path: path}, Given: map[string]bool{"export": true}})
		if err == nil || !strings.Contains(err.Error(), "--export: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", path, err, want)
		}
		// A directory of that name is one.
		dir := filepath.Join(t.TempDir(), strings.TrimPrefix(path, "/"))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if c, err := Load(Flags{Dir: dir, Export: Export{Path: dir}, Given: map[string]bool{"export": true}}); err != nil || c.Exports[0].Path != dir {
			t.Errorf("%q: %v", dir, err)
		}
	}
	for _, path := range []string{"/", "/x", "/my photos", "/in sync", "/x (old)", "/a:b", "/a,b/ro", "/1:2:3", "/x#1", "/Matörü"} {
		if _, err := Load(Flags{Dir: there, Export: Export{Path: path}, Given: map[string]bool{"export": true}}); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestLoadZero takes a time that is none without a unit.
func TestLoadZero(t *testing.T) {
	c, err := Load(Flags{File: configFile(t, "grace = 0\nslow = \"0\"\n[[export]]\ndir = \"/srv\"\n")})
	if err != nil || c.Grace != 0 || c.Slow != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLoadTooLong(t *testing.T) {
	path := configFile(t, strings.Repeat("#", maxConfig+1))
	if _, err := Load(Flags{File: path}); err == nil || !strings.Contains(err.Error(), "longer than 4MiB") {
		t.Error(err)
	}
}

// TestFlagsOverride lays flags over a file, and says which flag is at fault.
func TestFlagsOverride(t *testing.T) {
	path := configFile(t, `
listen = ["10.0.0.1:2049", "10.0.0.2:2049"]
grace = "10s"
slow = "1s"
[[export]]
path = "/a"
dir = "/srv/a"
allow = ["10.0.0.0/8"]
[[export]]
path = "/b"
dir = "/srv/b/"
squash = "all"
clients = [{match = "*", ro = false}, {match = "192.0.2.1", squash = "none"}]
ro = true
`)
	c, err := Load(Flags{File: path})
	if err != nil {
		t.Fatal(err)
	}
	b := c.Exports[1]
	if len(c.Listen) != 2 || c.Grace.String() != "10s" || c.Exports[0].Squash != "" || b.Dir != "/srv/b" {
		t.Errorf("%+v", c)
	}
	if one, two := b.Clients[0], b.Clients[1]; *one.ReadOnly || one.Squash != "all" || !*two.ReadOnly || two.Squash != "none" {
		t.Errorf("clients %+v", b.Clients)
	}
	yes, flags := true, Flags{File: path, Given: map[string]bool{"listen": true, "grace": true, "ro": true, "allow": true}}
	flags.Config.Listen = []string{"127.0.0.1:0"}
	flags.Export.ReadOnly, flags.Export.Allow = &yes, []string{"127.0.0.1"}
	if c, err = Load(flags); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Listen, []string{"127.0.0.1:0"}) || c.Grace != 0 || c.Slow.String() != "1s" {
		t.Errorf("%+v", c)
	}
	for _, e := range c.Exports {
		if !*e.ReadOnly || !slices.Equal(e.Allow, []string{"127.0.0.1"}) || e.Clients != nil {
			t.Errorf("%+v", e)
		}
	}
	if c.Exports[0].Squash != "" || c.Exports[1].Squash != "all" {
		t.Error("squash:", c.Exports[0].Squash, c.Exports[1].Squash)
	}
	flags.Config.Listen = []string{"x"}
	if _, err = Load(flags); err == nil || !strings.HasPrefix(err.Error(), "--listen: ") {
		t.Error(err)
	}
}

// TestLoadDirectory serves what the command line names, with or without a file.
func TestLoadDirectory(t *testing.T) {
	c, err := Load(Flags{Dir: "photos"})
	if err != nil || len(c.Exports) != 1 || c.Exports[0].Path != "/" || c.Exports[0].Squash != "" {
		t.Errorf("%+v, %v", c, err)
	}
	path := configFile(t, "udp = true\n")
	if c, err = Load(Flags{Dir: "photos", File: path}); err != nil || !c.UDP || len(c.Exports) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	path = configFile(t, "[[export]]\ndir = \"/srv\"\n")
	if _, err = Load(Flags{Dir: "photos", File: path}); err == nil {
		t.Error("two sets of exports pass")
	}
	if _, err = Load(Flags{}); err == nil {
		t.Error("nothing to serve passes")
	}
	flags := Flags{File: path, Given: map[string]bool{"export": true}}
	if _, err = Load(flags); err == nil {
		t.Error("--export without a directory passes")
	}
	flags = Flags{Dir: "photos", Given: map[string]bool{"export": true}, Export: Export{Path: "relative"}}
	if _, err = Load(flags); err == nil || !strings.HasPrefix(err.Error(), "--export: ") {
		t.Error(err)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "4096": 4096, "64KiB": 64 << 10, "3MiB": 3 << 20, "1 GiB": 1 << 30} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q: %d, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "-1", "1MB", "2048TiB", "99999999999999999999"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q passes as %v", text, s)
		}
	}
	for s, want := range map[Size]string{0: "0", 1000: "1000", 4096: "4KiB", 1 << 40: "1TiB", 3 << 20: "3MiB"} {
		if s.String() != want {
			t.Errorf("%d is shown as %v", int64(s), s)
		}
	}
}

// FuzzLoad decodes what may come, and never finds a line that is not there. Long
// texts say nothing that short ones do not, and the engine takes its time over
// them.
func FuzzLoad(f *testing.F) {
	f.Add("[[export]]\npath = \"/\"\ndir = \"/srv\"\nclients = [{match = \"*\"}]\n")
	f.Add("a.b = [1, {c = 2}]\n[x.y]\n[[export.clients]]\n")
	f.Fuzz(func(t *testing.T, text string) {
		c := Default()
		if len(text) > 256 {
			return
		}
		if decode([]byte(text), &c) != nil {
			return
		}
		lines := strings.Count(text, "\n") + 1
		found := walkPositions([]byte(text)).found
		for key, n := range found {
			if n < 1 || n > lines {
				t.Errorf("%s is on line %d of %d", key, n, lines)
			}
		}
		c.Fill()
		for _, p := range c.check() {
			if p.at(Flags{File: "f"}, found).Error() == "" {
				t.Errorf("%+v says nothing", p)
			}
		}
	})
}

// TestReadOnlyFlag makes everything read-only, whatever the rules for single
// clients say in the file.
func TestReadOnlyFlag(t *testing.T) {
	path := configFile(t, `
[[export]]
path = "/"
dir = "/srv"
clients = [{match = "*", ro = false}, {match = "10.0.0.1"}, {match = "10.0.0.2", ro = true}]
`)
	yes, no := true, false
	for _, x := range []struct {
		flag *bool
		want []bool
	}{{nil, []bool{false, false, true}}, {&yes, []bool{true, true, true}}, {&no, []bool{false, false, true}}} {
		flags := Flags{File: path, Given: map[string]bool{"ro": x.flag != nil}}
		flags.Export.ReadOnly = x.flag
		c, err := Load(flags)
		if err != nil {
			t.Fatal(err)
		}
		for i, client := range c.Exports[0].Clients {
			if IsSet(client.ReadOnly) != x.want[i] {
				t.Errorf("--ro=%v: %+v", x.flag, client)
			}
		}
	}
}
