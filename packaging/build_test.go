// Package packaging is what brings nfsbox onto a machine: the deb and the rpm
// that the script build makes, the units of systemd, the example of a
// configuration, and a Containerfile. There is no code in it; its tests take the
// packages apart, install one into a root of its own and look at what came out.
package packaging

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// output is what a command prints; it must not fail.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

func read(t *testing.T, name ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(name...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// version and epoch are those of the packages that are built here.
const (
	version = "v1.2.3-rc.1"
	sorts   = "1.2.3~rc.1-1" // as dpkg sorts it: before 1.2.3
	epoch   = "1750000000"
)

// built is what the script build has made.
type built struct{ binary, deb, rpm string }

func build(t *testing.T) built {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("./build", dir)
	cmd.Env = append(os.Environ(), "VERSION="+version, "SOURCE_DATE_EPOCH="+epoch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	one := func(pattern string) string {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s: %q, %v", pattern, files, err)
		}
		return files[0]
	}
	return built{binary: one("nfsbox"), deb: one("*.deb"), rpm: one("*.rpm")}
}

// TestPackages builds the packages, and looks at them from all sides. The tool that
// makes them is downloaded, so that this is done only where it is asked for.
func TestPackages(t *testing.T) {
	if !need.Demanded("package") {
		t.Skip("NOT TESTED: the packages: NFSBOX_REQUIRE does not name package; their tool is downloaded")
	}
	for _, tool := range []string{"bash", "dpkg-deb", "gzip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("NFSBOX_REQUIRE names package: %v", err)
		}
	}
	b := build(t)
	root := t.TempDir()
	output(t, "dpkg-deb", "-x", b.deb, root)
	t.Run("the same again", func(t *testing.T) {
		again := build(t)
		if read(t, b.deb) != read(t, again.deb) || read(t, b.rpm) != read(t, again.rpm) {
			t.Error("two builds of the same differ")
		}
	})
	t.Run("deb", func(t *testing.T) { b.control(t) })
	t.Run("files", func(t *testing.T) { b.files(t) })
	t.Run("lintian", func(t *testing.T) {
		tool := need.Tool(t, "lintian", "lintian")
		output(t, tool, "--allow-root", "--fail-on", "error,warning", b.deb)
	})
	t.Run("rpm", func(t *testing.T) { b.rpmFiles(t) })
	t.Run("life", func(t *testing.T) { b.life(t) })
	t.Run("binary", func(t *testing.T) { binary(t, root) })
	t.Run("pages", func(t *testing.T) { pages(t, root) })
	t.Run("completion", func(t *testing.T) { completion(t, root) })
	t.Run("units", func(t *testing.T) { units(t, root) })
	t.Run("container", func(t *testing.T) { b.container(t) })
}

// binary runs what is in the package, with the configuration beside it.
func binary(t *testing.T, root string) {
	nfsbox := filepath.Join(root, "usr/bin/nfsbox")
	if got := output(t, nfsbox, "version"); !strings.HasPrefix(got, "nfsbox ") || !strings.HasSuffix(got, " "+runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH+"\n") {
		t.Errorf("version: %q", got)
	}
	config := filepath.Join(root, "etc/nfsbox/nfsbox.toml")
	if got := output(t, nfsbox, "serve", "--show", "--config", config); !strings.Contains(got, "[[export]]\npath = '/srv'") {
		t.Errorf("the configuration becomes\n%s", got)
	}
}

// container runs the command of the Containerfile as far as --show goes: its
// flags are known, and its Go is that of go.mod.
func (b built) container(t *testing.T) {
	text := read(t, "Containerfile")
	m := regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatal("the Containerfile has no CMD")
	}
	var args []string
	if err := json.Unmarshal([]byte(m[1]), &args); err != nil {
		t.Fatal(err)
	}
	if i := slices.Index(args, "/data"); i >= 0 {
		args[i] = t.TempDir()
	}
	cmd := exec.Command(b.binary, append(args, "--show")...)
	cmd.Env = append(os.Environ(), "NFSBOX_ALLOW=")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "nobody is named who may mount") {
		t.Errorf("the container serves everybody: %v\n%s", err, out)
	}
	t.Setenv("NFSBOX_ALLOW", "10.0.0.0/8")
	got := output(t, b.binary, append(args, "--show")...)
	for _, want := range []string{"listen = ['[::]:2049']", "state-dir = '/state'", "localio-dir = '/run/nfsbox'"} {
		if !strings.Contains(got, want) {
			t.Errorf("the container serves without %s:\n%s", want, got)
		}
	}
}

// TestContainerfile builds with the Go that go.mod asks for.
func TestContainerfile(t *testing.T) {
	want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "..", "go.mod"))
	got := regexp.MustCompile(`(?m)^FROM \S+/golang:(\d+\.\d+)`).FindStringSubmatch(read(t, "Containerfile"))
	if want == nil || got == nil || want[1] != got[1] {
		t.Errorf("go.mod has Go %q, the Containerfile %q", want, got)
	}
}

// TestContainerfileAsks: the image names nobody whom to serve, and looks after itself with
// what is in it.
func TestContainerfileAsks(t *testing.T) {
	text := read(t, "Containerfile")
	if !strings.Contains(text, "\nENV NFSBOX_ALLOW=\"\"\n") || strings.Contains(text, "--allow") {
		t.Error("the image says whom to serve")
	}
	m := regexp.MustCompile(`(?m)^HEALTHCHECK .*\\\n\s+CMD (\[.*\])$`).FindStringSubmatch(text)
	var args []string
	if m == nil || json.Unmarshal([]byte(m[1]), &args) != nil || len(args) < 3 || args[0] != "/usr/bin/nfsbox" || args[1] != "ctl" || args[2] != "status" {
		t.Errorf("the check of its health is %q", m)
	}
}
