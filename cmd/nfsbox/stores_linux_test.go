package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/fakes3"
	"github.com/nfsbox/nfsbox/internal/tools/place"
)

// inStore is the tree that TestStores backs up.
var inStore = map[string]string{"a": "alpha\n", "d/b": "beta\n", "d/50% c": "gamma\n"}

// TestStores: a store of a server and one in a bucket do all that one of this host does.
func TestStores(t *testing.T) {
	fakes3.Setenv(t)
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	for name, content := range inStore {
		at := filepath.Join(tree, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "served"), 0o755); err != nil {
		t.Fatal(err)
	}
	server, _ := exitServer(t, filepath.Join(dir, "served"), filepath.Join(dir, "state"))
	bucket := fakes3.Start(t, 1, fakes3.Faults{})
	args := "?endpoint=" + url.QueryEscape(bucket.URL) + "&region=" + fakes3.Region
	for name, store := range map[string]string{"nfs": server + "store", "s3": "s3://" + fakes3.Bucket + "/host7" + args} {
		t.Run(name, func(t *testing.T) {
			throughStore(t, tree, store)
		})
	}
	none := "s3://" + fakes3.Bucket + "/none" + args
	for _, c := range []struct{ args, want string }{
		{"snapshots ls " + server + "none", "no such directory at the server"},
		{"backup --existing " + tree + " " + server + "none", "no such directory at the server"},
		{"backup " + tree + " " + server + "none/below", "there is no directory " + server + "none"},
		{"snapshots ls " + none, "see that bucket, prefix and endpoint are right"},
		{"backup --existing " + tree + " " + none, "see that bucket, prefix and endpoint are right"},
		{"snapshots ls s3://other/x" + args, "there is no bucket"},
		{"snapshots ls nfs://127.0.0.1:1/e", "cannot be reached"},
		{"ls nfs://127.0.0.1:1/e::home", "cannot be reached"},
		{"ls s3://other/x" + args + "::home", "there is no bucket"},
	} {
		if _, said := ask(t, exitUnreachable, strings.Fields(c.args)...); !strings.Contains(said, c.want) {
			t.Errorf("%s: %s", c.args, said)
		}
	}
	ask(t, exitIncomplete, "ls", server+"none::home")
	ask(t, exitUsage, "backup", tree, server) // there is something else
}

// throughStore has each verb use a store, which is made.
func throughStore(t *testing.T, tree, store string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	if _, said := ask(t, 0, "backup", "-n", tree, store, "--name", "home"); !strings.Contains(said, "there is no store: one would be made") {
		t.Error(said)
	}
	if _, said := ask(t, 0, "backup", tree, store, "--name", "home"); !strings.Contains(said, "a new store was made") {
		t.Error(said)
	}
	if _, said := ask(t, 0, "backup", "--existing", "--verify", tree, store, "--name", "home"); strings.Contains(said, "read:") || !strings.Contains(said, "base: home@") {
		t.Error(said)
	}
	if list, _ := ask(t, 0, "snapshots", "ls", store); strings.Count(list, "home@") != 2 {
		t.Error(list)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"beta\n", []string{"cat", store + "::home/d/b"}},
		{"gamma\n", []string{"cat", store + "::home/d/50% c"}},
		{"a\nd\n", []string{"ls", store + "::home"}},
		{"", []string{"verify", tree, store + "::home"}},
		{"", []string{"restore", "-q", store + "::home", out}},
		{"", []string{"verify", tree, out}},
		{"", []string{"cp", "-rq", store + "::home", out + "2"}},
		{"state         complete", []string{"snapshots", "show", store + "::home"}},
		{"", []string{"snapshots", "check", "--read-data", store}},
		{"forgotten  home@", []string{"snapshots", "forget", "--keep-last", "1", store}},
		{"", []string{"snapshots", "prune", store}},
		{"", []string{"snapshots", "check", store}},
		{store + "::home\n", []string{"complete", store + "::h"}},
	} {
		if c.args[0] == "complete" {
			found := make(chan []string, 1)
			(&env{}).complete(t.Context(), c.args[1], found)
			if got := strings.Join(append(<-found, ""), "\n"); got != c.want {
				t.Errorf("%s becomes %q", c.args[1], got)
			}
			continue
		}
		if got, _ := ask(t, 0, c.args...); !strings.Contains(got, c.want) {
			t.Errorf("%q prints %q, want %q", c.args, got, c.want)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"restore " + store + "::hoem " + out, "did you mean home?"}, {"ls " + store + "::hoem", "did you mean home?"}, {"mkdir " + store + "::home/x", "read-only"},
	} {
		if _, said := ask(t, exitUsage, strings.Fields(c.args)...); !strings.Contains(said, c.want) {
			t.Errorf("%s: %s", c.args, said)
		}
	}
}

// between is a proxy to a server, that calls then when it has passed n bytes on.
type between struct {
	net.Listener
	left atomic.Int64
	mu   sync.Mutex
	open []net.Conn
	gone bool
}

func proxyTo(t *testing.T, server string, n int64, then func(*between)) (b *between, url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b = &between{Listener: l}
	b.left.Store(n)
	var once sync.Once
	host, path, _ := strings.Cut(strings.TrimPrefix(server, "nfs://"), "/")
	go func() {
		for {
			here, err := l.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", host)
			if err != nil || !b.add(here, there) {
				_ = here.Close()
				continue
			}
			go func() { _, _ = io.Copy(here, there) }()
			go func() {
				for p := make([]byte, 4<<10); ; {
					n, err := here.Read(p)
					if b.left.Add(int64(-n)) < 0 {
						once.Do(func() { then(b) })
					}
					if _, werr := there.Write(p[:n]); err != nil || werr != nil {
						_ = there.Close()
						return
					}
				}
			}()
		}
	}()
	t.Cleanup(b.end)
	return b, "nfs://" + l.Addr().String() + "/" + path
}

