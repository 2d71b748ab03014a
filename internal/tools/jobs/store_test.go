package jobs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/tools/job"
)

const someID = "0123456789abcdef0123456789abcdef"

// named makes the record of a job.
func named(t *testing.T, s Store, name string) *Dir {
	t.Helper()
	d := begin(t, s.Path(name))
	d.Job = good()
	if err := d.Save(); err != nil {
		t.Fatal(err)
	}
	return d
}

// withoutName makes the record of a copy without a name.
func withoutName(t *testing.T, s Store, id string) string {
	t.Helper()
	dir := filepath.Join(string(s), unnamedDir, id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, begunFile), []byte(`{"version":1,"source":"/a","dest":"/b"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// listed are the names and errors of all records.
func listed(t *testing.T, s Store) (good, bad []string) {
	t.Helper()
	if err := s.List(func(r Record, err error) {
		if err != nil {
			bad = append(bad, r.Name)
			return
		}
		good = append(good, r.Name+" "+string(r.State))
	}); err != nil {
		t.Error(err)
	}
	slices.Sort(good)
	slices.Sort(bad)
	return good, bad
}

// TestList: all records are listed, and how they stand is known by their locks.
func TestList(t *testing.T) {
	s := Store(filepath.Join(t.TempDir(), "nfsbox"))
	if good, bad := listed(t, s); len(good)+len(bad) != 0 {
		t.Errorf("where nothing is: %q, %q", good, bad)
	}
	end(t, named(t, s, "done"))
	d := named(t, s, "killed")
	d.Job.State, d.Job.Ended = Running, d.Job.Ended.AddDate(-10000, 0, 0)
	d.Job.Ended = Job{}.Ended
	if err := d.Save(); err != nil {
		t.Fatal(err)
	}
	end(t, d)
	runs := named(t, s, "runs")
	end(t, begin(t, s.Path("refused")))
	withoutName(t, s, someID)
	withoutName(t, s, strings.Repeat("f", 32)+fileSuffix)
	want := []string{"0123456789ab interrupted", "done complete", "ffffffffffff-file interrupted", "killed interrupted", "refused ", "runs running"}
	if !job.Locks {
		want[5] = "runs complete"
	}
	if good, bad := listed(t, s); !slices.Equal(good, want) || len(bad) != 0 {
		t.Errorf("%q, %q", good, bad)
	}
	end(t, runs)
	if r, err := s.Find("runs"); err != nil || r.State != Complete || r.Job.Runs != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestListHostile: what is no record is named, and the others are listed.
func TestListHostile(t *testing.T) {
	s := Store(filepath.Join(t.TempDir(), "nfsbox"))
	end(t, named(t, s, "good"))
	for _, name := range []string{"damaged", "later"} {
		end(t, named(t, s, name))
	}
	text := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(s.Path(name), fileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text("damaged", `{"magic":"nfsbox-job","version":1`)
	text("later", `{"magic":"nfsbox-job","version":99}`)
	want := []string{"\x1b[31m", "damaged", "file", "later", "link"}
	if err := os.WriteFile(s.Path("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("good", s.Path("link")); err != nil {
		want = slices.DeleteFunc(want, func(n string) bool { return n == "link" })
	}
	if err := os.Mkdir(s.Path("\x1b[31m"), 0o700); err != nil {
		want = want[1:]
	}
	good, bad := listed(t, s)
	if !slices.Equal(good, []string{"good complete"}) || !slices.Equal(bad, want) {
		t.Errorf("%q, %q", good, bad)
	}
	for _, name := range want {
		if _, err := s.Find(name); err == nil {
			t.Errorf("%q is found", name)
		}
	}
}

// TestListMany: of more records than are listed it is said that there are more.
func TestListMany(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT TESTED, -short leaves it out: ten thousand directories")
	}
	s := Store(filepath.Join(t.TempDir(), "nfsbox"))
	for i := range maxRecords + 2 {
		if err := os.MkdirAll(s.Path(fmt.Sprint("j", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	err := s.List(func(_ Record, err error) {
		if n++; err != nil {
			t.Error(err)
		}
	})
	if err == nil || n != maxRecords {
		t.Errorf("%d, %v", n, err)
	}
}

// TestFind: a copy without a name is found by the beginning of its own, if there is but one.
func TestFind(t *testing.T) {
	s := Store(filepath.Join(t.TempDir(), "nfsbox"))
	withoutName(t, s, someID)
	withoutName(t, s, someID+fileSuffix)
	withoutName(t, s, "0123456789ac"+someID[12:])
	withoutName(t, s, "ff"+someID[2:])
	for name, want := range map[string]string{
		"0123456789ab": someID, "0123456789ab-file": someID + fileSuffix, someID: someID, someID + fileSuffix: someID + fileSuffix,
		"ff23": "ff" + someID[2:], "0123456789": "", "0123456789ab0": "", "ff2": "", "none": "", "": "", "../jobs": "", "ff23-file": "",
	} {
		r, err := s.Find(name)
		if want == "" && !errors.Is(err, ErrNone) || want != "" && (err != nil || r.id != want) {
			t.Errorf("%q: %q, %v, want %q", name, r.id, err, want)
		}
	}
	end(t, named(t, s, "ff23"))
	if r, err := s.Find("ff23"); err != nil || !r.Named {
		t.Errorf("a job's own name: %+v, %v", r, err)
	}
}

// TestForget: a record goes, also a damaged one; not one that runs, and nothing that is not a record's.
func TestForget(t *testing.T) {
	s := Store(filepath.Join(t.TempDir(), "nfsbox"))
	for _, name := range []string{"j", someID[:shownID]} {
		path := s.Path(name)
		if name == "j" {
			d := named(t, s, name)
			if r, err := s.Find(name); err != nil || job.Locks && !errors.Is(s.Forget(&r), ErrRuns) {
				t.Errorf("%s: one that runs was forgotten, or %v", name, err)
			}
			end(t, d)
		} else {
			path = withoutName(t, s, someID)
		}
		r, err := s.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		foreign := filepath.Join(path, "photo.jpg")
		if err := os.WriteFile(foreign, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Forget(&r); err == nil || !strings.Contains(err.Error(), "photo.jpg") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Find(name); err != nil {
			t.Errorf("%s: it is gone: %v", name, err)
		}
		if err := errors.Join(os.Remove(foreign), os.WriteFile(filepath.Join(path, fileName), []byte("damaged"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := s.Forget(&r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
