package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
)

// asked is one way to an exit status. In args SRV is a server of a tree, DEAD one at whose address
// nothing listens, CLOSED a directory of SRV that cannot be written to, VIEW the live view, STATE the state
// directory, BACKUPS a store with the snapshots a and b, and TMP a directory of this test.
type asked struct {
	status int
	how    string // "": as args are; "full": nothing can be written to stdout; "ended": a signal has come
	args   string
}

// TestExits reaches each status of each command, of those that its help promises, and no other.
func TestExits(t *testing.T) {
	words := strings.NewReplacer(exitWorld(t)...)
	reached := make(map[string][]int)
	for _, c := range allExits() {
		name, _, _ := strings.Cut(c.args, " ")
		reached[name] = append(reached[name], c.status)
		ctx, stop := context.WithCancel(t.Context())
		var stdout, stderr bytes.Buffer
		e := &env{ctx: ctx, stdout: &stdout, stderr: &stderr, rand: func(p []byte) { _, _ = rand.Read(p) }} // never fails
		switch c.how {
		case "full":
			e.stdout = full{}
		case "ended":
			stop()
		}
		if status := run(e, strings.Fields(words.Replace(c.args))); status != c.status {
			t.Errorf("%s (%s): status %d, want %d\n%s%s", c.args, c.how, status, c.status, &stdout, &stderr)
		}
		if c.status != exitOK && c.status != exitDiffers && stderr.Len() == 0 && name != "doctor" && (name != "grep" || c.status != 1) {
			t.Errorf("%s (%s): status %d, and not a word", c.args, c.how, c.status)
		}
		stop()
	}
	for command, all := range endings() {
		for _, x := range all {
			// A copy of demo that differs would be a fault of ours.
			// A store that backup cannot mend is one that loses what was put a moment ago: TestDifferences of tools/backup has it.
			// An umount that does something takes FUSE, and testdata/mount.txtar has it.
			if !slices.Contains(reached[command], x.status) && (command != "demo" && command != "backup" || x.status != exitDiffers) && (command != "umount" || x.status != exitOK) {
				t.Errorf("nothing shows how %s ends with %d: %s", command, x.status, x.why)
			}
		}
		for _, status := range reached[command] {
			if !slices.ContainsFunc(all, func(x ending) bool { return x.status == status }) {
				t.Errorf("%s ends with %d, and its help does not say so", command, status)
			}
		}
	}
}

// allExits are the ways to the statuses.
func allExits() []asked {
	return slices.Concat(toolExits(), []asked{
		{0, "", "demo TMP/tree -q"}, {1, "", "demo --nosuch"}, {2, "", "demo TMP/tree --to TMP/tree -q"}, {130, "ended", "demo TMP/tree"},
		{0, "ended", "serve TMP/tree --listen 127.0.0.1:0 --state-dir TMP/state2"}, {0, "", "serve TMP/tree --check --state-dir TMP/state3"},
		{1, "", "serve TMP/none"}, {1, "", "serve TMP/tree --listen 127.0.0.1:none --state-dir TMP/state4"},
		{0, "", "mount -f SRV/ TMP"}, {1, "", "mount SRV/"}, {1, "", "mount -f SRV/ TMP/none"}, {1, "", "mount -f -o soft,hard SRV/ TMP"}, {2, "full", "mount -f SRV/ TMP"},
		{32, "", "mount --foreground -o retry=0 DEAD/ TMP"}, {130, "ended", "mount --foreground SRV/ TMP"},
		{1, "", "umount TMP"}, {2, "full", "umount --json TMP"}, {130, "ended", "umount TMP"},
		{0, "", "doctor SRV/a"}, {1, "", "doctor /tmp"}, {2, "", "doctor --write CLOSED"}, {4, "", "doctor DEAD/"}, {4, "", "doctor SRV/none"},
		{130, "ended", "doctor SRV/"},
		{0, "", "cache check --dir TMP"}, {1, "", "cache check --cache-config TMP/none"}, {2, "full", "cache check --dir TMP"},
		{130, "ended", "cache check --dir TMP"},
		{0, "", "top --once VIEW"}, {1, "", "top ftp://x"}, {2, "full", "top --once VIEW"}, {4, "", "top --once 127.0.0.1:1"}, {0, "ended", "top VIEW"},
		{0, "", "ctl clients --state-dir STATE"}, {1, "", "ctl drop"}, {2, "", "ctl drop 192.0.2.1 --state-dir STATE"},
		{4, "", "ctl clients --state-dir TMP"}, {130, "ended", "ctl clients --state-dir STATE"},
		{0, "", "man TMP/man"}, {1, "", "man TMP/man more"}, {2, "", "man TMP/tree/a"},
		{0, "", "completion bash"}, {1, "", "completion csh"}, {2, "full", "completion bash"},
		{0, "ended", "worker --join nats://127.0.0.1:1 --allow SRV/a"}, {1, "", "worker"}, {4, "", "worker --join nats://127.0.0.1:1 --allow SRV/a"},
		{0, "", "urls"}, {1, "", "urls more"}, {2, "full", "urls"},
		{0, "", "version"}, {1, "", "version more"}, {2, "full", "version"},
	}, benchExits())
}

