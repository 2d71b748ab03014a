package mountopt

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/fusefs"
)

// TestSpecs: what may be mounted, and the URL that it means. A mount is hard unless it says otherwise.
func TestSpecs(t *testing.T) {
	for _, c := range []struct{ spec, options, url string }{
		{"192.168.110.150:/nsf/test", "rw,hard,intr,_netdev", "nfs://192.168.110.150/nsf/test?hard"},
		{"filer:/a b", "", "nfs://filer/a%20b?hard"},
		{"[fe80::1]:/x", "soft", "nfs://[fe80::1]/x?soft"},
		{"nfs://h:2049/x?uid=5&soft", "", "nfs://h:2049/x?uid=5&soft"},
		{"nfs://h/x?timeo=10&soft", "hard,timeo=20", "nfs://h/x?hard&timeo=20"},
		{"h:/x", "port=2050,mountport=2051,rsize=4096,retrans=1", "nfs://h/x?nfsport=2050&mountport=2051&rsize=8192&retrans=1&hard"},
		{"h:/x", "ro", "nfs://h/x?readonly&hard"},
		{"h:/x", "ro,rw", "nfs://h/x?hard"},
		{"h:/x", "readdir-buffer=4096,export=/x", "nfs://h/x?readdir-buffer=4096&export=%2Fx&hard"},
		{"h:/x", "port=0,vers=3,nfsvers=3,proto=tcp,mountproto=udp,sec=sys", "nfs://h/x?sec=sys&hard"},
	} {
		m, err := Parse(c.spec, c.options)
		if err != nil || m.URL != c.url {
			t.Errorf("%s -o %s: %v, %v; want %s", c.spec, c.options, m, err, c.url)
		}
	}
	for _, spec := range []string{"", "x", "/local", "host:path", "ftp://h/x", "[1.2.3.4]:/x", "[::1:/x", "a b:/x", "nfs:///x", "nfs://h/x?bogus=1"} {
		if m, err := Parse(spec); err == nil {
			t.Errorf("%q means %s", spec, m.URL)
		}
	}
}

// TestOptions: what options do, beside the URL.
func TestOptions(t *testing.T) {
	s := time.Second
	for options, want := range map[string]Mount{
		"":           {Retry: 2 * time.Minute},
		"bg":         {Background: true, Retry: 10000 * time.Minute},
		"bg,retry=3": {Background: true, Retry: 3 * time.Minute},
		"retry=0":    {},
		"defaults,_netdev,nofail,x-a=b,user,comment=c,noauto": {Retry: 2 * time.Minute},
		"ro,nosuid,nodev,noexec,noatime":                      {Retry: 2 * time.Minute, FS: fusefs.Options{Kernel: []string{"ro", "nosuid", "nodev", "noexec", "noatime"}}},
		"nosuid,suid":                                         {Retry: 2 * time.Minute},
		"sync":                                                {Retry: 2 * time.Minute, FS: fusefs.Options{Kernel: []string{"sync"}, Sync: true}},
		"actimeo=7":                                           {Retry: 2 * time.Minute, FS: fusefs.Options{Times: fusefs.Times{FileMin: 7 * s, FileMax: 7 * s, DirMin: 7 * s, DirMax: 7 * s}}},
		"acregmin=100":                                        {Retry: 2 * time.Minute, FS: fusefs.Options{Times: fusefs.Times{FileMin: 100 * s, FileMax: 100 * s, DirMin: 30 * s, DirMax: 60 * s}}},
		"acdirmax=5":                                          {Retry: 2 * time.Minute, FS: fusefs.Options{Times: fusefs.Times{FileMin: 3 * s, FileMax: 60 * s, DirMin: 5 * s, DirMax: 5 * s}}},
		"lookupcache=pos,nocto,noacl":                         {Retry: 2 * time.Minute, FS: fusefs.Options{Entries: fusefs.EntriesPositive, NoCTO: true, NoACL: true}},
		"nolock":                                              {Retry: 2 * time.Minute, FS: fusefs.Options{LocalPosix: true, LocalFlock: true}},
		"local_lock=flock":                                    {Retry: 2 * time.Minute, FS: fusefs.Options{LocalFlock: true}},
		"rdirplus=force":                                      {Retry: 2 * time.Minute, FS: fusefs.Options{Plus: fusefs.PlusAlways}},
		`context="a:b,c",rw`:                                  {Retry: 2 * time.Minute, FS: fusefs.Options{Kernel: []string{`context="a:b,c"`}}},
	} {
		m, err := Parse("h:/x", options)
		if err != nil {
			t.Errorf("%q: %v", options, err)
			continue
		}
		if want.FS.Times == (fusefs.Times{}) {
			want.FS.Times = fusefs.DefaultTimes
		}
		m.URL, m.FS.Source = "", ""
		if !reflect.DeepEqual(*m, want) {
			t.Errorf("%q: %+v, want %+v", options, *m, want)
		}
	}
	m, err := Parse("h:/x", "noac")
	if err != nil || m.FS.Times != (fusefs.Times{}) || !m.FS.Sync || m.FS.Entries != fusefs.EntriesNone {
		t.Errorf("noac: %+v, %v", m, err)
	}
}

