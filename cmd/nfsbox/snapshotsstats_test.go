package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestSnapshotsStats: the numbers of a store, of a name and of one snapshot, for people and for programs.
func TestSnapshotsStats(t *testing.T) {
	store, texts := agedStore(t)
	out, _ := ask(t, 0, "snapshots", "stats", "--no-progress", store)
	for _, want := range []string{"snapshots     2 of 1 name\n", "files         4 names of 2.0 KiB\n", "\nstored        ", " objects of ", "\nof it packs   2 packs of ", "\nratio         "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, c := range []struct {
		args      string
		snapshots uint64
		whole     bool
	}{{"STORE", 2, true}, {"STORE home", 2, false}, {"STORE::home", 1, false}, {"STORE::" + texts[0][:len(texts[0])-1], 1, false}} {
		out, _ := ask(t, 0, append([]string{"snapshots", "stats", "--json", "--no-progress"}, strings.Fields(strings.ReplaceAll(c.args, "STORE", store))...)...)
		var sum statsSummary
		if err := json.Unmarshal([]byte(out), &sum); err != nil || !strings.Contains(out, `"type":"summary"`) {
			t.Fatalf("%s: %v: %s", c.args, err, out)
		}
		if sum.Snapshots != c.snapshots || sum.RestoreBytes != 1000*c.snapshots || sum.Names != 2*c.snapshots || sum.Packs != c.snapshots ||
			(sum.Unused != nil) != c.whole || sum.Ratio != float64(sum.RestoreBytes)/float64(sum.Bytes) {
			t.Errorf("%s: %s", c.args, out)
		}
	}
	for args, want := range map[string]string{
		"STORE hime": "did you mean home?", "STORE Home": "not a name", "STORE::home/file": "neither a store nor a snapshot", "STORE::home home": "neither a store nor a snapshot",
		"STORE::home@1999": "lists those of that name",
	} {
		if _, said := ask(t, 1, append([]string{"snapshots", "stats"}, strings.Fields(strings.ReplaceAll(args, "STORE", store))...)...); !strings.Contains(said, want) {
			t.Errorf("%s: %s", args, said)
		}
	}
	ask(t, exitUnreachable, "snapshots", "stats", store+"/none")
}
