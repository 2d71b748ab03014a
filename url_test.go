package nfsbox

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func u32(n uint32) *uint32 { return &n }
func num(n int) *int       { return &n }

func TestParseURL(t *testing.T) {
	for _, tc := range []struct {
		raw  string
		want URL
	}{
		{"nfs://filer/export", URL{Host: "filer", Path: "/export"}},
		{"nfs://filer", URL{Host: "filer", Path: "/"}},
		{"nfs://filer/", URL{Host: "filer", Path: "/"}},
		{"nfs://10.0.0.1/e/f/", URL{Host: "10.0.0.1", Path: "/e/f/"}},
		{"nfs://[::1]/e", URL{Host: "::1", Path: "/e"}},
		{"nfs://[fe80::1%25eth0]:20490/e", URL{Host: "fe80::1%eth0", Port: 20490, Path: "/e"}},
		{"nfs://filer:2049/e", URL{Host: "filer", Port: 2049, Path: "/e"}},
		{"nfs://filer/what%3F/100%25/a+b/%C3%A9/x#y", URL{Host: "filer", Path: "/what?/100%/a+b/é/x#y"}},
		{"nfs://filer//e/./f", URL{Host: "filer", Path: "//e/./f"}},
		{"nfs://filer/e?", URL{Host: "filer", Path: "/e"}},
		{"nfs://filer/e?&readonly&", URL{Host: "filer", Path: "/e", ReadOnly: true}},
		{"nfs://filer?version=3", URL{Host: "filer", Path: "/", Version: 3}},
		{"nfs://filer/e?uid=0&gid=4294967295", URL{Host: "filer", Path: "/e", UID: u32(0), GID: u32(1<<32 - 1)}},
		{"nfs://filer/e?nfsport=2050&mountport=635", URL{Host: "filer", Path: "/e", NFSPort: 2050, MountPort: 635}},
		{"nfs://filer/e?rsize=8192&wsize=1048576", URL{Host: "filer", Path: "/e", ReadSize: 8192, WriteSize: 1 << 20}},
		{"nfs://filer/e?readdir-buffer=65536", URL{Host: "filer", Path: "/e", DirCount: 65536, MaxCount: 65536}},
		{"nfs://filer/e?readdir-buffer=8192,65536", URL{Host: "filer", Path: "/e", DirCount: 8192, MaxCount: 65536}},
		{"nfs://filer/e?timeo=100&retrans=0", URL{Host: "filer", Path: "/e", Timeout: 10 * time.Second, Retries: num(0)}},
		{"nfs://filer/e?autoreconnect=-1", URL{Host: "filer", Path: "/e", Reconnect: num(-1)}},
		{"nfs://filer/e?autoreconnect=7&tcp-syncnt=3&if=eth0", URL{Host: "filer", Path: "/e", Reconnect: num(7), SynCount: 3, Interface: "eth0"}},
		{"nfs://filer/e?readonly=1&resvport", URL{Host: "filer", Path: "/e", ReadOnly: true, SourcePort: SourcePortReserved}},
		{"nfs://filer/e?readonly=0&noresvport", URL{Host: "filer", Path: "/e", SourcePort: SourcePortAny}},
		{"nfs://filer/e?sec=sys&xprtsec=none&dircache=0&debug=0&auto-traverse-mounts=0&max-load=auto&soft&noac", URL{Host: "filer", Path: "/e"}},
		{"nfs://filer/e?dircache=1&debug=9&auto-traverse-mounts=1&nordirplus", URL{Host: "filer", Path: "/e", Debug: 9, NoReaddirplus: true}},
		{"nfs://filer/e?readahead=0", URL{Host: "filer", Path: "/e", ReadAhead: new(uint32)}},
		{"nfs://filer/e?hard&nconnect=16&max-load=512", URL{Host: "filer", Path: "/e", Patience: PatienceHard, Connections: 16, MaxLoad: 512}},
		{"nfs://filer/e%20x/a?export=/e%20x", URL{Host: "filer", Path: "/e x/a", Export: "/e x"}},
		{"nfs://filer/e/?export=/e", URL{Host: "filer", Path: "/e/", Export: "/e"}},
		{"nfs://filer/e/x?export=/", URL{Host: "filer", Path: "/e/x", Export: "/"}},
		{"nfs://filer/e?localio=auto", URL{Host: "filer", Path: "/e"}},
		{"nfs://filer/e?localio=off&localio-dir=/run/a%26b%25+c", URL{Host: "filer", Path: "/e", LocalIO: LocalIOOff, LocalIODir: "/run/a&b%+c"}},
		{"nfs://filer/e?localio=require", URL{Host: "filer", Path: "/e", LocalIO: LocalIORequire}},
		{"nfs://filer/e?localio=trusted", URL{Host: "filer", Path: "/e", LocalIO: LocalIOTrusted}},
		{"nfs://filer/e?ac", URL{Host: "filer", Path: "/e", AttrCached: true, AttrTimes: DefaultAttrTimes()}},
		{"nfs://filer/e?lookupcache=all", URL{Host: "filer", Path: "/e", AttrCached: true, AttrTimes: DefaultAttrTimes()}},
		{"nfs://filer/e?lookupcache=pos", URL{Host: "filer", Path: "/e", AttrCached: true, AttrTimes: DefaultAttrTimes(), LookupCache: LookupCachePositive}},
		{"nfs://filer/e?lookupcache=none", URL{Host: "filer", Path: "/e", LookupCache: LookupCacheNone}},
		{"nfs://filer/e?noac&lookupcache=all", URL{Host: "filer", Path: "/e"}},
		{"nfs://filer/e?actimeo=0", URL{Host: "filer", Path: "/e"}},
		{"nfs://filer/e?actimeo=7&lookupcache=positive", URL{Host: "filer", Path: "/e", AttrCached: true, AttrTimes: acTimes(7, 7, 7, 7), LookupCache: LookupCachePositive}},
		{"nfs://filer/e?acdirmin=1&actimeo=7&acregmax=9", URL{Host: "filer", Path: "/e", AttrCached: true, AttrTimes: acTimes(7, 9, 1, 7)}},
		{"nfs://filer/e?acregmin=100&acdirmax=5", URL{Host: "filer", Path: "/e", AttrCached: true, AttrTimes: acTimes(100, 100, 5, 5)}},
		{"nfs://filer/e?softerr&nconnect=1&max-load=1", URL{Host: "filer", Path: "/e", Patience: PatienceSoftErr, Connections: 1, MaxLoad: 1}},
	} {
		got, err := ParseURL(tc.raw)
		if err != nil {
			t.Errorf("%s: %v", tc.raw, err)
			continue
		}
		_, tc.want.args, _ = strings.Cut(tc.raw, "?")
		if !reflect.DeepEqual(*got, tc.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", tc.raw, *got, tc.want)
		}
	}
}