// toolExits are those of the tools for data.
func toolExits() []asked {
	all := []asked{
		{0, "", "exports SRV/"}, {1, "", "exports nfs://"}, {2, "full", "exports SRV/"}, {4, "", "exports DEAD/"}, {130, "ended", "exports SRV/"},
		{0, "", "cp -q SRV/a TMP/a"}, {1, "", "cp SRV/a"}, {1, "", "cp -r TMP/tree TMP/tree/d"}, {2, "", "cp SRV/none TMP/b"}, {4, "", "cp DEAD/a TMP/b"},
		{4, "", "cp SRV/none DEAD/b TMP"}, {130, "ended", "cp SRV/a TMP/c"},
		{0, "", "job ls"}, {1, "", "job show none"}, {1, "", "job cancel none"}, {130, "ended", "job ls"},
		{0, "", "mkdir SRV/jobdir"}, {0, "", "cp -rq --job gone SRV/empty SRV/jobdir"}, {0, "", "job show gone"}, {2, "full", "job show gone"}, {0, "", "job resume gone"},
		{1, "", "job cancel gone"}, {0, "", "mv SRV/jobdir SRV/jobmoved"}, {4, "", "job resume gone"}, {0, "", "job forget gone"},
		{0, "", "verify -q SRV/a TMP/tree/a"}, {1, "", "verify SRV/a"}, {2, "", "verify SRV/none TMP/tree"}, {3, "", "verify -q SRV/a TMP/tree/b"},
		{0, "", "sync -q SRV/ TMP/synced"}, {1, "", "sync SRV/a TMP/synced"}, {2, "", "sync SRV/none TMP/b"}, {4, "", "sync DEAD/ TMP/b"}, {130, "ended", "sync SRV/ TMP/c"},
		{0, "", "backup -q SRV/ TMP/store"}, {1, "", "backup SRV/"}, {1, "", "backup SRV/ TMP/tree"}, {2, "", "backup SRV/none TMP/store"}, {4, "", "backup DEAD/ TMP/store"},
		{0, "", "backup -q --verify TMP/kept TMP/damaged"}, {0, "", "snapshots check -q --read-data TMP/damaged"}, {130, "ended", "backup SRV/ TMP/store"},
		{4, "", "verify DEAD/a TMP/tree/a"}, {130, "ended", "verify SRV/a TMP/tree/a"},
		{0, "", "restore -q BACKUPS::a TMP/restored"}, {1, "", "restore BACKUPS TMP/x"}, {2, "", "restore BACKUPS::a/none TMP/x"}, {4, "", "restore BACKUPS::a DEAD/x"},
		{130, "ended", "restore BACKUPS::a TMP/x"},
		{0, "", "snapshots ls BACKUPS"}, {1, "", "snapshots show BACKUPS::none"}, {2, "full", "snapshots ls BACKUPS"}, {3, "", "snapshots diff BACKUPS::a BACKUPS::b"},
		{4, "", "snapshots ls TMP/" + strings.Repeat("x", 300)}, {130, "ended", "snapshots ls BACKUPS"},
		{0, "", "rm -f SRV/none"}, {1, "", "rm TMP/tree/a"}, {2, "", "rm SRV/empty"}, {4, "", "rm -f DEAD/a"}, {130, "ended", "rm SRV/a"},
	}
	for _, look := range []string{"ls", "stat", "cat", "find", "du", "df", "scan"} {
		all = append(all, asked{0, "", look + " SRV/a"}, asked{1, "", look}, asked{1, "", look + " ftp://b/c"}, asked{2, "", look + " SRV/none SRV/a"},
			asked{2, "full", look + " SRV/a"}, asked{4, "", look + " DEAD/a SRV/none"}, asked{130, "ended", look + " SRV/a"})
	}
	all = append(all, []asked{
		{0, "", "grep a SRV/a"}, {1, "", "grep x SRV/a"}, {2, "", "grep"}, {2, "", "grep ( SRV/a"}, {2, "", "grep --nosuch a SRV/a"}, {2, "", "grep a SRV/none SRV/a"},
		{2, "", "grep a SRV/empty"}, {2, "full", "grep a SRV/a"}, {2, "", "grep a DEAD/a"}, {2, "", "grep a ftp://b/c"}, {0, "", "grep -q a SRV/none SRV/a"},
		{1, "", "grep -r x SRV/empty"}, {0, "", "grep -L a SRV/a"}, {1, "", "grep -L x SRV/a"}, {130, "ended", "grep a SRV/a"},
	}...)
	for verb, done := range map[string]string{
		"mkdir": "SRV/made", "rmdir": "SRV/empty", "mv": "SRV/m SRV/moved", "ln": "SRV/a SRV/linked", "touch": "SRV/a", "chmod": "644 SRV/a", "chown": "IDS SRV/a",
	} {
		what, _, _ := strings.Cut(done, "SRV") // before the places
		to := ""
		if verb == "mv" || verb == "ln" {
			to = " SRV/empty/x"
		}
		all = append(all, asked{0, "", verb + " " + done}, asked{1, "", verb + " --nosuch " + done}, asked{2, "", verb + " " + what + "SRV/none/x" + to},
			asked{4, "", verb + " " + what + strings.ReplaceAll("SRV/x"+to, "SRV", "DEAD")}, asked{130, "ended", verb + " " + what + "SRV/a" + to})
	}
	return all
}

