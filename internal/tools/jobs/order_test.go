package jobs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// attended is a job that runs, and what it has been told, in a bubble. It ends with the test.
func attended(t *testing.T) (r Record, obeyed *[]Order, told *[]error, begin func() (end func())) {
	t.Helper()
	s := Store(filepath.Join(t.TempDir(), "nfsbox"))
	d := named(t, s, "j")
	t.Cleanup(func() { end(t, d) })
	r, err := s.Find("j")
	if err != nil {
		t.Fatal(err)
	}
	obeyed, told = new([]Order), new([]error)
	return r, obeyed, told, func() func() {
		return d.Attend(Attending{
			Counts: func() map[string]uint64 { return nil }, Obey: func(o Order) { *obeyed = append(*obeyed, o) },
			Told: func(err error) { *told = append(*told, err) },
		})
	}
}

// TestOrder: a run takes an order within a second, once, and several one after the other.
func TestOrder(t *testing.T) {
	r, obeyed, told, begin := attended(t)
	synctest.Test(t, func(t *testing.T) {
		end := begin()
		start := time.Now()
		sent := make(chan error, 2)
		for range 2 {
			go func() { sent <- r.Send(t.Context(), Order{Cancel: true}) }()
		}
		for range 2 {
			if err := <-sent; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		end()
	})
	if len(*obeyed) != 2 || len(*told) != 0 {
		t.Errorf("%v, %v", *obeyed, *told)
	}
	left(t, r.Dir)
}

// left has only the record and job.json be left in dir.
func left(t *testing.T, dir string) {
	t.Helper()
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 2 {
		t.Errorf("left: %q, %v", names, err)
	}
}

// TestOrderNotTaken: an order that nobody takes is withdrawn.
func TestOrderNotTaken(t *testing.T) {
	r, obeyed, told, _ := attended(t)
	synctest.Test(t, func(t *testing.T) {
		if err := r.Send(t.Context(), Order{Cancel: true}); !errors.Is(err, ErrNotTaken) {
			t.Error(err)
		}
	})
	left(t, r.Dir)
	if len(*obeyed)+len(*told) != 0 {
		t.Errorf("%v, %v", *obeyed, *told)
	}
}

// TestOrderOfBefore: an order of before the record was locked is none of this run. One that is given after
// that, when the run is shown as running, and before it looks for orders, is.
func TestOrderOfBefore(t *testing.T) {
	s := Store(filepath.Join(t.TempDir(), "nfsbox"))
	end(t, named(t, s, "j"))
	r, err := s.Find("j")
	if err != nil {
		t.Fatal(err)
	}
	before := filepath.Join(r.Dir, orderFile)
	if err := os.WriteFile(before, []byte(`{"magic":"nfsbox-control","version":1,"max_rate":7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := s.Open(t.Context(), "j")
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, d)
	if err := os.Remove(before); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("that of before is still there: %v", err)
	}
	var obeyed []Order
	synctest.Test(t, func(t *testing.T) {
		sent := make(chan error, 1)
		go func() { sent <- r.Send(t.Context(), Order{Cancel: true}) }()
		synctest.Wait() // it has been given
		end := d.Attend(Attending{
			Counts: func() map[string]uint64 { return nil }, Obey: func(o Order) { obeyed = append(obeyed, o) }, Told: func(err error) { t.Error(err) },
		})
		defer end()
		if err := <-sent; err != nil {
			t.Error(err)
		}
	})
	if len(obeyed) != 1 || !obeyed[0].Cancel {
		t.Errorf("it has obeyed %v", obeyed)
	}
	left(t, r.Dir)
}

// TestOrderHostile: what is no order is told of once, and changes nothing.
func TestOrderHostile(t *testing.T) {
	for _, text := range []string{
		"", "{}", "[]", "null", `{"magic":"nfsbox-control","version":2,"cancel":true}`, `{"magic":"x","version":1,"cancel":true}`,
		`{"magic":"nfsbox-control","version":1,"cancel":true}{}`, `{"magic":"nfsbox-control","version":1,"cancel":"yes"}`,
		`{"magic":"nfsbox-control","version":1,"delete":true}`,
		`{"magic":"nfsbox-control","version":1,"max_load":513}`, `{"magic":"nfsbox-control","version":1,"max_load":-1,"max_rate":5}`,
		`{"magic":"nfsbox-control","version":1,"max_rate":-5}`, `{"magic":"nfsbox-control","version":1,"max_rate":1.5}`, strings.Repeat(" ", 1<<20), "directory",
	} {
		r, obeyed, told, begin := attended(t)
		synctest.Test(t, func(t *testing.T) {
			end := begin()
			file := filepath.Join(r.Dir, orderFile)
			err := error(nil)
			if text == "directory" {
				err = os.MkdirAll(filepath.Join(file, "x"), 0o700)
			} else {
				err = os.WriteFile(file, []byte(text), 0o600)
			}
			if err != nil {
				t.Error(err)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			end()
		})
		if len(*obeyed) != 0 || len(*told) != 1 || !strings.Contains((*told)[0].Error(), orderFile) {
			t.Errorf("%.60q: %v, %v", text, *obeyed, *told)
		}
	}
}
