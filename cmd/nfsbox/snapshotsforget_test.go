package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/place"
)

// agedStore is a store with two snapshots, of which the older one alone has some content, all of it old enough to be pruned.
func agedStore(t *testing.T) (store string, texts []string) {
	t.Helper()
	store, tree := filepath.Join(t.TempDir(), "store"), t.TempDir()
	now := time.Now()
	for i, content := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(tree, "file"), []byte(strings.Repeat(content, 1000)), 0o644); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, keepSnapshot(t, store, tree, "home", now.AddDate(0, 0, i-1)))
	}
	objects, err := filepath.Glob(filepath.Join(store, "sha256", "*", "*"))
	if err != nil || len(objects) == 0 {
		t.Fatal(objects, err)
	}
	old := now.Add(-2 * time.Hour)
	for _, path := range objects {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	return store, texts
}

// forgotten runs forget with --prune, and returns its summary.
func forgotten(t *testing.T, status int, args ...string) (sum forgetSummary) {
	t.Helper()
	out, _ := ask(t, status, append([]string{"snapshots", "forget", "--prune", "--json", "--no-progress"}, args...)...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := lines[len(lines)-1]
	if err := json.Unmarshal([]byte(last), &sum); err != nil || !strings.Contains(last, `"type":"summary"`) || sum.Prune == nil {
		t.Fatalf("%v: %s", err, out)
	}
	return sum
}

// TestForgetPrune: what only forgotten snapshots had is removed, and a rehearsal says before how much that is.
func TestForgetPrune(t *testing.T) {
	store, texts := agedStore(t)
	unused := func() string {
		t.Helper()
		_, said := ask(t, 0, "snapshots", "check", "--read-data", "--no-progress", store)
		_, rest, _ := strings.Cut(said, "in no use: ")
		return rest
	}
	dry := forgotten(t, 0, "-n", "--keep-last=1", store)
	if dry.Forgotten != 1 || !dry.DryRun || !dry.Prune.DryRun || dry.Prune.Removed == 0 || dry.Prune.Young != 0 || dry.Prune.Snapshots != 1 || unused() != "" {
		t.Errorf("%+v, %+v", dry, dry.Prune)
	}
	if all := forgotten(t, exitIncomplete, "-n", store, texts[0], texts[1]); all.Forgotten != 2 || all.Prune.Removed != 0 {
		t.Errorf("%+v, %+v", all, all.Prune)
	}
	got := forgotten(t, 0, "--keep-last=1", store)
	want := *dry.Prune
	want.DryRun = false
	if got.Forgotten != 1 || *got.Prune != want || unused() != "" {
		t.Errorf("%+v, %+v; want %+v", got, got.Prune, want)
	}
	ask(t, 0, "snapshots", "show", store+"::"+texts[1])
	// Of the last one all is kept, unless prune is told.
	if out, said := ask(t, exitIncomplete, "snapshots", "forget", "--prune", store, texts[1]); !strings.Contains(out, "forgotten  "+texts[1]) ||
		!strings.Contains(said, "not pruned: ") || !strings.Contains(said, "run nfsbox snapshots prune "+store+" --all") {
		t.Errorf("%s\n%s", out, said)
	}
}

// TestForgetPruneReaders: in a store of this host that somebody reads nothing is forgotten, and --wait waits.
func TestForgetPruneReaders(t *testing.T) {
	store, texts := agedStore(t)
	reader, err := place.OpenStore(t.Context(), store, place.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, said := ask(t, exitIncomplete, "snapshots", "forget", "--prune", "--keep-last=1", store)
	_, shown := ask(t, 0, "snapshots", "show", store+"::"+texts[0])
	if err := errors.Join(err, reader.Close()); err != nil || !strings.Contains(said, "it is being read") || shown != "" {
		t.Errorf("%v, %s, %s", err, said, shown)
	}
	if _, said := ask(t, exitUsage, "snapshots", "forget", "--wait", "--keep-last=1", store); !strings.Contains(said, "--wait is for --prune") {
		t.Error(said)
	}
}
