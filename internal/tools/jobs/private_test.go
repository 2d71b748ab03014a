//go:build unix

package jobs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOthersWrite: a record that others may write to is refused, and so are those in a directory that they may
// write to. The error says which it is. The other records are listed.
func TestOthersWrite(t *testing.T) {
	for _, c := range []struct {
		path     string // in the Store
		good     string // what is listed nevertheless
		unfound  string
		listed   bool // with its error
		reopened bool
	}{
		{"jobs/j", "0123456789ab good", "j", true, false},
		{"jobs/j/job.json", "0123456789ab good", "j", true, false},
		{"jobs/j/copied", "0123456789ab good", "j", true, false},
		{"jobs/j/target", "0123456789ab good", "j", true, false},
		{"jobs/j/control.json", "0123456789ab good", "j", true, false},
		{"jobs", "0123456789ab", "j", false, false},
		{"unfinished", "good j", someID[:6], false, true},
		{"unfinished/" + someID, "good j", someID[:6], true, true},
		{"unfinished/" + someID + "/begun", "good j", someID[:6], true, true},
		{".", "", "good", false, false},
	} {
		for _, mode := range []os.FileMode{0o720, 0o702, 0o777 | os.ModeSticky} {
			s := Store(filepath.Join(t.TempDir(), "nfsbox"))
			end(t, named(t, s, "good"))
			end(t, named(t, s, "j"))
			for _, name := range []string{"target", "control.json"} {
				if err := os.WriteFile(filepath.Join(s.Path("j"), name), []byte(oldInside), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			withoutName(t, s, someID)
			path := filepath.Join(string(s), c.path)
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			is := func(err error) bool {
				return errors.Is(err, ErrForeign) && strings.Contains(err.Error(), path+", of mode 0") && strings.Contains(err.Error(), "chmod go-w")
			}
			var good []string
			listed := false
			err := s.List(func(r Record, err error) {
				if err == nil {
					good = append(good, r.Name)
				} else if listed = true; !is(err) {
					t.Errorf("%s: %s: %v", c.path, r.Name, err)
				}
			})
			for _, name := range strings.Fields(c.good) {
				if !strings.Contains(strings.Join(good, " "), name) {
					t.Errorf("%s: %s is not listed", c.path, name)
				}
			}
			if len(good) != len(strings.Fields(c.good)) || listed != c.listed || !c.listed && !is(err) || c.listed && err != nil {
				t.Errorf("%s, mode %v: %q are listed, %v, %v", c.path, mode, good, listed, err)
			}
			if r, err := s.Find(c.unfound); !is(err) || len(r.Job.Args) > 0 {
				t.Errorf("%s: it is found: %v", c.path, err)
			}
			d, err := s.Open(t.Context(), "j")
			if c.reopened != (err == nil) || err != nil && !is(err) {
				t.Errorf("%s: it is opened: %v", c.path, err)
			}
			if err == nil {
				end(t, d)
			}
		}
	}
}

// TestOthersOrder: of an order that others may have written nothing is done.
func TestOthersOrder(t *testing.T) {
	d := begin(t, t.TempDir())
	defer end(t, d)
	path := filepath.Join(d.Name(), orderFile)
	if err := os.WriteFile(path, []byte(`{"magic":"nfsbox-control","version":1,"cancel":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	o := orders{dir: d.Root}
	if _, ok, err := o.next(); ok || !errors.Is(err, ErrForeign) {
		t.Errorf("it is taken: %v, %v", ok, err)
	}
}
