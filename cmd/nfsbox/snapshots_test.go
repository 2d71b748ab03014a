package main

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/dir"
	"github.com/nfsbox/nfsbox/internal/tools/backup"
	"github.com/nfsbox/nfsbox/internal/tools/dirfs"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// keepSnapshot takes a snapshot of a directory into the store at path, which is made if it is not there.
func keepSnapshot(t *testing.T, path, tree, name string, at time.Time) (text string) {
	t.Helper()
	var sum backup.Summary
	withStore(t, path, func(s object.Store) {
		f, err := dirfs.New(tree, dirfs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = vfs.CloseFS(f) }() // nothing was written
		root, _, err := f.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sum, err = backup.Run(t.Context(), backup.Options{
			FS: f, Root: root, Store: s, Now: func() time.Time { return at }, Meta: snapshot.Meta{Name: name, Source: tree, Tags: []string{"tag"}},
		})
		if err != nil || !sum.Complete {
			t.Fatalf("%v %+v", err, sum)
		}
	})
	return sum.Snapshot
}

// withStore opens a store, and closes it.
func withStore(t *testing.T, path string, do func(object.Store)) {
	t.Helper()
	made := os.Mkdir(path, 0o700)
	s, err := dir.Open(path, dir.Options{Create: made == nil, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	do(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// ask runs a command, which has to end with a status, and returns what it prints.
func ask(t *testing.T, status int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, messages bytes.Buffer
	if got := run(&env{ctx: t.Context(), stdout: &out, stderr: &messages, rand: func(p []byte) { _, _ = rand.Read(p) }}, args); got != status {
		t.Errorf("%q: status %d, want %d\n%s%s", args, got, status, &out, &messages)
	}
	return out.String(), messages.String()
}

// TestSnapshots: the snapshots of a store are listed, the newest last, shown and compared.
func TestSnapshots(t *testing.T) {
	store, tree := filepath.Join(t.TempDir(), "store"), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "a")
	write("gone", "gone")
	at := time.Now().Add(-time.Hour)
	for _, name := range []string{"a", "."} { // what is changed below has another time then, however coarse the clock of files is
		if err := os.Chtimes(filepath.Join(tree, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	first := keepSnapshot(t, store, tree, "home", at)
	write("a", "longer")
	write("new \x1b[31m", "")
	if err := os.Remove(filepath.Join(tree, "gone")); err != nil {
		t.Fatal(err)
	}
	other := keepSnapshot(t, store, tree, "another", at.Add(time.Second))
	second := keepSnapshot(t, store, tree, "home", at.Add(2*time.Second))

	out, _ := ask(t, 0, "snapshots", "ls", store)
	var order []string
	for line := range strings.Lines(out) {
		order = append(order, strings.Fields(line)[2])
	}
	if got := strings.Join(order, " "); got != first+" "+other+" "+second {
		t.Errorf("listed as %s:\n%s", got, out)
	}
	if out, _ := ask(t, 0, "snapshots", "ls", "--json", store, "home"); strings.Count(out, `"type":"snapshot"`) != 2 || strings.Contains(out, other) ||
		!strings.Contains(out, `"complete":true,"partial":false,`) || !strings.Contains(out, `"tags":["tag"]`) || !strings.Contains(out, `"type":"summary","entries":2,"errors":0}`) {
		t.Error(out)
	}
	if out, _ := ask(t, 0, "snapshots", "show", store+"::home"); !strings.Contains(out, second) || !strings.Contains(out, "tags          tag\n") {
		t.Error(out)
	}
	out, said := ask(t, 3, "snapshots", "diff", store+"::"+first, store+"::home")
	for _, want := range []string{"M  a: content: 1 B, now 6 B; mtime\n", "-  gone\n", "+  new \\x1b[31m\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if !strings.Contains(said, "different: 1 added, 1 removed, 1 changed, 1 with other attributes") { // the top directory has another time
		t.Error(said)
	}
	if out, _ := ask(t, 3, "snapshots", "diff", "--json", store+"/::"+first+"/a", store+"::home/a"); !strings.Contains(out, `"path":"","kind":"changed","object":"file","what":["content","mtime"]`) {
		t.Error(out)
	}
	ask(t, 0, "snapshots", "diff", store+"::another", store+"::home")

	year := strings.TrimPrefix(first, "home@")[:4]
	for _, c := range []struct {
		status int
		args   string
		want   string
	}{
		{1, "ls STORE none", "the store has no"},
		{1, "ls STORE hime", "did you mean home?"},
		{1, "ls STORE Home", "not a name of snapshots"},
		{4, "ls STORE/none", "there is no such directory"},
		{4, "ls TREE", "there is no .nfsbox-store in it"},
		{1, "show STORE", "names no snapshot: give STORE::NAME"},
		{1, "show STORE::", "names no snapshot"},
		{1, "show STORE::home@1999", "lists those of that name"},
		{1, "show STORE::home@" + year, first + ", " + second + ": give more"},
		{1, "diff STORE::home@" + year + " STORE::home", "give more"},
		{0, "show STORE::another@" + year, ""},
		{0, "diff STORE::another@" + year + " STORE::home", ""},
		{1, "show STORE::home/a", "names no snapshot"},
		{1, "diff STORE::home TREE::home", "are of two stores"},
		{2, "diff STORE::home/none STORE::home", "no such file"},
	} {
		_, said := ask(t, c.status, append([]string{"snapshots"}, strings.Fields(strings.NewReplacer("STORE", store, "TREE", tree).Replace(c.args))...)...)
		if !strings.Contains(said, c.want) && c.want != "the store has no" {
			t.Errorf("%s: %s", c.args, said)
		}
	}
}

// TestSnapshotsDamaged: a root that is damaged is named, and the others are listed.
func TestSnapshotsDamaged(t *testing.T) {
	store, tree := filepath.Join(t.TempDir(), "store"), t.TempDir()
	first := keepSnapshot(t, store, tree, "home", time.Now().Add(-time.Hour))
	second := keepSnapshot(t, store, tree, "home", time.Now())
	withStore(t, store, func(s object.Store) {
		key := "snapshots/" + strings.Replace(first, "@", "/", 1)
		if _, err := s.Put(t.Context(), key, strings.NewReader("{}\n"), object.PutOptions{Size: 3}); err != nil {
			t.Fatal(err)
		}
	})
	out, said := ask(t, 2, "snapshots", "ls", store)
	if !strings.Contains(out, second) || strings.Contains(out, first) || !strings.Contains(said, first+": object snapshots/home/") {
		t.Errorf("%s\n%s", out, said)
	}
	ask(t, 0, "snapshots", "show", store+"::home")
	ask(t, 2, "snapshots", "show", store+"::"+first)
}

// TestSnapshotsForeign: something else in the place of a root is named, the other snapshots are listed, checked and judged, and a prune
// says what to do.
func TestSnapshotsForeign(t *testing.T) {
	store, tree := filepath.Join(t.TempDir(), "store"), t.TempDir()
	first := keepSnapshot(t, store, tree, "home", time.Now().Add(-time.Hour))
	second := keepSnapshot(t, store, tree, "home", time.Now())
	_, id, _ := strings.Cut(first, "@")
	root := filepath.Join(store, "snapshots", "home", "=20", id)
	if err := errors.Join(os.Remove(root), os.Mkdir(root, 0o700)); err != nil {
		t.Fatal(err)
	}
	out, said := ask(t, 2, "snapshots", "ls", store)
	if !strings.Contains(out, second) || strings.Contains(out, first) || !strings.Contains(said, first+": object snapshots/home/"+id) {
		t.Errorf("%s\n%s", out, said)
	}
	out, said = ask(t, 2, "snapshots", "check", "--no-progress", store)
	if !strings.Contains(out, "damaged: object snapshots/home/"+id) || !strings.Contains(out, "hurts "+first+": /") || !strings.Contains(said, "checked: 1 snapshot") {
		t.Errorf("%s\n%s", out, said)
	}
	if _, said = ask(t, 2, "snapshots", "prune", "--no-progress", store); !strings.Contains(said, "nothing is removed") || !strings.Contains(said, "forget it as "+first) {
		t.Error(said)
	}
	if out, said = ask(t, 2, "snapshots", "forget", "--keep-last=1", store); !strings.Contains(out, "kept       "+second) || !strings.Contains(said, first) {
		t.Errorf("%s\n%s", out, said)
	}
	ask(t, 0, "ls", store+"::home")
	if _, said = ask(t, 2, "ls", store+"::"+first); !strings.Contains(said, store+"::"+first+": object snapshots/home/") {
		t.Error(said)
	}
}

// TestSnapshotsHidden: something else in the place of the directory of a name is named, and the snapshots of other names are listed, checked and
// judged.
func TestSnapshotsHidden(t *testing.T) {
	store, tree := filepath.Join(t.TempDir(), "store"), t.TempDir()
	keepSnapshot(t, store, tree, "a", time.Now())
	other := keepSnapshot(t, store, tree, "home", time.Now())
	keepSnapshot(t, store, tree, "work", time.Now())
	for _, name := range []string{"a", "work"} {
		dir := filepath.Join(store, "snapshots", name)
		if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	out, said := ask(t, 2, "snapshots", "ls", store)
	if !strings.Contains(out, other) || !strings.Contains(said, "object snapshots/a/: ") || !strings.Contains(said, "object snapshots/work/: ") {
		t.Errorf("%s\n%s", out, said)
	}
	out, said = ask(t, 2, "snapshots", "check", "--no-progress", store)
	if !strings.Contains(out, "damaged: object snapshots/a/: ") || !strings.Contains(out, "hurts work@: /") || !strings.Contains(said, "checked: 1 snapshot") {
		t.Errorf("%s\n%s", out, said)
	}
	if _, said = ask(t, 2, "snapshots", "prune", "--no-progress", store); !strings.Contains(said, "nothing is removed") || !strings.Contains(said, "move what is not the store's out of it") {
		t.Error(said)
	}
	if out, said = ask(t, 2, "snapshots", "forget", "--keep-last=1", store); !strings.Contains(out, "kept       "+other) || !strings.Contains(said, "snapshots/work/") {
		t.Errorf("%s\n%s", out, said)
	}
	ask(t, 0, "ls", store+"::home")
}

// TestSnapshotsForget: what no rule keeps is forgotten, and nothing without a rule.
func TestSnapshotsForget(t *testing.T) {
	store, tree := filepath.Join(t.TempDir(), "store"), t.TempDir()
	now := time.Now()
	var all []string
	for days := 3; days >= 0; days-- {
		all = append(all, keepSnapshot(t, store, tree, "home", now.AddDate(0, 0, -days)))
	}
	other := keepSnapshot(t, store, tree, "other", now)
	left := func() string {
		t.Helper()
		out, _ := ask(t, 0, "snapshots", "ls", "--json", store)
		var names []string
		for line := range strings.Lines(out) {
			if _, rest, ok := strings.Cut(line, `"snapshot":"`); ok {
				name, _, _ := strings.Cut(rest, `"`)
				names = append(names, name)
			}
		}
		return strings.Join(names, " ")
	}
	was := left()
	common := now.AddDate(0, 0, -2).UTC().Format("2006") // of two snapshots at least
	for _, c := range []struct {
		status     int
		args, want string
	}{
		{1, "STORE", "no rule says what to keep"},
		{1, "STORE --name home", "no rule says what to keep"},
		{1, "STORE --keep-last=-1", "take numbers from 0"},
		{1, "STORE --keep-within=x", "is no age"},
		{1, "STORE --keep-last=1 --name Home", "not a name of snapshots"},
		{1, "STORE home@20260101t000000.000z", "no such snapshot"},
		{1, "STORE " + all[0] + " home@2", "at least the first 4 characters"},
		{1, "STORE home@", "is not a name of snapshots"},
		{1, "STORE home", "is not a name of snapshots"},
		{1, "STORE " + all[0] + " home@" + common, "give more of the ID"},
		{0, "-n STORE " + all[0][:13] + " " + all[0], "1 would be forgotten"},
		{4, "STORE/none --keep-last=1", "there is no such directory"},
		{0, "-n STORE --name home --keep-last=1", "1 kept, 3 would be forgotten"},
		{0, "STORE --keep-last=1 --tag another", ""},
		{0, "STORE --keep-within=2w", "5 kept"},
	} {
		_, said := ask(t, c.status, append([]string{"snapshots", "forget"}, strings.Fields(strings.ReplaceAll(c.args, "STORE", store))...)...)
		if !strings.Contains(said, c.want) || left() != was {
			t.Errorf("%s: %s\nleft: %s", c.args, said, left())
		}
	}
	out, said := ask(t, 0, "snapshots", "forget", store, "--name=home", "--keep-daily=2", "--tag=tag")
	if !strings.Contains(out, "forgotten  "+all[0]+"  (no rule)\n") || !strings.Contains(out, "kept       "+all[3]+"  (daily)\n") || !strings.Contains(said, "2 kept, 2 forgotten") {
		t.Errorf("%s\n%s", out, said)
	}
	if got, want := left(), strings.Join([]string{all[2], all[3], other}, " "); got != want {
		t.Errorf("%s are left, want %s", got, want)
	}
	out, _ = ask(t, 0, "snapshots", "forget", "--json", store, all[2][:13])
	if !strings.Contains(out, `"type":"forget","snapshot":"`+all[2]+`"`) || !strings.Contains(out, `"forgotten":true,"why":["named"]`) || !strings.Contains(out, `"type":"summary","dry_run":false,"kept":0,"forgotten":1,`) {
		t.Error(out)
	}
}

// TestSnapshotsUpkeep: a store is checked, and what a forgotten snapshot had would be pruned; of an empty one nothing is.
func TestSnapshotsUpkeep(t *testing.T) {
	b := newRestoreBed(t)
	for _, read := range []string{"--progress=none", "--read-data", "--read-data=50%"} {
		if _, said := ask(t, 0, "snapshots", "check", "--no-progress", read, b.store); !strings.Contains(said, "all is there: 1 snapshot, ") ||
			read != "--read-data=50%" && strings.Contains(said, "read: ") != (read == "--read-data") { // half of four objects may be none
			t.Errorf("%s: %s", read, said)
		}
	}
	ask(t, 1, "snapshots", "check", "--read-data=0%", b.store)
	ask(t, 4, "snapshots", "check", b.tree)
	if _, said := ask(t, 0, "snapshots", "prune", "--no-progress", b.store); !strings.Contains(said, "store: 1 snapshot, ") || strings.Contains(said, "removed") {
		t.Error(said)
	}
	ask(t, 0, "snapshots", "forget", b.store, b.text)
	if _, said := ask(t, 1, "snapshots", "prune", "--no-progress", b.store); !strings.Contains(said, "--all") {
		t.Error(said)
	}
	// What is younger than an hour stays.
	if out, _ := ask(t, 0, "snapshots", "prune", "--all", "--dry-run", "--json", "--no-progress", b.store); !strings.Contains(out, `"type":"summary","dry_run":true,"snapshots":0,`) || !strings.Contains(out, `"removed_objects":0,`) {
		t.Error(out)
	}
}

// hears is a writer that calls said, once, when text was written to it.
type hears struct {
	all  []byte
	text string
	said func()
}

func (h *hears) Write(p []byte) (int, error) {
	h.all = append(h.all, p...)
	if h.said != nil && strings.Contains(string(h.all), h.text) {
		h.said()
		h.said = nil
	}
	return len(p), nil
}

// TestPruneReaders wants a prune to give way to a reader of a store on this host, or to wait for its end, and one that
// misses an object to say so by its status.
func TestPruneReaders(t *testing.T) {
	b := newRestoreBed(t)
	reader, err := place.OpenStore(t.Context(), b.store, place.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	shut := sync.OnceFunc(func() {
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	})
	defer shut()
	if _, said := ask(t, exitIncomplete, "snapshots", "prune", b.store); !strings.Contains(said, "it is being read") {
		t.Error(said)
	}
	messages := &hears{text: "waiting: ", said: shut}
	e := &env{ctx: t.Context(), stdout: io.Discard, stderr: messages, rand: func(p []byte) { _, _ = rand.Read(p) }}
	if status := run(e, []string{"snapshots", "prune", "--wait", "--no-progress", b.store}); status != exitOK || messages.said != nil {
		t.Errorf("status %d: %s", status, messages.all)
	}
	objects, err := filepath.Glob(filepath.Join(b.store, "sha256", "*", "*"))
	if err != nil || len(objects) == 0 {
		t.Fatal(objects, err)
	}
	w, err := place.OpenStore(t.Context(), b.store, place.StoreOptions{Write: true, Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	// Of a part of the manifest prune says that the snapshot cannot be read. The pack is the largest object.
	pack := slices.MaxFunc(objects, func(x, y string) int { return cmp.Compare(bytesAt(t, x), bytesAt(t, y)) })
	if err := errors.Join(w.Delete(t.Context(), "sha256/"+filepath.Base(pack)), w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, said := ask(t, exitIncomplete, "snapshots", "prune", "--no-progress", b.store); !strings.Contains(said, "missing: 1 object") {
		t.Error(said)
	}
}

func bytesAt(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