// benchExits are those of bench.
func benchExits() []asked {
	const few = " -n 2 --warmup 0s --no-progress "
	all := []asked{
		{0, "", "bench clean SRV/"}, {4, "", "bench clean DEAD/"},
		{0, "", "bench compare --verb getattr --rounds 1" + few + "SRV/a SRV/a"}, {4, "", "bench compare --verb getattr --rounds 1" + few + "SRV/a DEAD/a"},
	}
	for verb, args := range map[string]string{
		"null": "SRV/", "getattr": "SRV/a", "read": "SRV/a", "write": "--file-size 4K --size 1K SRV/", "list": "SRV/", "upload": "--size 1K SRV/", "echo": "SRV/",
	} {
		run := "bench " + verb + few
		all = append(all, asked{0, "", run + args}, asked{1, "", run + "-c 0 " + args}, asked{2, "full", run + "--json " + args},
			asked{4, "", run + strings.ReplaceAll(args, "SRV", "DEAD")}, asked{130, "ended", run + args})
	}
	return all
}

// full is an output without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// exitWorld is what the words of allExits stand for.
func exitWorld(t *testing.T) []string {
	t.Helper()
	tmp := t.TempDir()
	tree, state := filepath.Join(tmp, "tree"), filepath.Join(tmp, "state")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(tree, "empty"), 0o755), os.WriteFile(filepath.Join(tree, "a"), []byte("a"), 0o644),
		os.Mkdir(filepath.Join(tree, "closed"), 0o555), os.WriteFile(filepath.Join(tree, "b"), []byte("b"), 0o644), os.WriteFile(filepath.Join(tree, "m"), nil, 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	damagedStore(t, filepath.Join(tmp, "kept"), filepath.Join(tmp, "damaged"))
	url, view := exitServer(t, tree, state)
	url = strings.TrimSuffix(url, "/")
	backups, closed := filepath.Join(tmp, "backups"), url+"/closed"
	keepSnapshot(t, backups, tree, "a", time.Now())
	keepSnapshot(t, backups, filepath.Join(tree, "empty"), "b", time.Now())
	if os.Geteuid() == 0 {
		closed += "?uid=12345"
	}
	return []string{
		"SRV", url, "CLOSED", closed, "DEAD", "nfs://127.0.0.1:1", "VIEW", view, "STATE", state, "TMP", tmp, "BACKUPS", backups,
		"IDS", fmt.Sprintf("%d:%d", max(os.Geteuid(), 0), max(os.Getegid(), 0)),
	}
}