// TestParseURLRefuses holds every refusal to naming what is meant.
func TestParseURLRefuses(t *testing.T) {
	for _, tc := range []struct {
		raw     string
		say     string
		unbuilt bool
	}{
		{"http://filer/e", "nfs://", false},
		{"nfs:///e", "no server", false},
		{"nfs://" + strings.Repeat("x", maxURL), "bytes", false},
		{"nfs://user@filer/e", "argument user@: ", true},
		{"nfs://user:hidden@filer/e", "argument user@: a user's name", true},
		{"nfs://::1/e", "brackets", false},
		{"nfs://[::1/e", "no ]", false},
		{"nfs://[filer]/e", "IPv6", false},
		{"nfs://[::1]x/e", "port", false},
		{"nfs://[::1]x80/e", "port", false},
		{"nfs://filer:/e", "port", false},
		{"nfs://filer:0/e", "port", false},
		{"nfs://filer:65536/e", "port", false},
		{"nfs://fi ler/e", "host name", false},
		{"nfs://fi%6cer/e", "host name", false},
		{"nfs://filer/%zz", "%zz", false},
		{"nfs://filer/%00", "NUL", false},
		{"nfs://filer/a/../b", `".."`, false},
		{"nfs://filer/a/%2e%2e/b", `".."`, false},
		{"nfs://filer/" + strings.Repeat("x", 5000), "bytes", false},
		{"nfs://filer/e?color=blue", "argument color: unknown", false},
		{"nfs://filer/e?nconect=3", "argument nconect: unknown; did you mean nconnect?", false},
		{"nfs://filer/e?=3", "unknown", false},
		{"nfs://filer/e?uid=1&uid=1", "argument uid: given twice", false},
		{"nfs://filer/e?uid", "argument uid: a value is missing", false},
		{"nfs://filer/e?uid=root", "argument uid: ", false},
		{"nfs://filer/e?uid=-1", "argument uid: ", false},
		{"nfs://filer/e?gid=4294967296", "argument gid: ", false},
		{"nfs://filer/e?nfsport=0", "argument nfsport: ", false},
		{"nfs://filer/e?mountport=99999", "argument mountport: ", false},
		{"nfs://filer/e?rsize=4096", "argument rsize: ", false},
		{"nfs://filer/e?wsize=1M", "argument wsize: ", false},
		{"nfs://filer/e?readdir-buffer=1,", "argument readdir-buffer: ", false},
		{"nfs://filer/e?readdir-buffer=0", "argument readdir-buffer: ", false},
		{"nfs://filer/e?timeo=0", "argument timeo: ", false},
		{"nfs://filer/e?retrans=-1", "argument retrans: ", false},
		{"nfs://filer/e?autoreconnect=-2", "argument autoreconnect: ", false},
		{"nfs://filer/e?tcp-syncnt=0", "argument tcp-syncnt: ", false},
		{"nfs://filer/e?if=", "argument if: ", false},
		{"nfs://filer/e?readonly=yes", "argument readonly: ", false},
		{"nfs://filer/e?resvport=1", "argument resvport: ", false},
		{"nfs://filer/e?version=2", "argument version: ", false},
		{"nfs://filer/e?version=4", "argument version: NFS version 4 is not built yet", true},
		{"nfs://filer/e?sec=krb5", "argument sec: ", true},
		{"nfs://filer/e?sec=krb5i", "argument sec: ", true},
		{"nfs://filer/e?sec=krb5p", "argument sec: ", true},
		{"nfs://filer/e?sec=none", "argument sec: ", false},
		{"nfs://filer/e?xprtsec=tls", "argument xprtsec: ", true},
		{"nfs://filer/e?xprtsec=mtls", "argument xprtsec: ", true},
		{"nfs://filer/e?xprtsec=TLS", "argument xprtsec: ", false},
		{"nfs://filer/e?auto-traverse-mounts=2", "argument auto-traverse-mounts: ", false},
		{"nfs://filer/e?dircache=yes", "argument dircache: ", false},
		{"nfs://filer/e?debug=-1", "argument debug: ", false},
		{"nfs://filer/e?nconnect=0", "argument nconnect: ", false},
		{"nfs://filer/e?nconnect=17", "argument nconnect: ", false},
		{"nfs://filer/e?localio", "argument localio: a value is missing", false},
		{"nfs://filer/e?localio=on", "argument localio: value \"on\"; auto, off, require or trusted is wanted", false},
		{"nfs://filer/e?localio=Off", "argument localio: ", false},
		{"nfs://filer/e/x?export=/x", "argument export: value \"/x\"; a beginning of the URL's path", false},
		{"nfs://filer/e/x?export=e", "argument export: ", false},
		{"nfs://filer/ex?export=/e", "argument export: ", false},
		{"nfs://filer/e?export=/%zz", "argument export: ", false},
		{"nfs://filer/e?localio-dir=run/nfsbox", "argument localio-dir: ", false},
		{"nfs://filer/e?localio-dir=", "argument localio-dir: ", false},
		{"nfs://filer/e?localio-dir=/run/%zz", "argument localio-dir: ", false},
		{"nfs://filer/e?localio-dir=/run/%00", "argument localio-dir: ", false},
		{"nfs://filer/e?localio-dir=/" + strings.Repeat("x", 5000), "argument localio-dir: ", false},
		{"nfs://filer/e?max-load=0", "argument max-load: ", false},
		{"nfs://filer/e?max-load=513", "argument max-load: ", false},
		{"nfs://filer/e?hard=1", "argument hard: ", false},
		{"nfs://filer/e?hard&soft", "argument hard: contradicts soft", false},
		{"nfs://filer/e?softerr&soft", "argument softerr: contradicts soft", false},
		{"nfs://filer/e?resvport&noresvport", "argument noresvport: contradicts resvport", false},
		{"nfs://filer/e?cache=var/cache", "argument cache: value \"var/cache\"; an absolute path", false},
		{"nfs://filer/e?cache", "argument cache: a value is missing", false},
		{"nfs://filer/e?cache=/%00", "argument cache: ", false},
		{"nfs://filer/e?fsc=" + strings.Repeat("x", 65), "argument fsc: ", false},
		{"nfs://filer/e?actimeo=-1", "argument actimeo: value", false},
		{"nfs://filer/e?actimeo", "argument actimeo: a value is missing", false},
		{"nfs://filer/e?actimeo=1048577", "argument actimeo: value", false},
		{"nfs://filer/e?ac=1", "argument ac: value", false},
		{"nfs://filer/e?noac=1", "argument noac: value", false},
		{"nfs://filer/e?ac&noac", "contradicts", false},
		{"nfs://filer/e?actimeo=3&noac", "contradicts", false},
		{"nfs://filer/e?acdirmax=3&noac", "contradicts", false},
		{"nfs://filer/e?acregmin=9&acregmax=8", "argument acregmin: is more than", false},
		{"nfs://filer/e?acdirmin=9&acdirmax=8", "argument acdirmin: is more than", false},
		{"nfs://filer/e?lookupcache=some", "all, positive or none is wanted", false},
	} {
		u, err := ParseURL(tc.raw)
		if err == nil {
			t.Errorf("%.60s: parsed as %+v", tc.raw, u)
			continue
		}
		if _, ok := errors.AsType[*URLError](err); !ok {
			t.Errorf("%.60s: %T is no *URLError", tc.raw, err)
		}
		if !strings.Contains(err.Error(), tc.say) {
			t.Errorf("%.60s: %q does not say %q", tc.raw, err, tc.say)
		}
		if errors.Is(err, errors.ErrUnsupported) != tc.unbuilt {
			t.Errorf("%.60s: %q: unsupported is %v, want %v", tc.raw, err, !tc.unbuilt, tc.unbuilt)
		}
	}
}

