//go:build linux

package outsider

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// killParallel is --parallel of the commands that are killed.
	killParallel = 16
	// killPerDir is how many files their trees have in a directory.
	killPerDir = 100
	// killUnsynced bounds the files of a directory of this host that are not in the record yet.
	killUnsynced = 256
)

// TestKilledClient kills cp, sync --delete and rm at any moment, and runs them again, until they come to
// their end: 6 times in all, and 54 times over 200,000 files with NFSBOX_SOAK=1 (NFSBOX_SOAK_KILLS=n: 6n times). Nothing is called complete
// before it is; no name has half a file, or loses what it had before there is something better; in the end
// verify finds nothing. What has been copied is not read again, by the server's own count.
func TestKilledClient(t *testing.T) {
	kills := 1
	if soak() {
		kills = 9
	}
	if text := os.Getenv("NFSBOX_SOAK_KILLS"); text != "" && soak() {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		kills int
		set   killSet
	}{
		{"cp to a server", 2 * kills, killSet{verb: []string{"cp", "-r"}}},
		{"cp to this host", kills, killSet{verb: []string{"cp", "-r"}, local: true}},
		{"sync", 2 * kills, killSet{verb: []string{"sync", "--delete"}, there: true}},
		{"rm", kills, killSet{verb: []string{"rm", "-r"}, there: true, remove: true}},
	} {
		t.Run(c.name, func(t *testing.T) { newKilled(t, &c.set).all(c.kills) })
	}
}

// killSet is which command is killed.
type killSet struct {
	verb   []string
	local  bool // DEST is of this host
	there  bool // DEST is there before: some of it as in SOURCE, some other, some extra
	remove bool // it has no DEST, and removes the tree that DEST would be
}

// killed is a command that is killed, and what it works at.
type killed struct {
	*box
	*killSet
	files    int
	from, to *server
	source   string // a URL
	dest     string // a URL or a path
	at       string // where DEST lies
	moment   killMoment
	chance   *rand.Rand
	round    int
	reads    int // that all copies need
}

// newKilled makes the tree and serves it.
func newKilled(t *testing.T, set *killSet) *killed {
	b := newBox(t)
	b.long = soak()
	k := &killed{box: b, killSet: set, files: b.soakFiles(1000, 200_000), chance: rand.New(rand.NewPCG(7, 8)), at: b.path("srv", "dest")}
	for i := range k.files {
		b.no(os.MkdirAll(filepath.Dir(k.name(b.path("src"), i)), 0o755))
		b.no(os.WriteFile(k.name(b.path("src"), i), []byte(k.contents(i)), 0o644))
	}
	b.write(b.path("srv", "beside", "precious"), "stay")
	k.from, k.to = b.serve(b.path("src"), "--metrics=127.0.0.1:0"), b.serve(b.path("srv"), "--metrics=127.0.0.1:0")
	k.source = b.proxy(k.from, k.moment.set).url()
	k.dest = b.proxy(k.to, k.moment.set).url() + "dest"
	if set.local {
		k.dest = k.at
	}
	return k
}

func (k *killed) name(top string, i int) string {
	return filepath.Join(top, fmt.Sprint("d", i/killPerDir/20), fmt.Sprint("e", i/killPerDir), fmt.Sprint("f", i))
}

// contents are those of file i: at most 8 KiB, which one READ has.
func (k *killed) contents(i int) string {
	return strings.Repeat(fmt.Sprintf("file %08d\n", i), 1+i*7919%500)
}

// killMoment is when the command is killed: after so many bytes have passed.
type killMoment struct {
	left   atomic.Int64
	victim atomic.Pointer[os.Process]
}

// set has a proxy count what comes back, and hold it back for good when the moment has come.
func (m *killMoment) set(p *proxy) {
	p.back = func() change {
		return func(data []byte) []byte {
			if m.left.Add(-int64(len(data))) < 0 {
				if victim := m.victim.Load(); victim != nil {
					_ = victim.Kill() // it may have ended
				}
			}
			return data
		}
	}
}

// all kills the command so many times, and lets the last run end.
func (k *killed) all(kills int) {
	k.prepare()
	began, ended, most := time.Now(), 0, int64(k.files)*(2500+400)/2
	if k.remove {
		most = int64(k.files) * 350 / 2
	}
	for done := 0; done < kills; {
		status, state := k.run(k.chance.Int64N(most))
		if status == -1 {
			done++
			k.stopped(state)
			continue
		}
		k.complete(status, state)
		ended++
		k.prepare()
	}
	status, state := k.run(1 << 60)
	k.complete(status, state)
	if k.remove {
		k.Logf("%d files, %d kills, %d ends, in %v", k.files, kills, ended+1, time.Since(began).Round(time.Second))
		return
	}
	again := k.from.calls()["READ"] - k.reads
	perKill := killParallel
	if k.local {
		perKill += killParallel * min(killPerDir, killUnsynced)
	}
	if again > kills*perKill {
		k.Errorf("%d files were read again after %d kills", again, kills)
	}
	k.Logf("%d files, %d kills, %d ends, in %v: %d READs, %d of them again", k.files, kills, ended+1, time.Since(began).Round(time.Second), k.from.calls()["READ"], again)
	k.must(0, "verify", "-q", k.from.url, k.at)
}