// damagedStore makes a tree of one file, and a store with a snapshot of it, of which all content is damaged, but for the
// lines of directories.
func damagedStore(t *testing.T, tree, store string) {
	t.Helper()
	if err := errors.Join(os.Mkdir(tree, 0o755), os.WriteFile(filepath.Join(tree, "a"), []byte("a"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	e := &env{ctx: t.Context(), stdout: &out, stderr: &out, rand: func(p []byte) { _, _ = rand.Read(p) }} // never fails
	if status := run(e, []string{"backup", "-q", "--plain", tree, store}); status != exitOK {
		t.Fatalf("status %d: %s", status, &out)
	}
	err := filepath.WalkDir(filepath.Join(store, "sha256"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || bytes.HasPrefix(b, []byte("\x28\xb5\x2f\xfd")) { // zstd
			return err
		}
		b[0] ^= 1
		if err := os.Chmod(path, 0o600); err != nil {
			return err
		}
		return os.WriteFile(path, b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// exitServer serves a tree, until the test ends. By a signal serve ends in good order.
func exitServer(t *testing.T, tree, state string) (url, view string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r, w := io.Pipe()
	log, ended := new(logbuf.Buffer), make(chan int, 1)
	go func() {
		args := []string{"serve", tree, "--listen", "127.0.0.1:0", "--state-dir", state, "--http", "127.0.0.1:0", "--localio", "off"}
		ended <- run(&env{ctx: ctx, stdout: w, stderr: log, rand: func(p []byte) { _, _ = rand.Read(p) }}, args)
		_ = w.Close() // an io.Pipe's never fails
	}()
	t.Cleanup(func() {
		if stop(); <-ended != exitOK {
			t.Errorf("serve has not ended well:\n%s", log.String())
		}
	})
	line, err := bufio.NewReader(r).ReadString('\n')
	at := strings.Index(log.String(), "msg=http url=")
	if err != nil || at < 0 {
		t.Fatalf("no server: %v\n%s", err, log.String())
	}
	view, _, _ = strings.Cut(log.String()[at+len("msg=http url="):], "\n")
	return strings.TrimSpace(line), strings.TrimSpace(view)
}

// TestExitsBySignal: a real signal, while a server is silent, ends a real process with 130.
func TestExitsBySignal(t *testing.T) {
	for _, args := range []string{
		"ls URL", "stat URL", "cat URL", "grep x URL", "find URL", "du URL", "df URL", "scan URL", "exports URL", "doctor URL", "rmdir URL", "rm URL", "rm -r URL", "mkdir -p URL", "touch URL", "chmod 644 URL", "chown 1:1 URL", "bench null URL",
		"ln -s text URL", "cp URL URL2", "verify URL URL2", "mv URL URL2", "ln URL URL2",
	} {
		mute, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		signalled(t, mute, strings.Fields(strings.ReplaceAll(args, "URL", "nfs://"+mute.Addr().String()+"/e/f")))
		if err := mute.Close(); err != nil {
			t.Error(err)
		}
	}
}
