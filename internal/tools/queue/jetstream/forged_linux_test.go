package jetstream

import (
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/natsd"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// TestForgedSubjects wants items of no ID to be refused once each, and what lies behind them to come.
func TestForgedSubjects(t *testing.T) {
	s := natsd.Start(t, natsd.Options{})
	b := works(t, Options{URLs: []string{s.URL()}})
	d, err := b.Open(t.Context(), testJob)
	if err != nil {
		t.Fatal(err)
	}
	w, err := b.Join(t.Context(), testJob)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{"x", "007", "-1", "+1", "18446744073709551616", "1e3", "ä"}
	for _, id := range ids {
		forge(t, s, subjectOf(testJob)+"item."+id, []byte("forged"))
	}
	if err := d.Deal(t.Context(), queue.Item{ID: 1, Body: []byte("one")}); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if l, err := w.Take(t.Context()); !errors.Is(err, queue.ErrForged) {
			t.Errorf("%s: %+v, %v", id, l, err)
		}
	}
	l, err := w.Take(t.Context())
	if err != nil || l.ID != 1 || l.Attempt != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	if err := w.Settle(t.Context(), l, true); err != nil {
		t.Error(err)
	}
}

// TestForgedJobs wants streams that strangers made to be left out of the list.
func TestForgedJobs(t *testing.T) {
	s := natsd.Start(t, natsd.Options{})
	b := works(t, Options{URLs: []string{s.URL()}})
	for _, name := range []string{"nfsbox_", "nfsbox_x_y", "nfsbox_a b", "other"} {
		config := streamConfig(testJob)
		config.Name, config.Subjects = name, []string{"nfsbox." + name[:5] + name[len(name)-1:]}
		_, _ = b.js.CreateStream(t.Context(), config) // not all of these can be made
	}
	long := testJob
	long.Name = "long"
	if _, err := b.Open(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	forge(t, s, subjectOf(long)+"job", make([]byte, queue.MaxSpec+1))
	jobs, err := b.Jobs(t.Context())
	if err != nil || len(jobs) != 1 || jobs[0].Name != testJob.Name || string(jobs[0].Spec) != "spec" {
		t.Errorf("%.50q, %v", jobs, err)
	}
}
