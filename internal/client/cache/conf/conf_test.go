package conf

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/client/cache/store"
)

// shipped is what Debian's cachefilesd has in /etc, but for its comments.
const shipped = `# cache
dir /var/cache/fscache
tag mycache
brun 10%
bcull 7%
bstop 3%
frun 10%
fcull 7%
fstop 3%

# Assuming you're using SELinux with the default security policy included in
# this package
secctx system_u:system_r:cachefiles_kernel_t:s0
`

func TestParse(t *testing.T) {
	shippedLimits := store.DefaultLimits
	for _, tt := range []struct {
		in   string
		want Config
	}{
		{shipped, Config{Dir: "/var/cache/fscache", Tag: "mycache", Limits: shippedLimits, Notes: []string{
			"f:13: secctx is for the kernel's cache; here the rights are those of this process",
		}}},
		{"dir /c\ntag CacheFiles", Config{Dir: "/c", Limits: shippedLimits}},
		{" dir\t/c/with a blank/ \n\nbstop 0%\nfrun 99%\nnocull\n", Config{
			Dir: "/c/with a blank", NoCull: true,
			Limits: store.Limits{Brun: 10, Bcull: 7, Bstop: 0, Frun: 99, Fcull: 7, Fstop: 3},
		}},
		{"dir /c\nsize 10G\ngranule 128k\nchecksum off\npin *.iso\npin lib*\nstatsfile /run/s\n", Config{
			Dir: "/c", Limits: shippedLimits, Size: 10 << 30, Granule: 128 << 10, NoChecksum: true,
			Pin: []string{"*.iso", "lib*"}, StatsFile: "/run/s",
		}},
		{"dir /c\nculltable 20\nresume_thresholds - 5\ndebug 0x7\n", Config{Dir: "/c", Limits: shippedLimits, Notes: []string{
			"f:2: culltable is not needed: the order of use is kept in memory",
			"f:3: resume_thresholds is not needed: culling looks for itself when there is something to cull",
			"f:4: debug is for the kernel's cache",
		}}},
	} {
		got, err := Parse(strings.NewReader(tt.in), "f")
		if err != nil || !reflect.DeepEqual(*got, tt.want) {
			t.Errorf("%q:\n%+v, %v\nwant %+v", tt.in, got, err, tt.want)
		}
	}
}

func TestWrong(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", "f: there is no dir"},
		{"dir", "f:1: dir needs a value"},
		{"dir c", "f:1: dir: an absolute path"},
		{"dir /c\ndir /d", "f:2: dir stands in line 1"},
		{"dir /c\ntag a\ntag b", "f:3: tag stands in line 2"},
		{"dir /c\ntag a/b", "f:2: tag"},
		{"dir /c\nbrun 10", "f:2: brun"},
		{"dir /c\nbrun 100%", "f:2: brun"},
		{"dir /c\nbrun -1%", "f:2: brun"},
		{"dir /c\nbcull 10%\nbrun 10%", "f:3: bstop (3%) has to be less than bcull (10%), and that less than brun (10%)"},
		{"dir /c\nfstop 7%", "f:2: fstop (7%)"},
		{"dir /c\nculltable 11", "f:2: culltable"},
		{"dir /c\nculltable 21", "f:2: culltable"},
		{"dir /c\nnocull yes", "f:2: nocull takes no value"},
		{"dir /c\nresume_thresholds 1", "f:2: resume_thresholds"},
		{"dir /c\nresume_thresholds 1 x", "f:2: resume_thresholds"},
		{"dir /c\ndebug 8", "f:2: debug"},
		{"dir /c\nsecctx", "f:2: secctx needs"},
		{"dir /c\nbind", "f:2: bind is not for this file"},
		{"dir /c\nbrunn 10%", "f:2: there is no command \"brunn\"; did you mean brun?"},
		{"dir /c\nsize 10X", "f:2: size"},
		{"dir /c\nsize 1K", "f:2: size"},
		{"dir /c\nsize 9999999T", "f:2: size"},
		{"dir /c\ngranule 100K", "f:2: granule"},
		{"dir /c\ngranule 2M", "f:2: granule"},
		{"dir /c\nchecksum md5", "f:2: checksum"},
		{"dir /c\npin [", "f:2: pin"},
		{"dir /c\nprefetch 2G", "f:2: there is no prefetch"},
		{"dir /c\nstatsfile s", "f:2: statsfile"},
		{"dir /c\nx\x00", "f:2: a NUL"},
		{"dir /c\n# " + strings.Repeat("x", 5000), "f:2: the line cannot be read"},
		{"dir /c" + strings.Repeat("\n", 10_001) + "nocull", "f:10001: more than"},
	} {
		_, err := Parse(strings.NewReader(tt.in), "f")
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%.60q: %v, want %s", tt.in, err, tt.want)
		}
	}
}

// TestNothingIsEchoed: whoever may run the command as another user learns nothing of that one's files.
func TestNothingIsEchoed(t *testing.T) {
	const secret = "hunter2"
	for _, in := range []string{
		secret, "root:$6$" + secret + ":19000::", "dir " + secret, "dir /c\ntag /" + secret, "brun " + secret, "culltable " + secret, "resume_thresholds " + secret + " 1",
		"debug " + secret, "size " + secret, "granule " + secret, "checksum " + secret, "pin [" + secret, "statsfile " + secret, "nocull " + secret, "bind " + secret,
		"password=" + secret, "\x1b]0;" + secret, "secretwordwithoutanything" + secret,
	} {
		_, err := Parse(strings.NewReader(in), "f")
		if err == nil || strings.Contains(err.Error(), secret) || strings.ContainsRune(err.Error(), 0x1b) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// TestAllErrors: what is wrong is told at once.
func TestAllErrors(t *testing.T) {
	_, err := Parse(strings.NewReader("brun 1\nbcull 2\n"), "f")
	for _, want := range []string{"f:1:", "f:2:", "f: there is no dir"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
}

func TestRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "c")
	if err := os.WriteFile(name, []byte(shipped), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Read(name); err != nil || c.Dir != "/var/cache/fscache" {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := Read(name + "x"); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(shipped)
	f.Add("dir /c\nsize 10G\ngranule 128k\nchecksum off\npin *.iso\nstatsfile /run/s\nresume_thresholds - 5\n")
	f.Fuzz(func(t *testing.T, in string) {
		c, err := Parse(strings.NewReader(in), "f")
		if err != nil {
			return
		}
		l := c.Limits
		if !filepath.IsAbs(c.Dir) || l.Bstop < 0 || l.Bstop >= l.Bcull || l.Bcull >= l.Brun || l.Brun > 99 ||
			l.Fstop < 0 || l.Fstop >= l.Fcull || l.Fcull >= l.Frun || l.Frun > 99 || c.Size < 0 {
			t.Errorf("%q: %+v", in, c)
		}
	})
}