func (b *between) add(conns ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = append(b.open, conns...)
	return !b.gone
}

// end lets nobody reach the server any more.
func (b *between) end() {
	_ = b.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = true
	for _, c := range b.open {
		_ = c.Close()
	}
}

// TestStoreLost: a store that does not answer any more ends a backup with the status of what cannot be reached, and a signal is no item that
// has failed.
func TestStoreLost(t *testing.T) {
	dir := t.TempDir()
	tree, served := filepath.Join(dir, "tree"), filepath.Join(dir, "served")
	large := make([]byte, 12<<20)
	_, _ = rand.Read(large)
	if err := errors.Join(os.Mkdir(tree, 0o755), os.Mkdir(served, 0o755), os.WriteFile(filepath.Join(tree, "large"), large, 0o644)); err != nil {
		t.Fatal(err)
	}
	server, _ := exitServer(t, served, filepath.Join(dir, "state"))
	for _, c := range []struct {
		status  int
		lost    bool
		summary string
		said    string
	}{
		{exitUnreachable, true, `"errors":1,`, "failed: 1 item"},
		{exitInterrupted, false, `"errors":0,`, "interrupted"},
	} {
		for _, asJSON := range []bool{true, false} {
			ctx, cancel := context.WithCancel(t.Context())
			b, at := proxyTo(t, server, 1<<20, func(b *between) {
				if c.lost {
					b.end()
				} else {
					cancel()
				}
			})
			args := []string{"backup", "--plain", tree, at + fmt.Sprint("store", c.status, asJSON) + "?timeo=2&retrans=1"}
			if asJSON {
				args = append(args, "--json")
			}
			var out, said bytes.Buffer
			status := run(&env{ctx: ctx, stdout: &out, stderr: &said, rand: func(p []byte) { _, _ = rand.Read(p) }}, args)
			cancel()
			b.end()
			switch {
			case status != c.status:
				t.Errorf("status %d, want %d: %s%s", status, c.status, &out, &said)
			case asJSON && !strings.Contains(out.String(), c.summary), !asJSON && !strings.Contains(said.String(), c.said),
				!asJSON && !c.lost && strings.Contains(said.String(), "failed:"):
				t.Errorf("%s%s", &out, &said)
			}
		}
	}
}

// TestStoreSecrets: what a URL has of credentials is refused, and shown nowhere.
func TestStoreSecrets(t *testing.T) {
	fakes3.Setenv(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	for _, store := range []string{"s3://AKIDKEY:HUSHHUSH@bucket/x", "s3://bucket/x?secret=HUSHHUSH", "s3://bucket/x?endpoint=http://AKIDKEY:HUSHHUSH@127.0.0.1:1"} {
		for _, args := range [][]string{
			{"backup", dir, store}, {"backup", "--json", dir, store}, {"backup", "-n", dir, store}, {"snapshots", "ls", store}, {"snapshots", "ls", "--json", store},
			{"snapshots", "check", store}, {"snapshots", "prune", store}, {"snapshots", "diff", store + "::a", store + "::b"}, {"snapshots", "show", store + "::home"},
			{"restore", store + "::home", dir}, {"restore", "--json", store + "::home", dir}, {"restore", "--job", "x", store + "::home", dir},
			{"ls", store + "::home"}, {"ls", "--json", store}, {"cat", store + "::home/a"}, {"stat", store + "::home"}, {"find", store + "::home"}, {"grep", "x", store + "::home"},
			{"du", store + "::home"}, {"scan", store + "::home"}, {"cp", "-r", store + "::home", dir}, {"verify", dir, store + "::home"}, {"sync", store + "::home", dir},
		} {
			status := exitUsage
			if args[0] == "grep" {
				status = grepStatus(exitUsage)
			}
			if out, said := ask(t, status, args...); said == "" || strings.Contains(out+said, "HUSHHUSH") || strings.Contains(out+said, "AKIDKEY") {
				t.Errorf("%q prints %s%s", args, out, said)
			}
		}
	}
}

// TestStoreInUse: a store of this host that another process has is no store that cannot be reached. The error names that process.
func TestStoreInUse(t *testing.T) {
	dir := t.TempDir()
	tree, store := filepath.Join(dir, "tree"), filepath.Join(dir, "store")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	ask(t, 0, "backup", tree, store, "--name", "t")
	const again, prunes = "-> run it again when that has ended\n", "-> run it again when that has ended; prune waits for it with --wait\n"
	for _, c := range []struct {
		o     place.StoreOptions
		who   string
		verbs map[string]string
	}{
		{place.StoreOptions{}, "it is being read by ", map[string]string{"snapshots prune": prunes, "snapshots forget --prune --keep-last 1": "; --wait waits for it\n"}},
		{place.StoreOptions{Write: true}, "it is open for writing by ", map[string]string{
			"backup " + tree: again, "snapshots prune": prunes, "snapshots forget --keep-last 1": again}},
		{place.StoreOptions{Write: true, Alone: true}, "it is open for writing by ", map[string]string{"snapshots ls": again}},
	} {
		s, err := place.OpenStore(t.Context(), store, c.o)
		if err != nil {
			t.Fatal(err)
		}
		for verb, want := range c.verbs {
			_, said := ask(t, exitIncomplete, strings.Fields(verb+" "+store)...)
			if !strings.Contains(said, "the store "+store+" is in use: "+c.who) || !strings.Contains(said, fmt.Sprintf(", process %d on host ", os.Getpid())) || !strings.Contains(said, want) {
				t.Errorf("%s: %s", verb, said)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
