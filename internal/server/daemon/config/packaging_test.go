package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func packaged(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "packaging", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestExample loads the example as it is, and with all that is commented out:
// it shows every key there is, and what it calls the default is.
func TestExample(t *testing.T) {
	text := packaged(t, "nfsbox.toml")
	if _, err := Load(Flags{File: configFile(t, text)}); err != nil {
		t.Error(err)
	}
	whole := regexp.MustCompile(`(?m)^#(\S|  \{)`).ReplaceAllString(text, "$1")
	c, err := Load(Flags{File: configFile(t, whole)})
	if err != nil {
		t.Fatal(err)
	}
	lines := walkPositions([]byte(whole)).found
	for _, key := range slices.Concat(keysOf(reflect.TypeFor[Config](), ""), keysOf(reflect.TypeFor[Export](), "export[0].")) {
		// The second export stands for another server's.
		if lines[key] == 0 && lines[strings.Replace(key, "export[0].", "export[1].", 1)] == 0 {
			t.Errorf("the example has no %s", key)
		}
	}
	shown, text := map[string]bool{"listen": true, "metrics": true, "export": true, "state-dir": true}, "\n"+whole
	for key, n := range lines {
		shown[key] = shown[key] || strings.HasSuffix(strings.Split(text, "\n")[n], "# example")
	}
	sameAsDefault(t, reflect.ValueOf(Default()), reflect.ValueOf(*c), "", shown)
}

// keysOf are the keys of a struct and of the tables in it.
func keysOf(struc reflect.Type, prefix string) (keys []string) {
	for _, field := range reflect.VisibleFields(struc) {
		key, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		switch {
		case isTable(field):
			keys = append(keys, keysOf(field.Type, prefix+key+".")...)
		case key != "" && key != "export":
			keys = append(keys, prefix+key)
		}
	}
	return keys
}

// sameAsDefault holds what the example calls defaults against those, but for what
// is shown as it could be.
func sameAsDefault(t *testing.T, want, got reflect.Value, prefix string, shown map[string]bool) {
	t.Helper()
	for field, v := range want.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		key = prefix + key
		switch is := got.FieldByIndex(field.Index); {
		case isTable(field):
			sameAsDefault(t, v, is, key+".", shown)
		case !shown[key] && !reflect.DeepEqual(v.Interface(), is.Interface()):
			t.Errorf("the example calls %v the default of %s; it is %v", is, key, v)
		}
	}
}

// TestExampleIsThisHosts: as it is installed, the example lets in nobody from elsewhere, by the
// address that it listens at and, should that be opened, by its rules.
func TestExampleIsThisHosts(t *testing.T) {
	c, err := Load(Flags{File: configFile(t, packaged(t, "nfsbox.toml"))})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range slices.Concat(c.Listen, []string{c.Metrics}) {
		if !OnLoopback(a) {
			t.Errorf("others reach %s", a)
		}
	}
	for i := range c.Exports {
		if c.Exports[i].Squash != "root" {
			t.Errorf("squash is %s", c.Exports[i].Squash)
		}
		for _, r := range c.Exports[i].Rules() {
			p, err := netip.ParsePrefix(r.Match)
			if err != nil {
				a, _ := netip.ParseAddr(r.Match)
				p = netip.PrefixFrom(a, a.BitLen())
			}
			if !p.Addr().IsLoopback() || p.Addr().Is4() && p.Bits() < 8 {
				t.Errorf("%s is let in", r.Match)
			}
		}
	}
}

// TestUnit holds the unit against what the daemon lays down itself.
func TestUnit(t *testing.T) {
	unit := packaged(t, "nfsbox.service")
	set := regexp.MustCompile(`(?m)^CapabilityBoundingSet=(.*)$`).FindStringSubmatch(unit)
	if set == nil || strings.Contains(set[1], "CAP_SYS_RESOURCE") || !strings.Contains(set[1], "CAP_DAC_READ_SEARCH") {
		t.Errorf("capabilities %q", set)
	}
	if !strings.Contains(unit, "RuntimeDirectory=nfsbox\nRuntimeDirectoryMode=0755\n") {
		t.Error("the unit has no directory for the socket of local I/O, or one that clients cannot enter")
	}
	if !strings.Contains(unit, "Type=notify\n") || !strings.Contains(unit, "-HUP $MAINPID") {
		t.Error("the unit neither waits until the server is ready nor reloads it")
	}
}

// TestShownIsLoaded prints a configuration and reads it back.
func TestShownIsLoaded(t *testing.T) {
	c, err := Load(Flags{File: configFile(t, packaged(t, "nfsbox.toml"))})
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.TOML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(Flags{File: configFile(t, string(text))})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	two, err := again.TOML()
	if err != nil || string(two) != string(text) {
		t.Errorf("%v\n%s\nbecomes\n%s", err, text, two)
	}
}

// TestShownSquash says in what is printed which Squash holds where nobody has set it, which
// follows from who can reach the server.
func TestShownSquash(t *testing.T) {
	for listen, want := range map[string]string{"127.0.0.1:2049": "none", "[::]:2049": "root"} {
		c, err := Load(Flags{File: configFile(t, "listen = [\""+listen+"\"]\n[[export]]\npath = \"/\"\ndir = \"/srv\"\n"+
			"clients = [{match = \"*\"}]\n")})
		if err != nil {
			t.Fatal(err)
		}
		text, err := c.TOML()
		if err != nil || strings.Count(string(text), "squash = '"+want+"'") != 2 {
			t.Errorf("%s: %v\n%s", listen, err, text)
		}
		if c.Exports[0].Squash != "" || c.Exports[0].Clients[0].Squash != "" {
			t.Error("to show a configuration changes it")
		}
	}
}

// TestShownWhole: what is printed has every key, but for two whose absence has a meaning of
// its own, and what holds where nothing was said.
func TestShownWhole(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	t.Setenv("XDG_STATE_HOME", state) // where not root's
	base, err := DefaultStateDir()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Load(Flags{File: configFile(t, "[[export]]\ndir = \"/srv\"\nclients = [{match = \"10.0.0.7\", anonuid = 7}]\n"+
		"[[export]]\npath = \"/open\"\ndir = \"/srv\"\nro = true\n")})
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.TOML()
	if err != nil {
		t.Fatal(err)
	}
	lines := walkPositions(text).found
	for _, key := range slices.Concat(keysOf(reflect.TypeFor[Config](), ""), keysOf(reflect.TypeFor[Export](), "export[1]."), keysOf(reflect.TypeFor[Client](), "export[0].clients[0].")) {
		if unsaid := key == "localio-dir" || key == "api.loopback"; (lines[key] == 0) != unsaid {
			t.Errorf("%s is in line %d of what is shown", key, lines[key])
		}
	}
	for _, want := range []string{
		"\nio-threads = 32\n", "\nio-queue = 8192\n", "\nstate-dir = '" + base + "'\n", "\nanonuid = 65534\n", "\nanonuid = 7\n", "\nanongid = 65534\n",
		"\nsecure = false\n", "\nmanage-groups = false\n", "\ntrust-local = false\n", "\nlocalio = true\n", "\nallow = []\n", "\nallow = ['*']\n", "\nclients = []\n",
		"\nro = true\n", "\nro = false\n", "\n# localio-dir ", "\n# api.loopback ",
	} {
		if !strings.Contains("\n"+string(text), want) {
			t.Errorf("it has no %q\n%s", want, text)
		}
	}
}
