package worker

import (
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/internal/tools/job"
)

// TestCopy: two workers copy a tree.
func TestCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.fill(20, 40)
		x.worker(srcURL, dstURL)
		x.worker(srcURL, dstURL)
		c := x.coordinate(nil)
		s, err := x.copy(t.Context(), c, nil)
		if cerr := c.Close(); cerr != nil {
			t.Error(cerr)
		}
		if s.ExitCode(err) != job.ExitDone || s.Files != 800 || s.Hardlinks != 1 {
			t.Fatalf("%v, %+v", err, s)
		}
		x.same()
	})
}
