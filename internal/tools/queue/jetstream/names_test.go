package jetstream

import (
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// FuzzNames wants names of streams and of subjects to mean one thing each, or nothing.
func FuzzNames(f *testing.F) {
	j := queue.Job{Name: "a.b_c-d", Run: strings.Repeat("0a", 16)}
	f.Add(streamOf(j), itemSubject(j, 7))
	f.Add("nfsbox_a=_"+j.Run, subjectOf(j)+"item.007")
	f.Add("nfsbox_a._"+j.Run, subjectOf(j)+"item.18446744073709551616")
	f.Add("nfsbox__", "")
	f.Fuzz(func(t *testing.T, stream, subject string) {
		if got, ok := jobOf(stream); ok && (streamOf(got) != stream || got.Check() != nil) {
			t.Errorf("%q is of %+v, whose stream is %q", stream, got, streamOf(got))
		}
		if id, err := itemOf(j, subject); err == nil && itemSubject(j, id) != subject {
			t.Errorf("%q is of item %d, whose subject is %q", subject, id, itemSubject(j, id))
		}
		if got, ok := jobOf(streamOf(j)); !ok || got.Name != j.Name || got.Run != j.Run {
			t.Errorf("%+v comes back as %+v", j, got)
		}
	})
}