// prepare makes DEST what it is before the first run.
func (k *killed) prepare() {
	k.no(os.RemoveAll(k.at))
	k.round++
	for i := range k.files {
		if !k.there || i%4 > 0 && !k.remove {
			k.reads++
			continue
		}
		if i%4 == 0 { // a file that is to go, in a directory that stays, and in one that does not
			for _, name := range []string{k.name(k.at, i) + "-extra", k.name(k.at+"/gone", i)} {
				k.no(os.MkdirAll(filepath.Dir(name), 0o755))
				k.no(os.WriteFile(name, []byte("old"), 0o644))
			}
		}
		name := k.name(k.at, i)
		if i%8 == 0 { // it is to be copied
			k.reads++
			k.no(os.WriteFile(name, []byte("old"), 0o644))
			continue
		}
		k.no(os.MkdirAll(filepath.Dir(name), 0o755))
		info, err := os.Stat(k.name(k.path("src"), i))
		k.no(err)
		k.no(os.WriteFile(name, []byte(k.contents(i)), 0o644))
		k.no(os.Chtimes(name, info.ModTime(), info.ModTime()))
	}
}

// run runs the command, and kills it after so many bytes. It returns the exit status, and the job's state.
func (k *killed) run(after int64) (status int, state string) {
	args, job := append([]string(nil), k.verb...), fmt.Sprint("round", k.round)
	args = append(args, "-q", fmt.Sprint("--parallel=", killParallel))
	if !k.remove {
		args = append(args, "--job", job, k.source)
	}
	k.moment.left.Store(after)
	r := k.begin(append(args, k.dest)...)
	k.moment.victim.Store(r.Process)
	status = r.status()
	k.moment.victim.Store(nil)
	if status > 0 {
		k.Fatalf("exit status %d\n%s", status, r.err)
	}
	if !k.remove && exists(k.path(".state", "nfsbox", "jobs", job, "job.json")) {
		state = k.jobFile(job)["state"].(string)
		if is := k.job(job); status == -1 && state != "complete" && (is["state"] != "interrupted" || is["killed"] != true) {
			k.Errorf("job ls has %v", is)
		}
	}
	k.settled()
	return status, state
}

// settled waits until the servers have done all that the command has asked for.
func (k *killed) settled() {
	k.until("the servers are at rest", func() bool {
		was := []map[string]int{k.from.calls(), k.to.calls()}
		time.Sleep(10 * time.Millisecond)
		return len(since(was[0], k.from.calls()))+len(since(was[1], k.to.calls())) == 0
	})
}

// stopped looks at DEST after a kill.
func (k *killed) stopped(state string) {
	if k.text(k.path("srv", "beside", "precious")) != "stay" {
		k.Fatal("what lies beside is gone")
	}
	if state == "complete" { // it was killed on its way out
		k.complete(0, state)
		return
	}
	if !k.remove && state != "" && state != "running" {
		k.Errorf("after a kill the job is %s", state)
	}
	if k.remove {
		if state != "" || !exists(k.at) && len(k.names(k.path("srv"))) != 2 {
			k.Errorf("left are %q", k.names(k.path("srv")))
		}
		return
	}
	old, extra := k.look()
	if k.there && old > 0 && extra < k.extras() {
		k.Errorf("%d extra files are left of %d, before all is copied: %d are old", extra, k.extras(), old)
	}
}

// extras is how many files DEST had that SOURCE has not.
func (k *killed) extras() int { return (k.files + 3) / 4 * 2 }

// complete checks a run that has come to its end.
func (k *killed) complete(status int, state string) {
	if status != 0 || !k.remove && state != "complete" {
		k.Fatalf("exit status %d, and the job is %s", status, state)
	}
	if k.remove {
		if got := strings.Join(k.names(k.path("srv")), " "); got != "beside beside/precious" {
			k.Fatalf("left are %.1000q", got)
		}
		return
	}
	if old, extra := k.look(); old > 0 || extra > 0 {
		k.Fatalf("it is called complete, and %d files are missing or old, and %d extra", old, extra)
	}
}

// look counts the files of DEST that are not as in SOURCE yet, and those that SOURCE does not have. No
// file has anything but one of the two.
func (k *killed) look() (old, extra int) {
	old = k.files
	err := filepath.WalkDir(k.at, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), ".nfsbox-") {
			return err
		}
		text := k.text(path)
		var i int
		if _, err := fmt.Sscanf(e.Name(), "f%d", &i); err != nil || k.name(k.at, i) != path {
			extra++
			if text != "old" {
				k.Errorf("%s has %.60q", path, text)
			}
			return nil
		}
		switch {
		case text == k.contents(i):
			old--
		case !k.there || text != "old":
			k.Errorf("%s has %d bytes: %.60q", path, len(text), text)
		}
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		k.Error(err)
	}
	return old, extra
}
