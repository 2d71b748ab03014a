package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/daemon/ops"
	"github.com/nfsbox/nfsbox/internal/tools/jobs"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/silence"
	"github.com/nfsbox/nfsbox/internal/tools/upkeep"
)

// TestDocsJSON: docs/json.md has each field of each line, and no other.
func TestDocsJSON(t *testing.T) {
	page, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string][]string)
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		listed[heading] = nil
		for _, m := range regexp.MustCompile("(?m)^\\| `([^`.]+)` \\|").FindAllStringSubmatch(text, -1) {
			listed[heading] = append(listed[heading], m[1])
		}
	}
	var counters []string
	for c := progress.Files; c <= progress.FoundBytes; c++ {
		counters = append(counters, c.String())
	}
	event := []string{"path", "path_base64", "kind", "message"}
	for heading, want := range map[string][]string{
		"error":                                 append(event, "error"),
		"difference":                            event,
		"note":                                  event,
		"silent, answers":                       fieldsOf(silence.Event{}),
		"entry":                                 fieldsOf(row{}),
		"export":                                fieldsOf(exportRow{}),
		"made, removed, moved, linked, changed": fieldsOf(doneEvent{}),
		"match, context":                        fieldsOf(matchEvent{}),
		"file, count, binary":                   fieldsOf(fileEvent{}),
		"summary of grep":                       fieldsOf(grepSummary{}),
		"usage, total":                          fieldsOf(usageEvent{}),
		"mounted":                               fieldsOf(mountEvent{}),
		"checked":                               fieldsOf(checkedEvent{}),
		"unmounted":                             fieldsOf(unmountEvent{}),
		"space":                                 fieldsOf(spaceEvent{}),
		"summary of ls, stat, df, exports, ctl, cache, job, snapshots and the verbs": fieldsOf(listSummary{}),
		"summary of find":                   fieldsOf(findSummary{}),
		"row":                               fieldsOf(scanRow{}),
		"summary of scan":                   fieldsOf(scanSummary{}),
		"summary of du":                     fieldsOf(duSummary{}),
		"summary of rm":                     fieldsOf(rmSummary{}),
		"step":                              fieldsOf(doctorEvent{}),
		"summary of doctor":                 fieldsOf(doctorSummary{}),
		"progress":                          append(counters, "seconds", "totals_final", "items_per_second", "bytes_per_second", "seconds_left", "servers", "team"),
		"summary of cp, sync and restore":   fieldsOf(cpSummary{}),
		"summary of verify":                 fieldsOf(verifySummary{}),
		"snapshot":                          fieldsOf(snapshotEvent{}),
		"difference of snapshots diff":      fieldsOf(diffEvent{}),
		"summary of snapshots diff":         fieldsOf(diffSummary{}),
		"damage":                            fieldsOf(upkeep.Damage{}),
		"summary of snapshots check":        fieldsOf(checkSummary{}),
		"summary of snapshots stats":        fieldsOf(statsSummary{}),
		"summary of snapshots prune":        fieldsOf(pruneSummary{}),
		"forget":                            fieldsOf(upkeep.ForgetItem{}),
		"summary of snapshots forget":       fieldsOf(forgetSummary{}),
		"summary of backup":                 fieldsOf(backupSummary{}),
		"summary of demo":                   fieldsOf(demoSummary{}),
		"client":                            fieldsOf(ops.ControlClient{}),
		"lock":                              fieldsOf(ops.ControlLock{}),
		"dropped":                           fieldsOf(droppedRow{}),
		"cache":                             fieldsOf(cacheEvent{}),
		"cached":                            fieldsOf(cachedEvent{}),
		"cache_config":                      fieldsOf(cacheConfigEvent{}),
		"flushed, culled, pinned, unpinned": fieldsOf(cacheDoneEvent{}),
		"job":                               fieldsOf(jobEvent{}),
		"job.json":                          fieldsOf(jobs.Job{}),
	} {
		got := slices.Sorted(slices.Values(listed[heading]))
		if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
			t.Errorf("docs/json.md says of %q:\n%q, and it has\n%q", heading, got, want)
		}
	}
	if text := reflect.TypeOf(errorEvent{}); !slices.Equal(fieldsOf(errorEvent{}), []string{"path", "path_base64", "error"}) {
		t.Errorf("%v has other fields than the page", text)
	}
}

// fieldsOf are the fields that a line has in JSON, but for its type.
func fieldsOf(line any) []string { return jsonFields(reflect.TypeOf(line)) }

func jsonFields(of reflect.Type) (names []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			names = append(names, jsonFields(f.Type)...)
		case name != "" && name != "-" && name != "type":
			names = append(names, name)
		}
	}
	return names
}
