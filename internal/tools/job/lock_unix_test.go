//go:build unix

package job

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestRecordOfDyingRun: the record is locked by a run that ends only after a while. The next
// run waits for that.
func TestRecordOfDyingRun(t *testing.T) {
	dir := recordDir(t)
	synctest.Test(t, func(t *testing.T) {
		first, err := openRecord(t.Context(), dir, nil, "id")
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(lockWait/2, func() {
			if err := first.close(); err != nil {
				t.Error(err)
			}
		})
		start := time.Now()
		second, err := openRecord(t.Context(), dir, nil, "id")
		if err != nil || time.Since(start) < lockWait/2 {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		if err := second.close(); err != nil {
			t.Error(err)
		}
	})
}
