package config

import (
	"reflect"
	"strings"
	"testing"
)

// TestLoadRefusesAPI names what is wrong with [api], and where.
func TestLoadRefusesAPI(t *testing.T) {
	const export = "[[export]]\ndir = \"/srv\"\n"
	const listen, who = "[api]\nlisten = [\"127.0.0.1:0\"]\n", "loopback = \"1:1\"\n"
	for _, x := range []struct{ what, text, want string }{
		{"an unknown key", listen + who + "max-call = 1\n", ":4: api.max-call: no such key"},
		{"nobody who may call", listen, ":2: api.listen: it is not said who may call"},
		{"a table without an address", "[api]\ncallers = \"/etc/callers\"\n", ":1: api.listen: no address to listen at"},
		{"a bad address", "[api]\nlisten = [\n\"127.0.0.1:0\",\n\"here\"]\n" + who, ":4: api.listen[1]: \"here\" is no address"},
		{"the address of metrics", "metrics = \"127.0.0.1:9\"\n[api]\nlisten = [\"127.0.0.1:9\"]\n" + who, ":3: api.listen[0]: 127.0.0.1:9 is the address of metrics"},
		{"the address of NFS", "listen = [\"127.0.0.1:9\"]\n[api]\nlisten = [\"127.0.0.1:9\"]\n" + who, ":3: api.listen[0]: 127.0.0.1:9 is the address of NFS"},
		{"a user without a group", listen + "loopback = \"1000\"\n", ":3: api.loopback: \"1000\" is no user"},
		{"a name", listen + "loopback = \"backup:backup\"\n", ":3: api.loopback: \"backup:backup\": \"backup\" is not the number"},
		{"nobody at all", listen + "loopback = \"4294967295:1\"\n", ":3: api.loopback: "},
		{"too many groups", listen + "loopback = \"1:1" + strings.Repeat(",1", 1025) + "\"\n", ":3: api.loopback: "},
		{"half of a certificate", listen + who + "tls-cert = \"/a\"\n", ":4: api.tls-cert: a certificate without its key"},
		{"the other half", listen + who + "tls-key = \"/a\"\n", ":4: api.tls-key: a key without a certificate"},
		{"client certificates in clear", listen + "callers = \"/c\"\ntls-client-ca = \"/a\"\n", ":4: api.tls-client-ca: certificates of clients take TLS"},
		{"certificates of nobody", listen + who + "tls-cert = \"/a\"\ntls-key = \"/a\"\ntls-client-ca = \"/a\"\n", ":6: api.tls-client-ca: it is not said who"},
		{"no calls", listen + who + "max-calls = 0\n", ":4: api.max-calls: 0 is not within 1"},
		{"more for one than for all", listen + who + "max-calls = 10\n", "api.max-calls-per-caller: 4096 is not within 1 and 10"},
		{"no memory", listen + who + "max-memory = \"1MiB\"\n", ":4: api.max-memory: 1MiB is not within 8MiB and"},
		{"no patience", listen + who + "idle-timeout = \"0s\"\n", ":4: api.idle-timeout: 0s is no time"},
		{"no searches", listen + who + "max-searches = 0\n", ":4: api.max-searches: 0 is not within 1"},
		{"more searches for one than for all", listen + who + "max-searches = 1\n", "api.max-searches-per-caller: 2 is not within 1 and 1"},
		{"no bytes to search", listen + who + "max-search-bytes = \"0\"\n", ":4: api.max-search-bytes: 0 is not within"},
		{"no names to search", listen + who + "max-search-entries = 0\n", ":4: api.max-search-entries: 0 is not within 1"},
		{"no size", listen + who + "max-file-size = \"0\"\n", ":4: api.max-file-size: 0 is not within"},
	} {
		path := configFile(t, x.text+export)
		_, err := Load(Flags{File: path})
		if err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want %s", x.what, err, x.want)
		}
	}
}

// TestAPIFlags lays flags over [api], and names the flag that is at fault.
func TestAPIFlags(t *testing.T) {
	path := configFile(t, "[api]\nlisten = [\"127.0.0.1:1\"]\ncallers = \"/c\"\nmax-calls = 100\nmax-calls-per-caller = 10\n[[export]]\ndir = \"/srv\"\n")
	flags := Flags{File: path, Given: map[string]bool{"api-listen": true, "api-max-calls": true, "api-loopback": true}}
	flags.Config.API = API{Listen: []string{"127.0.0.1:2"}, MaxCalls: 50, Loopback: &User{UID: 1, GID: 2, Groups: []uint32{3, 4}}}
	c, err := Load(flags)
	if err != nil {
		t.Fatal(err)
	}
	want := defaultAPI()
	want.Listen, want.Callers, want.MaxCalls, want.MaxCallsPerCaller, want.Loopback = []string{"127.0.0.1:2"}, "/c", 50, 10, flags.Config.API.Loopback
	if !reflect.DeepEqual(c.API, want) {
		t.Errorf("%+v, want %+v", c.API, want)
	}
	text, err := c.TOML()
	if err != nil || !strings.Contains(string(text), "loopback = '1:2,3,4'") {
		t.Errorf("%v\n%s", err, text)
	}
	if again, err := Load(Flags{File: configFile(t, string(text))}); err != nil || !reflect.DeepEqual(again.API, want) {
		t.Errorf("what is shown is not what is read: %+v, %v", again, err)
	}
	flags.Config.API.Listen = []string{"x"}
	if _, err = Load(flags); err == nil || !strings.HasPrefix(err.Error(), "--api: ") {
		t.Error(err)
	}
}

// TestByHand lets programs of this host in as the user who has started a server by hand,
// and nobody as root, or where it is said who may.
func TestByHand(t *testing.T) {
	me, other := &User{UID: 1000, GID: 1000}, &User{UID: 5, GID: 5}
	for _, x := range []struct {
		what string
		api  API
		user *User
		want *User
	}{
		{"a user", API{Listen: []string{"127.0.0.1:1", "[::1]:1"}}, me, me},
		{"root", API{Listen: []string{"127.0.0.1:1"}}, nil, nil},
		{"others can reach it", API{Listen: []string{"127.0.0.1:1", ":2"}}, me, nil},
		{"callers are named", API{Listen: []string{"127.0.0.1:1"}, Callers: "/c"}, me, nil},
		{"it is said", API{Listen: []string{"127.0.0.1:1"}, Loopback: other}, me, other},
		{"there is none", API{}, me, nil},
	} {
		if x.api.byHand(x.user); x.api.Loopback != x.want {
			t.Errorf("%s: %v, want %v", x.what, x.api.Loopback, x.want)
		}
	}
}

// TestShownByHand: a server that was started by hand lets its own user call. That is not
// shown as a key, which would let all programs of this host call so.
func TestShownByHand(t *testing.T) {
	c := served("/srv", "/state")
	c.API.Listen, c.API.Loopback = []string{"127.0.0.1:1"}, &User{UID: 1000, GID: 100, Only: true}
	text, err := c.TOML()
	if err != nil || strings.Contains(string(text), "\nloopback = ") || !strings.Contains(string(text), "as 1000:100") {
		t.Errorf("%v\n%s", err, text)
	}
}
