package jetstream

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// Names of streams and tokens of subjects have no dots, and names of jobs no "=".
func safe(name string) string   { return strings.ReplaceAll(name, ".", "=") }
func plain(token string) string { return strings.ReplaceAll(token, "=", ".") }

const (
	subjects = "nfsbox."
	streams  = "nfsbox_"
	consumer = "workers"
)

// streamOf is the name of a run's stream.
func streamOf(j queue.Job) string { return streams + safe(j.Name) + "_" + j.Run }

// jobOf is the job of a stream, but for its Spec, if the stream's name can be one of ours.
func jobOf(stream string) (j queue.Job, ok bool) {
	rest, ok := strings.CutPrefix(stream, streams)
	at := strings.LastIndexByte(rest, '_')
	if !ok || at < 0 || strings.Contains(rest, ".") {
		return j, false
	}
	j = queue.Job{Name: plain(rest[:at]), Run: rest[at+1:]}
	return j, j.Check() == nil
}

// subjectOf is the beginning of a run's subjects.
func subjectOf(j queue.Job) string { return jobSubject(j.Name) + j.Run + "." }

// jobSubject is the beginning of the subjects of a job's runs.
func jobSubject(name string) string { return subjects + safe(name) + "." }

func itemSubject(j queue.Job, id uint64) string { return fmt.Sprint(subjectOf(j), "item.", id) }

// itemOf is the ID in an item's subject.
func itemOf(j queue.Job, subject string) (id uint64, err error) {
	text, ok := strings.CutPrefix(subject, subjectOf(j)+"item.")
	if ok {
		id, err = strconv.ParseUint(text, 10, 64)
	}
	if !ok || err != nil || itemSubject(j, id) != subject {
		return 0, fmt.Errorf("job %s, subject %.200q: %w", j.Name, subject, queue.ErrForged)
	}
	return id, nil
}