// TestArgsAreNamed gives every argument a value that none can have:
// the error must name it.
func TestArgsAreNamed(t *testing.T) {
	for _, a := range args {
		_, err := ParseURL("nfs://filer/e?" + a.Name + "=/%00")
		if err == nil || !strings.Contains(err.Error(), "argument "+a.Name+": ") {
			t.Errorf("%s=/%%00: %v", a.Name, err)
		}
	}
}

// TestArgsAreExplained: the comment of ParseURL has the arguments as the table has them.
func TestArgsAreExplained(t *testing.T) {
	source, err := os.ReadFile("url.go")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(source), "The arguments are those of libnfs:")
	text, _, _ = strings.Cut(text, "func ParseURL(")
	var got, want []string
	for line := range strings.Lines(text) {
		switch line, ok := strings.CutPrefix(line, "//\t"); {
		case ok && !strings.HasPrefix(line, " "):
			got = append(got, strings.Join(strings.Fields(line), " "))
		case ok:
			got[len(got)-1] += " " + strings.TrimSpace(line)
		}
	}
	for _, a := range URLArgs() {
		equals := ""
		if a.Value != "" {
			equals = "="
		}
		want = append(want, a.Name+equals+a.Value+" "+a.Help)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the comment has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func FuzzParseURL(f *testing.F) {
	f.Add("nfs://filer/export?uid=0&version=3")
	f.Add("nfs://[fe80::1%25eth0]:2049/a%3Fb/%C3?readdir-buffer=1,2")
	f.Add("nfs://h?readonly")
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := ParseURL(raw)
		if err != nil {
			return
		}
		if u.Host == "" || !strings.HasPrefix(u.Path, "/") || strings.ContainsRune(u.Path, 0) {
			t.Fatalf("%q: %+v", raw, u)
		}
		again, err := ParseURL(u.String())
		if err != nil {
			t.Fatalf("%q: its own form %q: %v", raw, u, err)
		}
		if !reflect.DeepEqual(u, again) {
			t.Fatalf("%q: %+v, and from %q %+v", raw, u, u, again)
		}
	})
}

// acTimes are times of attributes, in seconds.
func acTimes(fileMin, fileMax, dirMin, dirMax time.Duration) AttrTimes {
	return AttrTimes{fileMin * time.Second, fileMax * time.Second, dirMin * time.Second, dirMax * time.Second}
}
