//go:build linux

package outsider

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// held begins a command that copies from a server, which stops answering after some of the bytes, until
// release is called.
func (b *box) held(args func(url string) []string) (r *running, release func()) {
	b.Helper()
	for i := range 50 {
		b.write(b.path("srv", fmt.Sprint(i)), string(pattern(50_000, byte(i))))
	}
	hold, stopped := make(chan struct{}), make(chan struct{})
	p := b.proxy(b.serve(b.path("srv")), func(p *proxy) {
		p.back = b.whenPassed(500_000, func() {
			close(stopped)
			<-hold
		})
	})
	release = sync.OnceFunc(func() { close(hold) })
	b.Cleanup(release)
	r = b.begin(args(p.url())...)
	<-stopped
	return r, release
}

// TestJobCountsWhileRunning: job.json of a job that runs says how far it is.
func TestJobCountsWhileRunning(t *testing.T) {
	b := newBox(t)
	r, release := b.held(func(url string) []string {
		return []string{"cp", "-r", "--parallel=4", "--job", "j", url, b.path("copy")}
	})
	b.until("it says what was counted", func() bool {
		got := b.jobFile("j")
		counts, _ := got["counts"].(map[string]any)
		found, _ := counts["found_bytes"].(float64)
		return got["state"] == "running" && found > 0 && counts["totals_final"] != nil
	})
	release()
	if status := r.status(); status != 0 {
		t.Errorf("status %d\n%s", status, r.err)
	}
	if got := b.jobFile("j")["counts"].(map[string]any); got["files"] != 50.0 || got["totals_final"] != 1.0 {
		t.Errorf("in the end %v", got)
	}
}

// job is a line of job ls --json, of the record with this name; nil if there is none.
func (b *box) job(name string) (found map[string]any) {
	b.Helper()
	for line := range strings.Lines(b.run("job", "ls", "--json").stdout) {
		var event map[string]any
		b.no(json.Unmarshal([]byte(line), &event))
		if event["type"] == "job" && (event["name"] == name || name == "") {
			found = event
		}
	}
	return found
}

// TestJobCancel: a copy that runs is listed as running, and job cancel ends it as a signal would. Then it
// is interrupted, and job resume goes on; with a name, and without.
func TestJobCancel(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"j", ""} {
		b := newBoxAlone(t)
		r, release := b.held(func(url string) []string {
			args := []string{"cp", "-r", "--parallel=4", url, "copy"}
			if name != "" {
				args = append(args, "--job", name)
			}
			return args
		})
		b.until("it is listed", func() bool { return b.job(name) != nil })
		is := b.job(name)
		called := is["name"].(string)
		if is["state"] != "running" || !strings.Contains(is["by"].(string), fmt.Sprint(r.Process.Pid)) {
			t.Errorf("it is %v", is)
		}
		for _, verb := range []string{"resume", "forget"} {
			if got := b.must(1, "job", verb, called); !strings.Contains(got.stderr, "runs: another run, process") {
				t.Errorf("job %s of one that runs says\n%s", verb, got.stderr)
			}
		}
		b.until("its counts are shown", func() bool { return strings.Contains(b.must(0, "job", "show", called).stdout, "found_bytes") })
		cancel := b.begin("job", "cancel", called)
		b.until("it ends", func() bool { return b.job(name)["state"] != "running" || r.ProcessState != nil })
		release()
		if status := r.status(); status != 130 {
			t.Errorf("status %d of the copy\n%s", status, r.err)
		}
		if status := cancel.status(); status != 0 {
			t.Errorf("status %d of job cancel\n%s", status, cancel.err)
		}
		if is = b.job(name); is["state"] != "interrupted" || is["killed"] != false {
			t.Errorf("then it is %v", is)
		}
		b.must(1, "job", "cancel", called)
		b.no(os.MkdirAll(b.path("elsewhere"), 0o755))
		again := b.command("job", "resume", called)
		again.Dir = b.path("elsewhere")
		if got := b.finish(again); got.status != 0 || !strings.Contains(got.stderr, "skipped, as an earlier run") && name != "" {
			t.Errorf("job resume: %d\n%s", got.status, got.stderr)
		}
		b.same(b.path("srv"), b.path("copy"))
		if is = b.job(name); name != "" && is["state"] != "complete" || name == "" && is != nil {
			t.Errorf("in the end it is %v", is)
		}
	}
}

