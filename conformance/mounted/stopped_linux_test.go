package mounted

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/internal/testkit/port"
)

const (
	// deadly is how long a killed process may take to end, whatever the server does.
	deadly = 2 * time.Second
	// stoppedRounds is how often each kind of actor is killed.
	stoppedRounds = 10
)

// TestStopped: a server that is stopped, or killed, holds up no process that is killed, nor the listing of another mount. When
// it is back, those who were not killed go on. The mount can be taken away while it is stopped.
func TestStopped(t *testing.T) {
	if !soak() {
		t.Skip("NOT TESTED but in a soak, NFSBOX_SOAK=1")
	}
	bin := command(t)
	for _, how := range []string{"hard", "soft,timeo=600,retrans=2"} {
		for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			t.Run(fmt.Sprint(how, " ", sig), func(t *testing.T) {
				s := stoppable(t, bin, how)
				for n := range stoppedRounds {
					s.round(t, fmt.Sprint(n), sig)
				}
				s.table(t)
				s.takeAway(t, sig)
			})
		}
	}
}

// stopped is a server that is stopped and goes on, its mount, and the mount of another server.
type stopped struct {
	bin, home, srv string
	address, state string
	server         *process
	mount, other   *mount
	took           map[string][]time.Duration // by what was done
}

func stoppable(t *testing.T, bin, options string) *stopped {
	t.Helper()
	s := &stopped{bin: bin, home: home(t), took: make(map[string][]time.Duration)}
	s.srv, s.state = makeDir(t, s.home, "srv"), makeDir(t, s.home, "state")
	var err error
	s.address, err = port.Free("127.0.0.1")
	expect.OK(t, err)
	url := s.serve(t)
	s.mount = mountAt(t, bin, url, makeDir(t, s.home, "mnt"), "localio=off,"+options)
	far := makeDir(t, s.home, "far")
	makeDir(t, far, "there")
	u, _ := serve(t, bin, far, "--localio=off")
	s.other = mountAt(t, bin, u.String(), makeDir(t, s.home, "other"), "localio=off")
	return s
}

func (s *stopped) serve(t *testing.T) (url string) {
	t.Helper()
	u, p := serveAt(t, s.bin, s.srv, s.address, s.state, "--squash=none", "--localio=off")
	s.server = p
	return u.String()
}

// stop stops the server, or kills it; back is its return.
func (s *stopped) stop(t *testing.T, sig syscall.Signal) (back func()) {
	t.Helper()
	expect.OK(t, s.server.cmd.Process.Signal(sig))
	if sig == syscall.SIGSTOP {
		p := s.server.cmd.Process
		expect.Soon(t, "the server is stopped", func() bool { return halted(p.Pid) })
		t.Cleanup(func() { _ = p.Signal(syscall.SIGCONT) }) // for a test that has failed
		return func() { expect.OK(t, p.Signal(syscall.SIGCONT)) }
	}
	<-s.server.ended
	return func() { s.serve(t) }
}

// halted reports whether all threads of a process are stopped.
func halted(pid int) bool {
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range all {
		text, gone := os.ReadFile(thread)
		if _, fields, _ := strings.Cut(string(text), ") "); gone == nil && !strings.HasPrefix(fields, "T") {
			return false
		}
	}
	return err == nil && len(all) > 0
}

// round has two actors of each kind ask a server that does not answer. One is killed, and the other goes on when the
// server is back.
func (s *stopped) round(t *testing.T, name string, sig syscall.Signal) {
	t.Helper()
	var doomed, others []*actor
	for _, a := range actors {
		for i, list := range []*[]*actor{&doomed, &others} {
			dir := filepath.Join(fmt.Sprint(name, " ", i), a.kind)
			prepare(t, filepath.Join(s.srv, dir))
			*list = append(*list, begin(t, a.kind, filepath.Join(s.mount.dir, dir)))
		}
	}
	back := s.stop(t, sig)
	for _, a := range append(doomed, others...) {
		a.ask()
	}
	time.Sleep(time.Second) // until they wait for the server: a soak may
	s.timed("ls of another mount", func() { tool(t, "/", "ls", "-l", s.other.dir) })
	for _, a := range append(doomed, others...) {
		select {
		case says := <-a.lines:
			t.Errorf("without a server the %s says %q", a.kind, says)
		default:
		}
	}
	s.killAll(t, doomed)
	begun := time.Now()
	back()
	for _, a := range others {
		s.goesOn(t, a, sig)
		s.took[a.kind+" who goes on"] = append(s.took[a.kind+" who goes on"], time.Since(begun))
	}
}

// killAll kills the actors at once, and waits for each.
func (s *stopped) killAll(t *testing.T, doomed []*actor) {
	t.Helper()
	var all sync.WaitGroup
	took := make([]time.Duration, len(doomed))
	for i, a := range doomed {
		all.Go(func() {
			begun := time.Now()
			a.kill()
			select {
			case <-a.ended:
			case <-time.After(patience):
			}
			took[i] = time.Since(begun)
		})
	}
	all.Wait()
	for i, a := range doomed {
		s.took[a.kind] = append(s.took[a.kind], took[i])
		if took[i] > deadly {
			t.Errorf("a killed %s lives on for %v", a.kind, took[i])
		}
	}
}

// goesOn waits for an actor that has a server again. One that has forgotten its locks (it was killed, and has no grace) may
// tell the holder of one.
func (s *stopped) goesOn(t *testing.T, a *actor, sig syscall.Signal) {
	t.Helper()
	says := a.says()
	if says == "done: <nil>" || sig == syscall.SIGKILL && a.kind == "lock holder" && says == "done: input/output error" {
		<-a.ended
		return
	}
	t.Errorf("the server is back, and the %s says %q", a.kind, says)
}

func (s *stopped) timed(what string, do func()) {
	begun := time.Now()
	do()
	s.took[what] = append(s.took[what], time.Since(begun))
}

// takeAway unmounts while the server does not answer, and an actor waits for it.
func (s *stopped) takeAway(t *testing.T, sig syscall.Signal) {
	prepare(t, filepath.Join(s.srv, "last"))
	a := begin(t, "reader", filepath.Join(s.mount.dir, "last"))
	back := s.stop(t, sig)
	a.ask()
	s.timed("umount -f", func() { tool(t, "/", s.bin, "umount", "-f", s.mount.dir) })
	select {
	case <-a.ended:
	case <-time.After(patience):
		t.Error("what waits outlives the mount")
	}
	if mounted(s.mount.dir) {
		t.Error("it is still mounted")
	}
	back()
	t.Logf("umount -f took %v", s.took["umount -f"])
}

// table logs how long everything took.
func (s *stopped) table(t *testing.T) {
	load, _ := os.ReadFile("/proc/loadavg") // else nobody is told
	t.Logf("load %s", load)
	var names []string
	for what := range s.took {
		names = append(names, what)
	}
	slices.Sort(names)
	for _, what := range names {
		all := slices.Sorted(slices.Values(s.took[what]))
		t.Logf("%-28s %2d times: median %6d ms, most %6d ms", what, len(all), all[len(all)/2].Milliseconds(), all[len(all)-1].Milliseconds())
	}
}
