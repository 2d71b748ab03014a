package client

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// diagnose returns the steps of a diagnosis, the last one of each name.
func diagnose(t *testing.T, url string, o nfsbox.DiagnoseOptions, opts ...nfsbox.Option) (map[string]nfsbox.Step, error) {
	t.Helper()
	steps := make(map[string]nfsbox.Step)
	err := nfsbox.Diagnose(t.Context(), url, o, func(s nfsbox.Step) {
		if s.Err != nil && s.Advice == "" {
			t.Errorf("no advice with %+v", s)
		}
		steps[s.Name] = s
	}, opts...)
	return steps, err
}

// TestDiagnose finds nothing wrong with a server of ours, and leaves nothing
// behind.
func TestDiagnose(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o777})
	put(t, mem, "a/file", []byte("here"))
	port := serve(t, export.Export{Path: "/", FS: mem})
	steps, err := diagnose(t, "nfs://localhost:"+port+"/a", nfsbox.DiagnoseOptions{Read: true, Write: true}, nfsbox.WithCaller(vfs.Caller{}))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"resolve": "127.0.0.1",
		"connect": ":" + port + " in ",
		"mount":   "mounted /a",
		"nfs":     "version 3 answers in ",
		"fsinfo":  "reads of up to 1048576 bytes",
		"getattr": "may list enter add remove",
		"list":    "1 entry",
		"read":    `4 bytes of "file"`,
		"write":   "1048576 bytes written",
		"clock":   "the server's clock ",
	} {
		if s, ok := steps[name]; !ok || s.Err != nil || s.Skipped || !strings.Contains(s.Detail, want) {
			t.Errorf("%s: %+v, want %q", name, s, want)
		}
	}
	for _, name := range []string{"portmap", "lookup"} {
		if s := steps[name]; !s.Skipped || s.Detail == "" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	dir, err := vfs.Resolve(t.Context(), mem, rootOf(t, mem), "a", true)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for e, err := range mem.ReadDir(t.Context(), dir.Handle, vfs.Pos{}, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, string(e.Name))
	}
	if !slices.Equal(names, []string{"file"}) {
		t.Errorf("it has left %q", names)
	}
}

func rootOf(t *testing.T, fs vfs.FS) vfs.Handle {
	t.Helper()
	h, _, err := fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestDiagnoseFails meets what servers refuse, behind the mount.
func TestDiagnoseFails(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o755})
	put(t, mem, "file", []byte("here"))
	port := serve(t, export.Export{Path: "/", FS: mem}, export.Export{Path: "/ro", FS: mem, ReadOnly: true})
	all := nfsbox.DiagnoseOptions{Read: true, Write: true}
	stranger := nfsbox.WithCaller(vfs.Caller{UID: 1000, GID: 1000})
	for name, tc := range map[string]struct {
		url    string
		caller nfsbox.Option
		step   string
		err    error
		advice string
	}{
		"no right to write": {"/", stranger, "write", vfs.ErrAccess, "uid="},
		"read-only export":  {"/ro", nfsbox.WithCaller(vfs.Caller{}), "write", vfs.ErrROFS, "rw"},
		"no such name":      {"/nosuch", nfsbox.WithCaller(vfs.Caller{}), "lookup", vfs.ErrNoEnt, `the directory exists, and "nosuch" in it does not`},
		"no such directory": {"/none/x/", nfsbox.WithCaller(vfs.Caller{}), "mount", vfs.ErrNoEnt, "written"},
	} {
		t.Run(name, func(t *testing.T) {
			steps, err := diagnose(t, "nfs://127.0.0.1:"+port+tc.url, all, tc.caller)
			if s := steps[tc.step]; !errors.Is(s.Err, tc.err) || !errors.Is(err, tc.err) || !strings.Contains(s.Advice, tc.advice) {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
	steps, err := diagnose(t, "nfs://127.0.0.1:"+port+"/file?readonly", all, nfsbox.WithCaller(vfs.Caller{}))
	if err != nil || !steps["write"].Skipped || steps["read"].Skipped || !strings.Contains(steps["lookup"].Detail, "4 bytes") {
		t.Errorf("%+v, %v", steps, err)
	}
	steps, err = diagnose(t, "nfs://127.0.0.1:"+port+"/", nfsbox.DiagnoseOptions{}, nfsbox.WithCaller(vfs.Caller{}))
	if err != nil || !steps["write"].Skipped || !steps["read"].Skipped {
		t.Errorf("%+v, %v", steps, err)
	}
}

// TestIPv6 goes the whole way over IPv6, where the host has it.
func TestIPv6(t *testing.T) {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		need.Missing(t, "ipv6", err.Error())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	mem := memfs.New(memfs.Options{Mode: 0o777})
	put(t, mem, "file", []byte("here"))
	s := &server{t: t, addr: "[::1]:0"}
	s.export(export.Export{Path: "/", FS: mem})
	s.begin()
	t.Cleanup(s.end)
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"[::1]", "[::1%25lo]"} {
		if host != "[::1]" && !hasInterface("lo") {
			continue
		}
		c := dial(t, "nfs://"+host+":"+port+"/")
		if got := get(t, c.FS(), "file"); string(got) != "here" {
			t.Errorf("%s: %q", host, got)
		}
	}
}

func hasInterface(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}
