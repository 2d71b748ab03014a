package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/job"
)

// good is a job that has ended.
func good() Job {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return Job{
		Magic: magic, Version: version, Command: "cp", Source: "nfs://h/e", Dest: "/d\xff\n", Target: Inside,
		From: Origin{[2]uint64{1, 1<<64 - 1}, 3, -4}, Args: []Text{"cp", "-r", "a\xffb\n", "{", ""}, Dir: "/home", State: Complete,
		Runs: 2, Begun: begun, Ended: begun.Add(time.Hour), Counts: map[string]uint64{"files": 1<<64 - 1},
	}
}

// openAt opens the job with the directory dir.
func openAt(ctx context.Context, t *testing.T, dir string) (*Dir, error) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { // that of a test has what the umask leaves
		t.Fatal(err)
	}
	all, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = all.Close() }() // nothing was written
	return open(ctx, all, filepath.Base(dir))
}

func begin(t *testing.T, dir string) *Dir {
	t.Helper()
	d, err := openAt(t.Context(), t, dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func end(t *testing.T, d *Dir) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestSave: what is saved comes back, and nothing else is in the directory than it and the record.
func TestSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "job")
	d := begin(t, dir)
	if !reflect.DeepEqual(d.Job, Job{}) {
		t.Errorf("a new job is %+v", d.Job)
	}
	want := good()
	for _, state := range []State{Running, Interrupted, Failed, Complete} {
		if want.State = state; state == Running {
			want.Ended = time.Time{}
		} else {
			want.Ended = want.Begun.Add(time.Hour)
		}
		d.Job = want
		if err := d.Save(); err != nil {
			t.Fatal(err)
		}
		end(t, d)
		if d = begin(t, dir); !reflect.DeepEqual(d.Job, want) {
			t.Errorf("%+v came back as %+v", want, d.Job)
		}
	}
	end(t, d)
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 2 {
		t.Errorf("%q, %v", names, err)
	}
}

// TestSaveRefused: what could not be read again is not written.
func TestSaveRefused(t *testing.T) {
	d := begin(t, t.TempDir())
	defer end(t, d)
	for what, change := range map[string]func(*Job){
		"long": func(j *Job) { j.Args = []Text{Text(strings.Repeat("x", maxFile))} }, "no state": func(j *Job) { j.State = "" },
		"no target": func(j *Job) { j.Target = "" }, "no run": func(j *Job) { j.Runs = 0 },
	} {
		d.Job = good()
		change(&d.Job)
		if err := d.Save(); err == nil {
			t.Errorf("%s: saved", what)
		}
		if _, err := d.Lstat(fileName); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", what, err)
		}
	}
	d.Job = good()
	d.Job.State, d.Job.Error = Failed, strings.Repeat("x", maxFile)
	if err := d.Save(); err != nil {
		t.Errorf("a long error: %v", err)
	}
}

// TestHostile: a file that is not ours, or makes no sense, is an error that says so. Nothing is
// changed.
func TestHostile(t *testing.T) {
	j := good()
	text, err := j.encode()
	if err != nil {
		t.Fatal(err)
	}
	with := func(field string, value any) string {
		var fields map[string]any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&fields); err != nil {
			t.Fatal(err)
		}
		if fields[field] = value; value == nil {
			delete(fields, field)
		}
		b, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range []struct{ text, says string }{
		{"", "not a file of ours"}, {"[]", "not a file of ours"}, {"null", "not a file of ours"}, {"{}", "not a file of ours"},
		{string(text[:len(text)/2]), "not a file of ours"}, {with("magic", "other"), "not a file of ours"},
		{with("version", 2), "limits, and version 2"}, {with("limits", map[string]any{}), "limits, and version 1"}, {with("version", 3), "version 3, which this program does not know"}, {with("version", 0), "version 0"},
		{with("version", "1"), "not a file of ours"}, {with("more", 1), "damaged"}, {string(text) + "{}", "not a file of ours"},
		{string(text) + strings.Repeat(" ", maxFile), "more than"},
		{with("command", nil), "no command"}, {with("source", ""), "no source"}, {with("dest", nil), "no dest"},
		{with("target", "elsewhere"), "elsewhere"}, {with("dest", map[string]any{"base64": "eA==", "more": 1}), "damaged"}, {with("dest", map[string]any{}), "no source, or no dest"},
		{with("state", "done"), "done"}, {with("args", nil), "no args"},
		{with("counts", nil), "no counts"}, {with("counts", map[string]int{"files": -1}), "damaged"}, {with("runs", 0), "never run"},
		{with("runs", 1.5), "damaged"}, {with("begun", nil), "times"}, {with("ended", nil), "times"}, {with("begun", "yesterday"), "damaged"},
		{with("from", map[string]any{"fsid": []int{1}, "fileid": "x"}), "damaged"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openAt(t.Context(), t, dir); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), fileName) {
			t.Errorf("%.99q: error %v, want one with %q", c.text, err, c.says)
		}
		if after, err := os.ReadFile(filepath.Join(dir, fileName)); err != nil || string(after) != c.text {
			t.Errorf("%.99q: the file was changed, %v", c.text, err)
		}
	}
}

