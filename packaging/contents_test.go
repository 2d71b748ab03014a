package packaging

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// rpmFiles holds the rpm against what should be in it.
func (b built) rpmFiles(t *testing.T) {
	tool := need.Tool(t, "rpm", "rpm")
	query := func(args ...string) string {
		t.Helper()
		return output(t, tool, append([]string{"--dbpath", t.TempDir(), "-qp"}, append(args, b.rpm)...)...)
	}
	if got := query("--qf", "%{NAME} %{VERSION} %{RELEASE} %{BUILDTIME} %{BUILDHOST}"); got != "nfsbox 1.2.3~rc.1 1 "+epoch+" localhost" {
		t.Errorf("the rpm is %q", got)
	}
	want := append(slices.Clone(common),
		"-rw-r--r-- /usr/share/zsh/site-functions/_nfsbox",
		"-rw-r--r-- /usr/share/licenses/nfsbox/LICENSE",
		"-rw-r--r-- /usr/share/licenses/nfsbox/licences.gz")
	var got []string
	for line := range strings.Lines(query("--qf", `[%{FILEMODES:perms} %{FILENAMES} %{FILEUSERNAME} %{FILEFLAGS:fflags}\n]`)) {
		f := strings.Fields(line)
		if f[2] != "root" {
			t.Errorf("of another owner: %q", line)
		}
		if f[0][0] == '-' {
			got = append(got, f[0]+" "+f[1])
		}
		if config := strings.HasPrefix(f[1], "/etc/") && f[0][0] == '-'; config != (f[len(f)-1] == "cn") {
			t.Errorf("what is the administrator's, and nothing else, is config(noreplace): %q", line)
		}
	}
	complete(t, want, got)
	if scripts := query("--scripts"); strings.Contains(scripts, "#!/bin/sh") || strings.Count(scripts, "scriptlet (using /bin/sh)") != 3 {
		t.Errorf("scripts:\n%s", scripts)
	}
}

// pages reads the manual: there is a page for each command, compressed without
// a name or a time.
func pages(t *testing.T, root string) {
	made := t.TempDir()
	t.Setenv("SOURCE_DATE_EPOCH", epoch) // pages bear that day, as those in the package
	output(t, filepath.Join(root, "usr/bin/nfsbox"), "man", made)
	want, err := filepath.Glob(filepath.Join(made, "*.1"))
	if err != nil || len(want) < 10 {
		t.Fatalf("%q, %v", want, err)
	}
	mandoc, _ := exec.LookPath("mandoc")
	for _, page := range want {
		packed := filepath.Join(root, "usr/share/man/man1", filepath.Base(page)+".gz")
		if head := read(t, packed)[:10]; head[3] != 0 || head[4:8] != "\x00\x00\x00\x00" { // RFC 1952, section 2.3
			t.Errorf("%s bears a name or a time: %x", packed, head)
		}
		if got := output(t, "gzip", "-cd", packed); got != read(t, page) {
			t.Errorf("%s is not what the binary makes", packed)
		}
		if mandoc == "" {
			continue
		}
		out, _ := exec.Command(mandoc, "-T", "lint", "-W", "warning", page).CombinedOutput() // which tells by its status, too
		for line := range strings.Lines(string(out)) {
			if !strings.Contains(line, "missing date") { // which is on purpose
				t.Error(line)
			}
		}
	}
	if mandoc == "" {
		need.Missing(t, "mandoc", "it is not installed")
	}
}

// completion has each script read by its shell.
func completion(t *testing.T, root string) {
	for shell, file := range map[string]string{
		"bash": "bash-completion/completions/nfsbox",
		"fish": "fish/vendor_completions.d/nfsbox.fish",
		"zsh":  "zsh/vendor-completions/_nfsbox",
	} {
		t.Run(shell, func(t *testing.T) {
			output(t, need.Tool(t, shell, shell), "-n", filepath.Join(root, "usr/share", file))
		})
	}
}

// units has systemd read its units where the package has put them, and follows
// what they name into the package.
func units(t *testing.T, root string) {
	dir := filepath.Join(root, "usr/lib/systemd/system")
	for _, m := range regexp.MustCompile(`(?m)^Exec\w+=(\S+)(?:.* -c (\S+))?`).FindAllStringSubmatch(read(t, dir, "nfsbox.service"), -1) {
		if m[1] == "/bin/kill" {
			continue
		}
		read(t, root, m[1])
		read(t, root, m[2])
	}
	tool := need.Tool(t, "systemd-analyze", "systemd-analyze")
	// In a root of its own it would want all of systemd there: what remains is
	// that this machine has no such binary.
	out, _ := exec.Command(tool, "verify", "--man=no", filepath.Join(dir, "nfsbox.service"), filepath.Join(dir, "nfsbox.socket")).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "nfsbox") && !strings.Contains(line, "Command /usr/bin/nfsbox is not executable") {
			t.Error(line)
		}
	}
}

// TestScripts holds the packages' scripts to what they promise: nothing is
// enabled or started that the administrator has not.
func TestScripts(t *testing.T) {
	var scripts []string
	for _, pattern := range []string{"deb/p*", "rpm/p*"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) != 3 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		scripts = append(scripts, found...)
	}
	begins := regexp.MustCompile(`\s(start|restart|reload-or-restart|enable|reenable|preset|unmask)\s`)
	for _, script := range scripts {
		if sh, err := exec.LookPath("sh"); err == nil {
			output(t, sh, "-n", script)
		}
		for line := range strings.Lines(read(t, script)) {
			if !strings.HasPrefix(strings.TrimSpace(line), "#") && begins.MatchString(line) {
				t.Errorf("%s begins what nobody asked for: %s", script, line)
			}
		}
	}
}

// maxExposure is what systemd may give the service, at most: 10 is the worst.
const maxExposure = 3.0

// TestUnitExposure has systemd judge how much the service is locked in.
func TestUnitExposure(t *testing.T) {
	tool := need.Tool(t, "systemd-analyze", "systemd-analyze")
	if help, _ := exec.Command(tool, "--help").CombinedOutput(); !strings.Contains(string(help), "--offline") {
		need.Missing(t, "systemd-analyze", "it cannot judge a unit offline")
	}
	// Its status says whether the exposure is above its own threshold.
	out, _ := exec.Command(tool, "security", "--offline=true", "--no-pager", "nfsbox.service").CombinedOutput()
	m := regexp.MustCompile(`Overall exposure level for nfsbox\.service: ([\d.]+)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("%s", out)
	}
	if got, err := strconv.ParseFloat(string(m[1]), 64); err != nil || got >= maxExposure {
		t.Errorf("the exposure is %s, %v:\n%s", m[1], err, out)
	}
}

// TestUnitSaysWhy: what the unit leaves open stands in it, with the reason.
func TestUnitSaysWhy(t *testing.T) {
	unit := read(t, "nfsbox.service")
	_, why, ok := strings.Cut(unit, "# What would be stricter still, and cannot be:\n")
	if !ok {
		t.Fatal("the unit does not say what it leaves open")
	}
	for _, directive := range []string{
		"User=", "DynamicUser=", "PrivateUsers=", "RestrictSUIDSGID=", "ProcSubset=", "ProtectHome=", "PrivateNetwork=", "IPAddressDeny=",
		"RestrictAddressFamilies=", "RootDirectory=", "SystemCallFilter=",
	} {
		if !strings.Contains(why, directive) {
			t.Errorf("nothing is said of %s", directive)
		}
	}
}