// TestJobKilled: a copy that was killed is interrupted, and says so.
func TestJobKilled(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"cp", "-r", "--job", "j"}, {"cp", "-r"}, {"cp"}} {
		b := newBoxAlone(t)
		one := len(args) == 1
		r, release := b.held(func(url string) []string {
			if one {
				b.write(b.path("srv", "big"), string(pattern(5_000_000, 1)))
				url += "big"
			}
			return append(args, url, b.path("copy"))
		})
		b.until("it is listed", func() bool { return b.job("") != nil })
		b.no(r.Process.Kill())
		r.status()
		release()
		is := b.job("")
		if is["state"] != "interrupted" || is["killed"] != true || is["source"] == "" {
			t.Errorf("%q: it is %v", args, is)
		}
		name := is["name"].(string)
		if got := b.must(0, "job", "show", name); !strings.Contains(got.stdout, "interrupted: it was killed") {
			t.Errorf("%q: job show says\n%s", args, got.stdout)
		}
		if one { // it was killed before its record had its command
			if got := b.must(1, "job", "resume", name); !strings.Contains(got.stderr, "does not have its command") {
				t.Errorf("job resume says\n%s", got.stderr)
			}
			continue
		}
		b.must(0, "job", "resume", name)
		b.same(b.path("srv"), b.path("copy"))
	}
}

// TestJobHostile: what is no record of this user's is told of. It is not changed, and keeps no other from
// being listed.
func TestJobHostile(t *testing.T) {
	root(t, "to give a directory away")
	b := newBox(t)
	b.alike(b.path("src"), 3, 100)
	b.must(0, "cp", "-r", "-q", "--job", "good", b.path("src"), b.path("copy"))
	for _, dir := range []string{"jobs", "unfinished"} {
		at := func(name string) string { return b.path(".state", "nfsbox", dir, name) }
		other := at("0123456789abcdef0123456789abcdef")
		b.no(os.MkdirAll(other, 0o700))
		b.no(os.Chown(other, 1000, 1000))
		b.no(os.Mkdir(at("\x1b]0;x\a"), 0o700))
		b.no(syscall.Mkfifo(at("fifo"), 0o600))
		b.no(os.Symlink(b.path(), at("link")))
		pipes := at("fedcba9876543210fedcba9876543210")
		b.no(os.Mkdir(pipes, 0o700))
		for _, name := range []string{"job.json", "copied", "begun", "control.json"} {
			b.no(syscall.Mkfifo(filepath.Join(pipes, name), 0o600))
		}
	}
	r := b.must(2, "job", "ls")
	if !strings.Contains(r.stdout, "good  complete") || strings.Contains(r.stderr, "\x1b") {
		t.Errorf("it says\n%s%s", r.stdout, r.stderr)
	}
	for _, says := range []string{"belongs to user 1000", "link: it is no directory", "fifo: ", "no record has such a name", "is not a regular file"} {
		if !strings.Contains(r.stderr, says) {
			t.Errorf("it does not say %q:\n%s", says, r.stderr)
		}
	}
	for _, verb := range []string{"show", "resume", "cancel"} {
		for _, name := range []string{"0123456789abcdef0123456789abcdef", "link", "fifo"} {
			b.must(2, "job", verb, name)
		}
	}
	if b.run("job", "forget", "link").status == 0 || b.run("job", "forget", "0123456789abcdef0123456789abcdef").status == 0 || !exists(b.path("src")) {
		t.Error("what is not a record was forgotten")
	}
}

// TestJobAtOnce: of a job that runs a second run is refused. Once forgotten, its name is free.
func TestJobAtOnce(t *testing.T) {
	b := newBox(t)
	r, release := b.held(func(url string) []string { return []string{"cp", "-r", "--job", "j", url, b.path("copy")} })
	b.until("it is listed", func() bool { return b.job("j") != nil })
	if got := b.must(1, "cp", "-r", "--job", "j", b.path("srv"), b.path("copy")); !strings.Contains(got.stderr, "in use by another run") {
		t.Errorf("a second run says\n%s", got.stderr)
	}
	release()
	if status := r.status(); status != 0 {
		t.Errorf("status %d\n%s", status, r.err)
	}
	b.must(0, "job", "forget", "j")
	if b.job("j") != nil || !exists(b.path("copy", "7")) {
		t.Error("it was not forgotten, or its copy is gone")
	}
	b.must(0, "cp", "-r", "--job", "j", b.path("srv"), b.path("copy"))
}