// TestAttributesOfURL: what a URL says of the keeping of attributes and names means the same as the options of these names, gives way to
// them, and is not left in the URL.
func TestAttributesOfURL(t *testing.T) {
	for _, c := range []struct{ args, options, same, url string }{
		{"actimeo=7", "", "actimeo=7", "nfs://h/x?hard"},
		{"soft&noac&uid=1", "", "noac", "nfs://h/x?soft&uid=1"},
		{"ac&lookupcache=none", "", "lookupcache=none", "nfs://h/x?hard"},
		{"acregmin=9&lookupcache=pos", "actimeo=7", "actimeo=7,lookupcache=pos", "nfs://h/x?hard"},
		{"noac", "acdirmax=5,lookupcache=positive", "acdirmax=5,lookupcache=positive", "nfs://h/x?hard"},
		{"noac&lookupcache=none", "ac", "lookupcache=none", "nfs://h/x?hard"},
	} {
		got, err := Parse("nfs://h/x?"+c.args, c.options)
		if err != nil {
			t.Errorf("%s -o %s: %v", c.args, c.options, err)
			continue
		}
		want, err := Parse("nfs://h/x", c.same)
		if err != nil {
			t.Fatal(err)
		}
		if got.URL != c.url || got.FS.Source != "nfs://h/x?"+c.args {
			t.Errorf("%s -o %s: %s of %s", c.args, c.options, got.URL, got.FS.Source)
		}
		got.URL, got.FS.Source, want.URL, want.FS.Source = "", "", "", ""
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s -o %s: %+v, want %+v", c.args, c.options, got, want)
		}
	}
	for args, want := range map[string]string{"noac&actimeo=3": "contradicts", "actimeo=x": "number", "ac&ac": "given twice", "lookupcache=x": "wanted"} {
		if m, err := Parse("nfs://h/x?" + args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", args, m, err, want)
		}
	}
}

// TestNotes: what is ignored, and said to be.
func TestNotes(t *testing.T) {
	for options, want := range map[string]string{
		"intr": "can always be killed", "nosharecache": "own client", "bogus,sloppy": "not known", "rsize=1024": "raised to 8192", "fsc": "mounted without",
	} {
		m, err := Parse("h:/x", options)
		if err != nil || !slices.ContainsFunc(m.Notes, func(n string) bool { return strings.Contains(n, want) }) {
			if options == "fsc" && err == nil && strings.Contains(m.URL, "fsc") {
				continue // there is a disk cache to be had
			}
			t.Errorf("%s: %v, %v", options, m, err)
		}
	}
}

// TestRefused: what cannot be honoured, and what contradicts itself, is refused in words.
func TestRefused(t *testing.T) {
	for options, want := range map[string]string{
		"soft,hard": "contradict", "bg,fg": "contradict", "noac,actimeo=3": "contradict", "lock,nolock": "contradict", "acregmin=9,acregmax=8": "contradict",
		"udp": "only TCP", "proto=rdma": "only TCP", "vers=4.2": "vers=3", "vers=2": "vers=3", "nfsvers=5": "3 is wanted", "sec=krb5": "not built yet",
		"xprtsec=tls": "not built yet", "default_permissions": "server judges", "remount": "unmount", "user_id=0,remount,ro": "cannot be changed", "mounthost=x": "MOUNT", "timeo": "needs a value", "hard=1": "takes no value",
		"timeo=x": "number", "retry=-1": "number", "lookupcache=some": "wanted", "rdirplus=x": "wanted", "local_lock=x": "wanted", "bogus": "unknown; nfsbox mount --help lists", "nosiud": "did you mean nosuid?", "acregmix=3": "acregmax or acregmin?",
		"ro=1": "takes no value", "allow_root": "say allow_other", "nconnect=99": "16",
	} {
		m, err := Parse("h:/x", options)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", options, m, err, want)
		}
	}
}

