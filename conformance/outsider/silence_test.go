//go:build linux

package outsider

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// running is a command that has begun.
type running struct {
	*exec.Cmd
	b        *box
	out, err *log
}

// begin begins the command; it is ended with the test, if not before.
func (b *box) begin(args ...string) *running {
	b.Helper()
	r := &running{Cmd: b.command(args...), b: b, out: new(log), err: new(log)}
	r.Stdout, r.Stderr = r.out, r.err
	b.no(r.Start())
	return r
}

// status waits for the end. A command that a signal has killed has -1.
func (r *running) status() int {
	r.b.Helper()
	_ = r.Wait() // what matters of it is the status
	return r.ProcessState.ExitCode()
}

// TestSilentServer: a server is stopped. Each command that waits for it says so, once,
// with since when and until when, and that it answers again when it does.
func TestSilentServer(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "f"), string(pattern(10_000, 1)))
	s := b.serve(b.path("srv"))
	at := fmt.Sprint("127.0.0.1:", s.port)
	commands := map[string][]string{
		"cat":         {"cat", s.url + "f"},
		"ls":          {"ls", s.url},
		"stat":        {"stat", s.url + "f"},
		"exports":     {"exports", s.url},
		"cp":          {"cp", "-r", s.url, b.path("copy")},
		"cp there":    {"cp", b.path("srv", "f"), s.url + "g?timeo=300"},
		"verify":      {"verify", s.url + "f", b.path("srv", "f")},
		"bench":       {"bench", "null", "-n", "10", s.url},
		"ls hard":     {"ls", s.url + "?hard"},
		"ls --json":   {"ls", "--json", s.url},
		"cp --json":   {"cp", "-r", "--json", s.url, b.path("copy of json")},
		"bench json":  {"bench", "null", "-n", "10", "--json", s.url},
		"two of them": {"ls", s.url, s.url + "f"},
	}
	s.signal(syscall.SIGSTOP)
	all := make(map[string]*running)
	for name, args := range commands {
		all[name] = b.begin(args...)
	}
	said := func(r *running) string { return r.out.String() + r.err.String() }
	for name, r := range all {
		b.until(name+" says that the server does not answer", func() bool { return strings.Contains(said(r), at+" has not answered since ") })
	}
	s.signal(syscall.SIGCONT)
	for name, r := range all {
		if status := r.status(); status != 0 {
			t.Errorf("%s: exit status %d", name, status)
		}
		stream := r.err.String()
		if name == "cp --json" || name == "bench json" {
			stream = r.out.String()
		}
		for _, what := range []string{" has not answered since ", " answers again, after "} {
			if n := strings.Count(stream, what); n != 1 {
				t.Errorf("%s: %q is told %d times:\n%s", name, what, n, stream)
			}
		}
	}
	for _, name := range []string{"ls --json", "cp --json", "bench json"} {
		b.silentEvents(name, all[name].out.String(), at)
	}
}

// silentEvents checks the events of a silence in the output of a command.
func (b *box) silentEvents(name, text, server string) {
	b.Helper()
	var kinds []string
	for line := range strings.Lines(text) {
		var e struct {
			Type, Server string
			Since, Until time.Time
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			b.Fatalf("%s: %v in %s", name, err, line)
		}
		if e.Type != "silent" && e.Type != "answers" {
			continue
		}
		kinds = append(kinds, e.Type)
		if waits := e.Until.Sub(e.Since); e.Server != server || e.Since.IsZero() || (e.Type == "silent") != (waits > 0) {
			b.Errorf("%s: event %s", name, line)
		}
	}
	if fmt.Sprint(kinds) != "[silent answers]" {
		b.Errorf("%s: events %v\n%s", name, kinds, text)
	}
}
