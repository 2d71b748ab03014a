//go:build linux

package outsider

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// broker is a nats-server of the box, at an address that it keeps.
type broker struct {
	b    *box
	url  string
	dir  string
	port string
	cmd  *exec.Cmd
}

// broker starts a nats-server. Without one in PATH the test is skipped, or fails where NFSBOX_REQUIRE names nats.
func (b *box) broker() *broker {
	b.Helper()
	if _, err := exec.LookPath("nats-server"); err != nil {
		if strings.Contains(","+os.Getenv("NFSBOX_REQUIRE")+",", ",nats,") {
			b.Fatalf("NFSBOX_REQUIRE names nats: %v", err)
		}
		b.Skipf("NOT TESTED without nats-server: %v", err)
	}
	n := &broker{b: b, dir: b.path(".nats"), port: "-1"}
	n.start()
	b.Cleanup(n.kill)
	return n
}

// start starts it, on the port that it had.
func (n *broker) start() {
	n.b.Helper()
	ports := n.b.path(".ports")
	n.b.no(os.RemoveAll(ports))
	n.b.no(os.MkdirAll(ports, 0o755))
	n.cmd = exec.Command("nats-server", "-js", "-sd", n.dir, "-a", "127.0.0.1", "-p", n.port, "--ports_file_dir", ports)
	n.b.no(n.cmd.Start())
	n.b.until("the broker listens", func() bool {
		list, _ := filepath.Glob(filepath.Join(ports, "*.ports"))
		if len(list) == 0 {
			return false
		}
		text, err := os.ReadFile(list[0])
		var at struct{ NATS []string }
		if err != nil || json.Unmarshal(text, &at) != nil || len(at.NATS) == 0 {
			return false // it is being written
		}
		n.url = at.NATS[0]
		n.port = n.url[strings.LastIndexByte(n.url, ':')+1:]
		return true
	})
}

func (n *broker) kill() {
	_ = n.cmd.Process.Kill() // it may have ended
	_ = n.cmd.Wait()         // with the kill
}

// work starts a worker.
func (n *broker) work(name string, allow ...string) *exec.Cmd {
	n.b.Helper()
	args := []string{"worker", "--join", n.url, "--name", name, "--parallel", "8"}
	for _, place := range allow {
		args = append(args, "--allow", place)
	}
	cmd := n.b.command(args...)
	log, err := os.Create(n.b.path("." + name + ".log"))
	n.b.no(err)
	cmd.Stderr = log
	n.b.no(cmd.Start())
	n.b.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // likewise
		if n.b.Failed() {
			text, _ := os.ReadFile(log.Name())
			n.b.Logf("%s:\n%s", name, text)
		}
		_ = log.Close() // nothing is written any more
	})
	return cmd
}

// TestWorkers: a tree is copied by workers, of which one after the other is killed. The job is killed as well, and
// the broker, whose files are deleted. In the end verify, by workers too, finds nothing, few files were copied
// twice, and rm by workers leaves nothing.
func TestWorkers(t *testing.T) {
	b := newBox(t)
	n := b.broker()
	files := b.soakFiles(800, 200_000)
	for i := range files {
		b.write(b.path("src", fmt.Sprint("d", i/100), fmt.Sprint("f", i)), strings.Repeat(fmt.Sprintf("file %d\n", i), 1+i%300))
	}
	b.write(b.path("srv", "beside", "precious"), "stay")
	from, to := b.serve(b.path("src")), b.serve(b.path("srv"), "--metrics=127.0.0.1:0")
	source, dest := from.url, to.url+"dest"
	n.work("w0", source, to.url)
	cp := []string{"cp", "-r", "--no-progress", "--job", "j", "--workers", n.url, source, dest}
	began := func(many int) {
		b.until("files are copied", func() bool {
			list, _ := filepath.Glob(b.path("srv", "dest", "d*", "f*"))
			return len(list) >= many
		})
	}

	job := b.command(cp...)
	b.no(job.Start())
	w := n.work("w1", source, to.url)
	began(files / 10)
	b.no(w.Process.Kill())
	n.work("w2", source, to.url)
	began(files / 5)
	b.no(job.Process.Kill())
	_ = job.Wait() // it was killed

	job = b.command(cp...)
	b.no(job.Start())
	began(files / 3)
	n.kill()
	b.no(os.RemoveAll(n.dir))
	n.start()
	b.no(job.Wait())
	made := to.calls()["RENAME"]
	t.Logf("%d files, and %d of them copied twice", files, made-files)
	if twice := made - files; twice < 0 || twice > max(files/200, 150) {
		t.Errorf("%d files copied twice, of %d", twice, files)
	}
	b.must(0, "verify", "--no-progress", "--job", "v", "--workers", n.url, source, dest)
	b.must(0, "verify", "--no-progress", b.path("src"), b.path("srv", "dest"))

	// One that may not touch DEST says so, on both sides, and a signal ends it in good order.
	other := n.work("w3", source)
	b.until("the refusal is told", func() bool { // by a run that has not ended when the worker looks for jobs
		return strings.Contains(b.must(0, "sync", "--job", "s", "--workers", n.url, source, to.url+"beside").stderr, "the worker w3 does not take part")
	})
	b.no(other.Process.Signal(syscall.SIGTERM))
	if err := other.Wait(); err != nil {
		t.Errorf("a worker that was ended: %v", err)
	}
	b.must(0, "rm", "-r", "--no-progress", "--job", "r", "--workers", n.url, dest)
	if _, err := os.Stat(b.path("srv", "dest")); !os.IsNotExist(err) {
		t.Errorf("rm has left something: %v", err)
	}
	if text, err := os.ReadFile(b.path("srv", "beside", "precious")); err != nil || string(text) != "stay" {
		t.Errorf("what lies beside: %q, %v", text, err)
	}
}

// TestWorkersInterrupted: a job is interrupted while its workers have temporaries. When it has ended there are none.
func TestWorkersInterrupted(t *testing.T) {
	heeds(t, syscall.SIGINT)
	b := newBox(t)
	n := b.broker()
	for i := range 400 {
		b.write(b.path("src", fmt.Sprint("f", i)), strings.Repeat("some text\n", 10_000))
	}
	b.no(os.Mkdir(b.path("srv"), 0o755))
	from, to := b.serve(b.path("src")), b.slowDisk(b.serve(b.path("srv")))
	for i := range 2 {
		n.work(fmt.Sprint("w", i), from.url, to.url())
	}
	r := b.begin("cp", "-r", "--no-progress", "--job", "j", "--workers", n.url, from.url, to.url()+"dest")
	temporaries := func() (list []string) {
		list, _ = filepath.Glob(b.path("srv", "dest", ".nfsbox-*.tmp"))
		return list
	}
	b.until("workers have temporaries", func() bool { return len(temporaries()) > 0 })
	b.no(r.Process.Signal(syscall.SIGINT))
	if status := r.status(); status != 130 {
		t.Errorf("exit status %d\n%s", status, r.err.String())
	}
	if left := temporaries(); len(left) > 0 {
		t.Errorf("%d temporaries are left\n%s", len(left), r.err.String())
	}
}