// TestEarlier: the files of earlier programs are read, as far as they are there.
func TestEarlier(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		want  Job
		fails bool
	}{
		{map[string]string{"target": "nfsbox-target-1 itself\n"}, Job{Target: Itself}, false},
		{map[string]string{
			"target": "nfsbox-target-1 inside\n", "places": "nfsbox-places-1\n\"nfs://h/e\"\n\"/d\\n\"\n", "source": "nfsbox-source-1 1 2 3 -4\n",
		}, Job{Target: Inside, Command: "cp", Source: "nfs://h/e", Dest: "/d\n", From: Origin{[2]uint64{1, 2}, 3, -4}}, false},
		{map[string]string{"places": "of somebody else", "source": "likewise"}, Job{}, false},
		{map[string]string{"target": "of somebody else"}, Job{}, true},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		d, err := openAt(t.Context(), t, dir)
		if (err != nil) != c.fails {
			t.Errorf("%q: %v", c.files, err)
		}
		if err != nil {
			continue
		}
		if !reflect.DeepEqual(d.Job, c.want) {
			t.Errorf("%q: %+v", c.files, d.Job)
		}
		d.Job = good()
		if err := d.Save(); err != nil {
			t.Fatal(err)
		}
		end(t, d)
		d = begin(t, dir)
		if d.Job.Target != good().Target {
			t.Errorf("%q: job.json does not count: %+v", c.files, d.Job)
		}
		end(t, d)
	}
}

// TestInUse: a job that another run has is refused, and not changed.
func TestInUse(t *testing.T) {
	if !job.Locks {
		t.Skip("this system has no locks")
	}
	dir := t.TempDir()
	d := begin(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it is not waited for
	if _, err := openAt(ctx, t, dir); !errors.Is(err, job.ErrRecord) {
		t.Errorf("error %v", err)
	}
	end(t, d)
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if want := []string{filepath.Join(dir, job.RecordFile)}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v", names, err)
	}
}

func TestAnother(t *testing.T) {
	was := Origin{FSID: [2]uint64{1, 2}, FileID: 3, Born: 4}
	for what, c := range map[string]struct {
		now  Origin
		want bool
	}{
		"the same":                   {was, false},
		"not known":                  {Origin{}, false},
		"another number":             {Origin{was.FSID, 5, 4}, true},
		"mounted again":              {Origin{[2]uint64{9, 9}, 3, 4}, false},
		"mounted again, no birth":    {Origin{[2]uint64{9, 9}, 3, 0}, false},
		"of another file system":     {Origin{[2]uint64{9, 9}, 3, 5}, true},
		"born again, as overlays do": {Origin{was.FSID, 3, 5}, false},
	} {
		if got := was.Another(c.now); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// FuzzJob: what is read of any file can be written, and read again.
func FuzzJob(f *testing.F) {
	j := good()
	text, err := j.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"magic":"nfsbox-job","version":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := decode(b)
		if err != nil {
			return
		}
		text, err := j.encode()
		if err != nil {
			if len(b) > maxFile/8 { // it grows by what is escaped
				return
			}
			t.Fatalf("%+v: %v", j, err)
		}
		if again, err := decode(text); err != nil || again.State != j.State || again.Source != j.Source || !reflect.DeepEqual(again.Counts, j.Counts) {
			t.Errorf("%+v came back as %+v, %v", j, again, err)
		}
	})
}
