package jobs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestAttend: while a run goes on, job.json has what was counted SaveEvery ago at most.
func TestAttend(t *testing.T) {
	for _, stable := range []bool{true, false} {
		d := begin(t, t.TempDir())
		synctest.Test(t, func(t *testing.T) {
			d.Job = good()
			d.Job.State, d.Job.Ended, d.Job.Counts = Running, time.Time{}, nil
			n := uint64(0)
			end := d.Attend(Attending{
				Counts: func() map[string]uint64 { n++; return map[string]uint64{"files": n} }, Stable: stable, Told: func(err error) { t.Error(err) },
			})
			for want := range uint64(3) {
				var now Dir
				now.Root = d.Root
				if err := now.Load(); (err != nil) != (want == 0) || now.Job.Counts["files"] != want {
					t.Errorf("after %d times: %v, %v", want, now.Job.Counts, err)
				}
				time.Sleep(SaveEvery)
				synctest.Wait()
			}
			end()
			end()
		})
		end(t, d)
	}
}

// TestAttendCannotWrite: a file that cannot be replaced is told of once, and again written when it
// can be.
func TestAttendCannotWrite(t *testing.T) {
	dir := t.TempDir()
	d := begin(t, dir)
	defer end(t, d)
	inTheWay := filepath.Join(dir, fileName+".tmp", "x")
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		d.Job = good()
		told := 0
		end := d.Attend(Attending{Counts: func() map[string]uint64 { return map[string]uint64{} }, Stable: true, Told: func(error) { told++ }})
		defer end()
		time.Sleep(4 * SaveEvery)
		synctest.Wait()
		if told != 1 {
			t.Errorf("told %d times", told)
		}
		if err := os.RemoveAll(filepath.Dir(inTheWay)); err != nil {
			t.Error(err)
		}
		time.Sleep(SaveEvery)
		synctest.Wait()
		if err := d.Load(); errors.Is(err, fs.ErrNotExist) {
			t.Error("it is not written any more")
		}
	})
}

// BenchmarkSave is what Attend costs each time.
func BenchmarkSave(b *testing.B) {
	for name, stable := range map[string]bool{"synced": true, "not synced": false} {
		b.Run(name, func(b *testing.B) {
			root, err := os.OpenRoot(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = root.Close() }() // nothing was written
			d := &Dir{Root: root, Job: good()}
			for b.Loop() {
				if err := d.save(stable); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