// TestJobSet: a copy between two servers that is slow, as it was told to be, is told otherwise. An order that
// makes no sense is told of, and changes nothing.
func TestJobSet(t *testing.T) {
	b := newBox(t)
	const size = 20_000_000
	b.write(b.path("srv", "big"), string(pattern(size, 1)))
	b.no(os.Mkdir(b.path("to"), 0o755))
	from, to := b.serve(b.path("srv")), b.serve(b.path("to"))
	r := b.begin("cp", "-r", "--job", "j", "--max-rate=100K", "--max-load=2", from.url, to.url+"copy")
	b.until("it is listed", func() bool { return b.job("j")["state"] == "running" })
	control := b.path(".state", "nfsbox", "jobs", "j", "control.json")
	b.write(control, `{"magic":"nfsbox-control","version":1,"max_rate":0,"max_load":9999}`)
	b.until("it is told", func() bool { return strings.Contains(r.err.String(), "9999") && !exists(control) })
	if got := b.must(0, "job", "set", "j", "--max-rate", "200K"); !strings.Contains(got.stdout, "j has taken --max-rate=200K") {
		t.Errorf("it says %s", got.stdout)
	}
	b.until("job show has it", func() bool {
		return strings.Contains(b.must(0, "job", "show", "j").stdout, "changed to  --max-rate=200K\n")
	})
	if moved := b.job("j")["counts"].(map[string]any)["bytes"].(float64); moved > size/2 {
		t.Errorf("%v bytes were copied at a rate of 200K", moved)
	}
	b.must(0, "job", "set", "j", "--max-rate", "0", "--max-load", "auto")
	if status := r.status(); status != 0 {
		t.Errorf("status %d\n%s", status, r.err)
	}
	if !strings.Contains(r.err.String(), "--max-rate=0 --max-load=auto") {
		t.Errorf("it does not say that its limits were changed:\n%s", r.err)
	}
	b.same(b.path("srv"), b.path("to", "copy"))
	b.must(0, "job", "resume", "j")
}

// TestProgressLoads: events of progress have rates, and the load of the server.
func TestProgressLoads(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "f"), string(pattern(12_000, 1)))
	url := b.serve(b.path("srv")).url + "f"
	for _, verb := range []string{"cp", "verify"} {
		r := b.must(0, verb, "--json", "--max-rate=4K", "--max-load=7", url, b.path("f"))
		for _, says := range []string{`"bytes_per_second":`, `"servers":[{"server":"` + url + `","class":"metadata","in_flight":`, `"class":"write"`, `"limit":7`} {
			if !strings.Contains(r.stdout, says) {
				t.Errorf("%s does not say %s:\n%s", verb, says, r.stdout)
			}
		}
	}
}

// TestJobNotTaken: a run that is stopped does not do what it is told, and one that has been killed meanwhile has
// ended. Neither finds the order later.
func TestJobNotTaken(t *testing.T) {
	b := newBox(t)
	r, release := b.held(func(url string) []string { return []string{"cp", "-r", "--job", "j", url, b.path("copy")} })
	b.until("it is listed", func() bool { return b.job("j") != nil })
	b.no(r.Process.Signal(syscall.SIGSTOP))
	control := b.path(".state", "nfsbox", "jobs", "j", "control.json")
	if got := b.must(2, "job", "set", "j", "--max-rate=1M"); !strings.Contains(got.stderr, "has not taken it within 5s") || exists(control) {
		t.Errorf("it says\n%s", got.stderr)
	}
	cancel := b.begin("job", "cancel", "j")
	b.until("the order is there", func() bool { return exists(control) })
	b.no(r.Process.Kill())
	if status := cancel.status(); status != 1 || !strings.Contains(cancel.err.String(), "has ended meanwhile") || exists(control) {
		t.Errorf("status %d\n%s", status, cancel.err)
	}
	r.status()
	release()
}
