//go:build linux

package conformance

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

const (
	// runTime bounds one guest, from its first line to its last. prepareTime bounds the
	// builds and downloads before.
	runTime     = 5 * time.Minute
	prepareTime = 3 * time.Minute
)

// tools are the programs that the host, and those that a guest, must have.
var (
	hostTools   = []string{qemu, "apt-get", "apt-cache", "dpkg-deb", "ldd"}
	clientTools = []string{"sh", "cp", "tar", "git", "sqlite3", "rpcbind", "rpc.statd"}
	serverTools = []string{"sh", "rpcbind", "rpc.statd"}
)

// want skips a test where a guest cannot be made, or is not asked for: these
// tests take minutes, and go to a mirror of Debian once.
func want(t *testing.T, tools ...string) {
	t.Helper()
	if os.Getenv("NFSBOX_VM") == "" && !need.Demanded("vm") {
		need.Missing(t, "vm", "it takes minutes; make conformance, or NFSBOX_VM=1, asks for it")
	}
	if runtime.GOARCH != "amd64" {
		need.Missing(t, "vm", "the kernel is fetched for amd64")
	}
	for _, tool := range slices.Concat(hostTools, tools) {
		if _, err := exec.LookPath(tool); err != nil {
			need.Missing(t, "vm", fmt.Sprintf("%v (Debian: qemu-system-x86 e2fsprogs git sqlite3 nfs-common rpcbind tar)", err))
		}
	}
}

// lab is what a guest is made of.
type lab struct {
	t      *testing.T
	ctx    context.Context
	home   string
	guest  string // the program
	kernel *kernel
}

func newLab(t *testing.T) *lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), prepareTime+runTime)
	t.Cleanup(cancel)
	l := &lab{t: t, ctx: ctx, home: t.TempDir()}
	l.guest = l.build("./guest")
	var err error
	if l.kernel, err = findKernel(ctx); err != nil {
		need.Missing(t, "vm", err.Error())
	}
	return l
}

// build builds a command without cgo, so that it needs nothing beside itself.
func (l *lab) build(path string) string {
	l.t.Helper()
	out := filepath.Join(l.home, filepath.Base(path))
	cmd := exec.CommandContext(l.ctx, "go", "build", "-o", out, path)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if diag, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("go build %s: %v\n%s", path, err, diag)
	}
	return out
}

// etc are the files of /etc that the guest's programs need.
var etc = map[string]string{
	"/etc/passwd":        "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\nstatd:x:101:65534::/:/bin/sh\n_rpc:x:102:65534::/:/bin/sh\n",
	"/etc/group":         "root:x:0:\nnogroup:x:65534:\n",
	"/etc/hosts":         "127.0.0.1 localhost guest\n10.0.2.2 host\n10.0.2.100 server\n",
	"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\nrpc: files\nnetgroup: files\n",
	"/etc/netconfig": "udp tpi_clts v inet udp - -\ntcp tpi_cots_ord v inet tcp - -\nudp6 tpi_clts v inet6 udp - -\n" +
		"tcp6 tpi_cots_ord v inet6 tcp - -\nrawip tpi_raw - inet - - -\nlocal tpi_cots_ord - loopback - - -\n",
	"/etc/protocols": "ip 0 IP\ntcp 6 TCP\nudp 17 UDP\n",
	"/etc/services":  "sunrpc 111/tcp portmapper\nsunrpc 111/udp portmapper\nnfs 2049/tcp\nmountd 20048/tcp\n",
	"/etc/rpc":       "portmapper 100000 portmap sunrpc rpcbind\nnfs 100003\nmountd 100005\nnlockmgr 100021\nstatus 100024\n",
	"/etc/nfs.conf":  "",
}

// image packs an initramfs with modules and programs, and what more adds.
func (l *lab) image(modules, programs []string, more func(*image)) string {
	l.t.Helper()
	name := filepath.Join(l.home, "initramfs")
	m, err := newImage(name)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, link := range [][2]string{{"bin", "usr/bin"}, {"sbin", "usr/bin"}, {"usr/sbin", "bin"}} {
		m.add(link[0], typeLink|0o777, []byte(link[1]))
	}
	for _, dir := range []string{"dev", "proc", "sys", "run", "tmp", "mnt", "root", "var/lib/nfs", "export"} {
		m.dir(dir)
	}
	for name, data := range etc {
		m.add(name, typeFile|0o644, []byte(data))
	}
	m.copy("/init", l.guest)
	loaded, err := l.kernel.load(l.ctx, modules...)
	if err != nil {
		l.t.Fatal(err)
	}
	var order strings.Builder
	for _, mod := range loaded {
		m.add("/modules/"+mod.name, typeFile|0o644, mod.data)
		fmt.Fprintln(&order, mod.name)
	}
	m.add("/modules/order", typeFile|0o644, []byte(order.String()))
	for _, program := range programs {
		m.program(l.ctx, program)
	}
	if more != nil {
		more(m)
	}
	if err := m.close(); err != nil {
		l.t.Fatal(err)
	}
	return name
}

// boot boots a guest for the rest of the test.
func (l *lab) boot(c config) *machine {
	l.t.Helper()
	c.kernel = l.kernel.image
	m, err := boot(l.ctx, c)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if err := m.stop(); err != nil {
			l.t.Error(err)
		}
		if l.t.Failed() {
			l.t.Logf("the end of the console:\n%s", m.console.String())
		}
	})
	return m
}

// sources adds some packages of this module, as a tree to work on, and git with the names
// under which it starts itself.
func sources(m *image) {
	for _, room := range []string{"xdr", "oncrpc"} {
		m.tree("/src/"+room, "../"+room, func(path string, d fs.DirEntry) bool {
			return d.IsDir() || strings.HasSuffix(path, ".go")
		})
	}
	for _, name := range []string{"git-upload-pack", "git-receive-pack"} {
		m.add("/usr/bin/"+name, typeLink|0o777, []byte("git"))
	}
	m.add("/usr/lib/git-core/git", typeLink|0o777, []byte("/usr/bin/git"))
}
