//go:build linux

package conformance

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/v3suite"
)

// serverModules are what the guest needs to serve disks.
var serverModules = []string{"virtio_pci", "virtio_net", "virtio_rng", "virtio_blk", "crc32c_generic", "ext4", "md5", "nfsd"}

const (
	undecoded  = "knfsd does not decode what is longer than it likes, and answers GARBAGE_ARGS"
	cached     = "knfsd keeps a file that was written open for a while, and it lives on without a name"
	overhead   = "knfsd counts some of a page's bytes, and not all; what does not fit it sends all the same"
	attributes = "knfsd sends no attributes here"
)

// knfsdDifferences are what the server of Linux 6.1 does in its own way.
var knfsdDifferences = map[string]string{
	"readlink/verbatim":                "knfsd has at most 1024 bytes for a target",
	"readlink/not-a-symlink":           "knfsd answers ISDIR for a directory",
	"write/stable-how-unknown":         "knfsd takes any number for stable",
	"create/over-others":               "knfsd takes what is there for the file, of whatever type",
	"symlink/target-too-long":          undecoded,
	"rmdir/dot":                        "knfsd answers ACCES",
	"rmdir/dotdot":                     "knfsd answers ACCES",
	"rename/dots":                      "knfsd answers PERM",
	"readdir/every-page-size":          overhead,
	"readdir/too-small":                overhead,
	"readdirplus/every-page-size":      overhead,
	"readdirplus/dircount":             overhead,
	"readdirplus/too-small":            overhead,
	"fsstat/numbers":                   attributes,
	"fsinfo/numbers":                   attributes,
	"pathconf/numbers":                 attributes,
	"pathconf/name-max-holds":          undecoded,
	"names/lookup-too-long":            undecoded,
	"names/create-too-long":            undecoded,
	"names/mkdir-too-long":             undecoded,
	"names/symlink-too-long":           undecoded,
	"names/mknod-too-long":             undecoded,
	"names/remove-too-long":            undecoded,
	"names/rmdir-too-long":             undecoded,
	"names/rename-from-too-long":       undecoded,
	"names/rename-to-too-long":         undecoded,
	"names/link-dir-too-long":          undecoded,
	"stale/getattr":                    cached,
	"stale/setattr":                    cached,
	"stale/access":                     cached,
	"stale/read":                       cached,
	"stale/write":                      cached,
	"stale/link-file":                  cached,
	"stale/fsstat":                     cached,
	"stale/fsinfo":                     cached,
	"stale/pathconf":                   cached,
	"stale/commit":                     cached,
	"identity/truncate-clears-set-uid": "knfsd leaves the set-uid bit where another user truncates",
	"auth/cut-short":                   "knfsd answers BADVERF where the verifier's place is taken for the credential's",
	"auth/long-machine-name":           "knfsd takes names of machines of any length",
	"full/space-comes-back":            cached,
	"mount/file":                       "the mountd of Linux mounts files",
	"mount/dump":                       "the mountd of Linux counts mounts, and forgets them by the names of hosts",
}

// knfsdSometimes are those that depend on how long the server keeps what.
var knfsdSometimes = []string{
	"full/space-comes-back",
	"stale/getattr", "stale/setattr", "stale/access", "stale/read", "stale/write", "stale/link-file",
	"stale/fsstat", "stale/fsinfo", "stale/pathconf", "stale/commit",
}

// TestSuiteKnfsd runs the protocol's suite against the kernel's server, and before it that of our client's contract.
func TestSuiteKnfsd(t *testing.T) {
	want(t, append(slices.Clone(serverTools), "mke2fs")...)
	l := newLab(t)
	tools, err := unpacked(l.ctx, "nfs-kernel-server")
	if err != nil {
		need.Missing(t, "vm", err.Error())
	}
	programs := slices.Clone(serverTools)
	for _, name := range []string{"exportfs", "rpc.mountd", "rpc.nfsd"} { //nolint:misspell // it is called so
		programs = append(programs, filepath.Join(tools, "usr/sbin", name))
	}
	nfs, mount := freePort(t), freePort(t)
	m := l.boot(config{
		image:   l.image(serverModules, programs, nil),
		forward: fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%d-:2049,hostfwd=tcp:127.0.0.1:%d-:20048", nfs, mount),
		params:  []string{"nfsbox.role=server"},
		disks:   []string{l.disk("main", "64M", ""), l.disk("ro", "16M", l.planted()), l.disk("small", "4M", "")},
	})
	l.ready(m)
	t.Run("contract", func(t *testing.T) { contract(t, nfs, mount) })
	v3suite.Run(t, v3suite.Target{
		Dial: dialer(nfs), DialMount: dialer(mount),
		Export: "/export/main", ReadOnly: "/export/ro", Other: "/export/small", Small: "/export/small",
		Identities: true, Differences: knfsdDifferences, Sometimes: knfsdSometimes,
	})
}

// ready waits until the guest serves.
func (l *lab) ready(m *machine) {
	l.t.Helper()
	timeout := time.After(runTime)
	for {
		select {
		case line, more := <-m.lines:
			switch {
			case line == "ready":
				return
			case !more || line == "end":
				l.t.Fatal("the guest has ended")
			}
			l.t.Log(line)
		case <-timeout:
			l.t.Fatalf("the guest does not serve after %v", runTime)
		}
	}
}

// disk makes an ext4 file system, with the contents of a directory if there is
// one.
func (l *lab) disk(name, size, contents string) string {
	l.t.Helper()
	file := filepath.Join(l.home, name+".ext4")
	args := []string{"-q", "-t", "ext4", "-m", "0", "-E", "root_owner=0:0", "-O", "^has_journal"}
	if contents != "" {
		args = append(args, "-d", contents)
	}
	if _, err := run(l.ctx, "", "mke2fs", append(args, file, size)...); err != nil {
		l.t.Fatal(err)
	}
	return file
}

// planted is a directory with the files that the suite looks for on a read-only export.
func (l *lab) planted() string {
	l.t.Helper()
	dir := filepath.Join(l.home, "planted")
	if err := os.MkdirAll(filepath.Join(dir, "dir"), 0o777); err != nil {
		l.t.Fatal(err)
	}
	for _, d := range []string{dir, filepath.Join(dir, "dir")} {
		if err := os.Chmod(d, 0o777); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "dir/file"), nil, 0o666); err != nil {
		l.t.Fatal(err)
	}
	return dir
}

func dialer(port int) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	}
}

// freePort is a TCP port that was free just before.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}
