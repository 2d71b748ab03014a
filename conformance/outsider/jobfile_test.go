//go:build linux

package outsider

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// jobFile is a job's own file.
func (b *box) jobFile(job string) (fields map[string]any) {
	b.Helper()
	b.no(json.Unmarshal([]byte(b.text(b.path(".state", "nfsbox", "jobs", job, "job.json"))), &fields))
	return fields
}

// TestJobFile: job.json says what the job is, and how its last run has ended.
func TestJobFile(t *testing.T) {
	b := newBox(t)
	b.alike(b.path("src"), 3, 100)
	args := []string{"cp", "-r", "--job", "j", b.path("src"), "./dst"}
	says := func(state string, runs int, more map[string]any) {
		t.Helper()
		got := b.jobFile("j")
		want := map[string]any{
			"magic": "nfsbox-job", "version": 1, "command": "cp", "source": b.path("src"), "dest": b.path("dst"), "target": "itself",
			"state": state, "runs": runs, "dir": b.dir,
		}
		for name, value := range more {
			want[name] = value
		}
		for name, value := range want {
			if fmt.Sprint(got[name]) != fmt.Sprint(value) {
				t.Errorf("%s: %s is %v, want %v", state, name, got[name], value)
			}
		}
		if given := fmt.Sprint(got["args"]); given != fmt.Sprint(args) {
			t.Errorf("args are %s, want %s", given, args)
		}
	}
	b.must(0, args...)
	says("complete", 1, nil)
	if n := b.jobFile("j")["counts"].(map[string]any)["files"]; n != 3.0 {
		t.Errorf("%v files", n)
	}
	// An item fails.
	b.write(b.path("src", "d", "f"), "text")
	b.write(b.path("dst", "d"), "in the way")
	b.must(2, args...)
	says("failed", 2, map[string]any{"error": nil})
	b.no(os.Remove(b.path("dst", "d")))
	b.must(0, args...)
	says("complete", 3, nil)
	// Refused: nothing is changed.
	was := b.text(b.path(".state", "nfsbox", "jobs", "j", "job.json"))
	b.must(1, "cp", "-r", "--job", "j", b.path("src"), b.path("elsewhere"))
	b.no(os.Rename(b.path("src"), b.path("away")))
	b.run(args...)
	if b.text(b.path(".state", "nfsbox", "jobs", "j", "job.json")) != was {
		t.Error("a run that was refused has changed it")
	}
}

// TestJobFileOfBrokenOff: a signal ends the job, or kills it. The file says so, or still says that
// it is running; and the job goes on.
func TestJobFileOfBrokenOff(t *testing.T) {
	t.Parallel()
	for sig, state := range map[syscall.Signal]string{syscall.SIGINT: "interrupted", syscall.SIGKILL: "running"} {
		b := newBoxAlone(t)
		for i := range 50 {
			b.write(b.path("srv", fmt.Sprint(i)), string(pattern(50_000, byte(i))))
		}
		hold := make(chan struct{})
		hook, begin, sent := b.signalled(sig, 500_000, hold)
		p := b.proxy(b.serve(b.path("srv")), hook)
		args := []string{"cp", "-r", "--parallel=4", "--job", "j", p.url(), b.path("copy")}
		r := begin(args...)
		<-sent
		r.status()
		close(hold)
		if got := b.jobFile("j")["state"]; got != state {
			t.Errorf("%v: state %v, want %s\n%s", sig, got, state, r.err)
		}
		b.must(0, args...)
		if got := b.jobFile("j"); got["state"] != "complete" || got["runs"] != 2.0 {
			t.Errorf("%v: %v", sig, got)
		}
		b.same(b.path("srv"), b.path("copy"))
	}
}

// TestHostileJobFile: job.json is not ours, of a later program, a pipe, or gone. The job says so, and
// nothing is changed.
func TestHostileJobFile(t *testing.T) {
	b := newBox(t)
	b.alike(b.path("src"), 3, 100)
	args := []string{"cp", "-r", "--job", "j", b.path("src"), b.path("dst")}
	b.must(0, args...)
	file := b.path(".state", "nfsbox", "jobs", "j", "job.json")
	good := b.text(file)
	b.no(os.RemoveAll(b.path("dst")))
	for text, says := range map[string]string{
		"": "not a file of ours", strings.Replace(good, `"version": 1`, `"version": 3`, 1): "version 3, which this program does not know",
		strings.Replace(good, `"runs"`, `"walks"`, 1): "damaged", good[:len(good)/2]: "not a file of ours", good + strings.Repeat(" ", 1<<20): "job.json",
		strings.Replace(good, `"itself"`, `"../.."`, 1): "damaged",
	} {
		b.no(os.WriteFile(file, []byte(text), 0o600))
		if r := b.must(1, args...); !strings.Contains(r.stderr, says) || !strings.Contains(r.stderr, "job.json") {
			t.Errorf("%.60q: it says\n%s", text, r.stderr)
		}
		if b.text(file) != text || exists(b.path("dst")) {
			t.Errorf("%.60q: something was changed", text)
		}
	}
	b.no(os.Remove(file))
	b.no(syscall.Mkfifo(file, 0o600))
	b.must(1, args...)
	b.no(os.Remove(file))
	b.says(1, "put it back", args...)
	b.no(os.WriteFile(file, []byte(good), 0o600))
	b.must(0, args...) // what the job has copied is recorded
}

// TestJobOfEarlierFiles: an earlier program has begun the job, with three files in the place of
// job.json. They mean what they did.
func TestJobOfEarlierFiles(t *testing.T) {
	b := newBox(t)
	b.alike(b.path("src"), 3, 100)
	b.no(os.Mkdir(b.path("dst"), 0o755))
	args := []string{"cp", "-r", "--json", "--job", "j", b.path("src"), b.path("dst")}
	dir := b.path(".state", "nfsbox", "jobs", "j")
	b.write(filepath.Join(dir, "places"), fmt.Sprintf("nfsbox-places-1\n%q\n%q\n", b.path("src"), b.path("dst")))
	b.write(filepath.Join(dir, "target"), "nfsbox-target-1 itself\n") // though it is a directory by now
	b.write(filepath.Join(dir, "source"), "nfsbox-source-1 1 1 1 0\n")
	b.must(4, args...)
	if r := b.must(1, "cp", "-r", "--job", "j", b.path("src"), b.path("other")); !strings.Contains(r.stderr, "copies "+b.path("src")) {
		t.Errorf("it says\n%s", r.stderr)
	}
	if names := b.names(dir); slices.Contains(names, "job.json") {
		t.Errorf("it was refused, and has %q", names)
	}
	b.must(0, append(args, "--other-source")...)
	b.same(b.path("src"), b.path("dst"))
	b.no(os.Remove(filepath.Join(dir, "target"))) // job.json has it
	if r := b.must(0, args...); r.count(b, "skipped") != 3 || b.jobFile("j")["target"] != "itself" {
		t.Errorf("the job does not go on: %s", r.stdout)
	}
	b.same(b.path("src"), b.path("dst"))
}
