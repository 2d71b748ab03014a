package packaging

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// control reads what the deb says of itself.
func (b built) control(t *testing.T) {
	info := output(t, "dpkg-deb", "-f", b.deb)
	for _, want := range []string{"Package: nfsbox\n", "Version: " + sorts + "\n", "Section: net\n", "Homepage: https://"} {
		if !strings.Contains(info, want) {
			t.Errorf("no %q in\n%s", want, info)
		}
	}
	if strings.Contains(info, "Depends:") {
		t.Errorf("a static binary depends on something:\n%s", info)
	}
	dir := t.TempDir()
	output(t, "dpkg-deb", "-e", b.deb, dir)
	if got := read(t, dir, "conffiles"); got != "/etc/nfsbox/nfsbox.toml\n" {
		t.Errorf("conffiles: %q", got)
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		if info, err := os.Stat(filepath.Join(dir, script)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", script, info, err)
		}
		if read(t, dir, script) != read(t, "deb", script) {
			t.Errorf("%s is another one", script)
		}
	}
}

// common are the files of both packages; there are man pages besides.
var common = []string{
	"-rw-r--r-- /etc/nfsbox/nfsbox.toml",
	"-rw-r--r-- /usr/lib/systemd/system/nfsbox.service",
	"-rw-r--r-- /usr/lib/systemd/system/nfsbox.socket",
	"-rw-r--r-- /usr/share/bash-completion/completions/nfsbox",
	"-rw-r--r-- /usr/share/doc/nfsbox/README.md",
	"-rw-r--r-- /usr/share/doc/nfsbox/install.md",
	"-rw-r--r-- /usr/share/fish/vendor_completions.d/nfsbox.fish",
	"-rw-r--r-- /usr/share/man/man1/nfsbox-serve.1.gz",
	"-rw-r--r-- /usr/share/man/man1/nfsbox.1.gz",
	"-rwxr-xr-x /usr/bin/nfsbox",
}

// files holds the contents of the deb against what should be there.
func (b built) files(t *testing.T) {
	want := append(slices.Clone(common),
		"-rw-r--r-- /usr/share/zsh/vendor-completions/_nfsbox",
		"-rw-r--r-- /usr/share/doc/nfsbox/copyright",
		"-rw-r--r-- /usr/share/doc/nfsbox/licences.gz")
	for _, helper := range []string{"mount.nfsbox", "mount.fuse.nfsbox", "umount.nfsbox", "umount.fuse.nfsbox"} {
		command, _, _ := strings.Cut(helper, ".")
		want = append(want, "/usr/sbin/"+helper+" -> ../bin/nfsbox", "/usr/share/man/man8/"+helper+".8.gz -> ../man1/nfsbox-"+command+".1.gz")
	}
	var got []string
	for line := range strings.Lines(output(t, "dpkg-deb", "-c", b.deb)) {
		f := strings.Fields(line) // mode, owner, size, date, time, name; of a link "->" and its target
		if len(f) == 8 && f[0][0] == 'l' && f[1] == "root/root" {
			got = append(got, strings.TrimPrefix(f[5], ".")+" -> "+f[7])
			continue
		}
		if len(f) != 6 || f[1] != "root/root" || f[3] != "2025-06-15" {
			t.Errorf("of another owner or time: %q", line)
			continue
		}
		if mode := f[0]; mode[0] == '-' {
			got = append(got, mode+" "+strings.TrimPrefix(f[5], "."))
		} else if mode != "drwxr-xr-x" {
			t.Errorf("a directory that others may write to: %q", line)
		}
	}
	complete(t, want, got)
}

// allowed is all that a package may have besides what it must.
var allowed = regexp.MustCompile(`^-rw-r--r-- /usr/share/(man/man1/nfsbox[a-z-]*\.1\.gz|doc/nfsbox/[a-z0-9-]+\.md|lintian/overrides/nfsbox)$`)

func complete(t *testing.T, want, got []string) {
	t.Helper()
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("missing: %s", w)
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) && !allowed.MatchString(g) {
			t.Errorf("nobody wants %s", g)
		}
	}
}

// life installs the deb into a root of its own, upgrades, removes and purges it:
// what the administrator has written stays to the last, and state for ever.
func (b built) life(t *testing.T) {
	need.Root(t, "dpkg gives what it installs to root")
	dpkg, root := need.Tool(t, "dpkg", "dpkg"), t.TempDir()
	for _, dir := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "var/lib/dpkg/status"), "")
	run := func(args ...string) {
		t.Helper()
		output(t, dpkg, append([]string{"--root=" + root, "--force-script-chrootless", "--log=" + filepath.Join(root, "log")}, args...)...)
	}
	config, state := filepath.Join(root, "etc/nfsbox/nfsbox.toml"), filepath.Join(root, "var/lib/nfsbox")

	run("--install", b.deb)
	if enabled := links(t, filepath.Join(root, "etc")); len(enabled) != 0 {
		t.Errorf("enabled by the installation: %q", enabled)
	}
	write(t, config, "# mine\n")
	write(t, filepath.Join(state, "key"), "secret")
	run("--install", "--force-confold", b.deb)
	if read(t, config) != "# mine\n" {
		t.Error("an upgrade has taken the configuration away")
	}
	run("--remove", "nfsbox")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/nfsbox")); err == nil {
		t.Error("the binary is still there")
	}
	if read(t, config) != "# mine\n" || read(t, state, "key") != "secret" {
		t.Error("removal has taken more than the package")
	}
	run("--purge", "nfsbox")
	if _, err := os.Stat(filepath.Dir(config)); err == nil {
		t.Error("the configuration is still there")
	}
	if read(t, state, "key") != "secret" {
		t.Error("a purge has taken the state away")
	}

	run("--install", b.deb)
	if err := os.Remove(filepath.Join(state, "key")); err != nil {
		t.Fatal(err)
	}
	run("--purge", "nfsbox")
	if _, err := os.Stat(state); err == nil {
		t.Error("an empty directory stays for ever")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// links are the symbolic links below dir, by which units are enabled.
func links(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type() == fs.ModeSymlink {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(fmt.Errorf("looking for links: %w", err))
	}
	return found
}