// TestKnown: every option that is known is listed.
func TestKnown(t *testing.T) {
	list := Known()
	for name := range names {
		if _, ours := options[name]; ours && !slices.Contains(list, name) && !slices.Contains(list, name+"=") {
			t.Errorf("%s is not listed", name)
		}
	}
	for _, want := range []string{"ro", "_netdev", "timeo=", "fsc", "allow_other"} {
		if !slices.Contains(list, want) {
			t.Errorf("%s is not listed", want)
		}
	}
	if m, err := Parse("h:/x", "allow_other"); err != nil || !m.FS.AllowOther {
		t.Errorf("allow_other: %v, %v", m, err)
	}
}

// TestUncached: the URL without the disk cache, and whether it has a user.
func TestUncached(t *testing.T) {
	m := Mount{URL: "nfs://h/x?fsc=a&uid=4&hard"}
	if got := m.Uncached(); got != "nfs://h/x?uid=4&hard" || !m.HasUser() {
		t.Errorf("%s, %t", got, m.HasUser())
	}
	m.URL = "nfs://h/x?fsc"
	if got := m.Uncached(); got != "nfs://h/x" || m.HasUser() {
		t.Errorf("%s, %t", got, m.HasUser())
	}
}

// FuzzParse: no option list breaks anything, and a URL that comes out can be parsed.
func FuzzParse(f *testing.F) {
	f.Add("h:/x", "rw,hard,intr,fsc,_netdev")
	f.Add("nfs://h/x?soft", "timeo=7,context=\"a,b\"")
	f.Fuzz(func(t *testing.T, spec, options string) {
		m, err := Parse(spec, options)
		if err != nil {
			return
		}
		if _, err := nfsbox.ParseURL(m.URL); err != nil {
			t.Errorf("%q -o %q: %s: %v", spec, options, m.URL, err)
		}
	})
}

// TestSnapshot: a snapshot is read-only, and what is for a server is ignored or refused where there is none.
func TestSnapshot(t *testing.T) {
	for _, c := range []struct{ store, options, url, kernel, notes string }{
		{"/backup", "", "/backup::home/d", "ro nosuid nodev", ""},
		{"/backup", "ro,suid,noatime,defaults,nofail", "/backup::home/d", "ro nodev noatime", ""},
		{"/backup", "hard,vers=3,fsc=1G", "/backup::home/d", "ro nosuid nodev", "fsc hard vers"},
		{"s3://b/p?region=x", "timeo=5", "s3://b/p?region=x::home/d", "ro nosuid nodev", "timeo"},
		{"nfs://h/e?uid=5", "soft,fsc,dev", "nfs://h/e?soft&readonly&uid=5::home/d", "ro nosuid", ""},
	} {
		m, err := Snapshot("spec", c.store, "home/d", c.options)
		if err != nil {
			t.Errorf("%s -o %s: %v", c.store, c.options, err)
			continue
		}
		var noted []string
		for _, note := range m.Notes {
			name, _, _ := strings.Cut(note, " ")
			noted = append(noted, name)
		}
		if m.URL != c.url || !m.Snapshot || m.FSC || m.Refused != nil || m.FS.Source != "spec" || !m.FS.NoCTO || m.FS.Times.FileMin != snapshotTime ||
			strings.Join(m.FS.Kernel, " ") != c.kernel || strings.Join(noted, " ") != c.notes || (m.Retry == 0) != (c.store == "/backup") {
			t.Errorf("%s -o %s: %+v", c.store, c.options, m)
		}
	}
	for options, want := range map[string]string{
		"uid=0": "no server of NFS", "readdir-buffer=4096": "no server of NFS", "udp": "only TCP", "remount": "unmount it", "soft,hard": "contradict", "roo": "did you mean",
	} {
		if m, err := Snapshot("spec", "/backup", "home", options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", options, m, err)
		}
	}
	m, err := Snapshot("spec", "/backup", "home", "ro,rw,cto,actimeo=7,retry=1")
	if err != nil || m.Refused == nil || m.FS.NoCTO || m.FS.Times.DirMax != 7*time.Second || m.Retry != time.Minute || m.FS.Kernel[0] != "ro" {
		t.Errorf("%+v, %v", m, err)
	}
}
