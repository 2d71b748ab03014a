package dir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
)

const (
	crashLives   = 4
	crashSteps   = 40 // of each worker in one life
	crashKeys    = 4  // of each worker
	crashSeeds   = 16
	missingSeeds = 200 // within which the lack of each sync must be noticed
)

// TestCrash takes the power, or the process alone, away at random moments of
// random work, on a disk that forgets what was not synced. What was acknowledged
// or seen is there afterwards, whole, and nothing is there in part.
func TestCrash(t *testing.T) {
	for _, anonymous := range []bool{true, false} {
		for _, workers := range []int{1, 4} {
			t.Run(fmt.Sprintf("anonymous=%v/workers=%d", anonymous, workers), func(t *testing.T) {
				for seed := range uint64(crashSeeds / workers) {
					r := newRig(t, seed+1, workers, anonymous, "")
					for _, loss := range r.run(t) {
						t.Errorf("seed %d: %s", seed+1, loss)
					}
					if t.Failed() {
						return
					}
				}
			})
		}
	}
}

// TestCrashMissingSync leaves out the syncs of one place in the store after the
// other. Each time something must be lost: else TestCrash would not notice if
// somebody took that call away, or nobody needs it. Those for a call that merely looks are
// left to TestSeenIsStable.
func TestCrashMissingSync(t *testing.T) {
	need.Speed(t, "nothing goes on at once here")
	sites := make(map[string]int)
	for seed := range uint64(crashSeeds) {
		r := newRig(t, seed+1, 1, true, "")
		r.run(t)
		maps.Copy(sites, r.sys.sites)
	}
	want := []string{
		"(*Store).delete Fsync", "(*Store).finish Fdatasync", "(*Store).folder Fsync", "(*Store).makeMarker Fdatasync",
		"(*Store).publish Fsync", "(*Store).start Syncfs",
	}
	if got := slices.Sorted(maps.Keys(sites)); !slices.Equal(got, want) {
		t.Errorf("the store syncs at %q, want %q", got, want)
	}
	for _, site := range want {
		noticed := false
		for seed := uint64(1); seed <= missingSeeds && !noticed; seed++ {
			r := newRig(t, seed, 1, seed%2 == 0, site)
			if lost := r.run(t); len(lost) > 0 {
				noticed = true
				t.Logf("without %s: seed %d: %s", site, seed, lost[0])
			}
		}
		if !noticed {
			t.Errorf("%s can be left out, and nobody notices", site)
		}
	}
}

// rig is a store over a disk that forgets, and the ledger of what it has promised.
type rig struct {
	base    string
	seed    uint64
	r       *rand.Rand
	workers int
	skip    string // the place whose syncs are left out, in some lives
	disk    *sim.Disk
	sys     *crashSys
	door    Sys
	s       *Store

	mu      sync.Mutex
	keys    map[string]*history
	content map[object.Sum][]byte // that somebody was told is stored
	losses  []string
}

// history is the versions of an object, of which nil is none. One worker writes
// them, one after the other. The disk may have any from low to the last.
type history struct {
	versions [][]byte
	low      int
}

func newRig(t *testing.T, seed uint64, workers int, anonymous bool, skip string) *rig {
	t.Helper()
	c := &rig{base: memory(t), seed: seed, skip: skip, r: rand.New(rand.NewPCG(seed, 7)), workers: workers,
		keys: make(map[string]*history), content: make(map[object.Sum][]byte)}
	if err := os.Mkdir(filepath.Join(c.base, "root"), 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.disk, err = sim.NewDisk(crashKernel{}, filepath.Join(c.base, "shadow"), seed); err != nil {
		t.Fatal(err)
	}
	c.sys = &crashSys{disk: c.disk, sites: make(map[string]int)}
	c.door = c.sys
	if anonymous {
		c.door = anonymousSys{c.sys}
	}
	for w := range workers {
		for k := range crashKeys {
			c.keys[crashKey(w, k)] = &history{versions: [][]byte{nil}}
		}
	}
	return c
}

func crashKey(w, k int) string { return fmt.Sprintf("%c/%d/w%d", 'a'+k%2, k, w) }

func (c *rig) lost(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.losses = append(c.losses, fmt.Sprintf(format, args...))
}

// run lives several lives and returns what was lost.
func (c *rig) run(t *testing.T) []string {
	t.Helper()
	for life := range crashLives + 1 {
		calls := c.r.IntN(150*c.workers) + 1
		if life == crashLives {
			calls = 0 // the last one only looks
		}
		if c.sys.skip = ""; c.r.IntN(2) == 0 && calls > 0 {
			c.sys.skip = c.skip
		}
		c.live(t, calls)
		if len(c.losses) > 0 {
			break
		}
		if c.r.IntN(3) == 0 && c.sys.skipped == 0 {
			continue // the process alone
		}
		loss := sim.LoseAll
		if c.r.IntN(3) == 0 {
			loss = sim.LoseSome
		}
		if err := c.disk.Crash(loss); err != nil {
			t.Fatal(err)
		}
		c.sys.skipped = 0
	}
	if err := c.disk.Close(); err != nil {
		t.Fatal(err)
	}
	return c.losses
}

// live opens the store, looks at everything, and works until the process dies.
func (c *rig) live(t *testing.T, calls int) {
	t.Helper()
	c.sys.rearm(0)
	if c.r.IntN(4) == 0 && calls > 0 {
		c.sys.rearm(c.r.IntN(8) + 1) // while it opens, perhaps
	}
	s, err := Open(filepath.Join(c.base, "root"), Options{
		Create: true, Sys: c.door, Rand: sim.NewRand(c.r.Uint64()).Fill,
	})
	if err != nil {
		if !c.sys.isDead() {
			c.lost("the store does not open: %v", err)
		}
		return
	}
	c.s = s
	defer func() {
		c.sys.kill()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	c.look(t)
	if len(c.losses) > 0 || calls == 0 || c.sys.skipped > 0 {
		return
	}
	c.sys.rearm(calls)
	var wg sync.WaitGroup
	for w := range c.workers {
		r := rand.New(rand.NewPCG(c.r.Uint64(), uint64(w)))
		wg.Go(func() {
			for range crashSteps {
				if c.sys.isDead() {
					return
				}
				c.step(t, w, r)
			}
		})
	}
	wg.Wait()
}

// look compares everything with the ledger.
func (c *rig) look(t *testing.T) {
	if _, _, err := c.s.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil && !c.sys.isDead() {
		c.lost("sweep: %v", err)
	}
	if left := temps(t, filepath.Join(c.base, "root")); len(left) > 0 && !c.sys.isDead() {
		c.lost("after a sweep there is %q", left)
	}
	for key, h := range c.keys {
		got, err := c.read(t, key)
		if err != nil {
			if !c.sys.isDead() {
				c.lost("%s: %v", key, err)
			}
			return
		}
		v := h.low
		for v < len(h.versions) && !same(got, h.versions[v]) {
			v++
		}
		if v == len(h.versions) {
			c.lost("%s has %d bytes (nil: %v), and none of the versions from %d to %d", key, len(got), got == nil, h.low, v-1)
			return
		}
		h.versions, h.low = [][]byte{h.versions[v]}, 0
	}
	for sum, content := range c.content {
		got, err := c.read(t, object.ContentKey(sum))
		if c.sys.isDead() {
			return
		}
		if err != nil || !same(got, content) {
			c.lost("content %v: %d bytes, %v", sum, len(got), err)
		}
	}
	_, err := c.s.Check(t.Context(), func(f Finding) { c.lost("%s: %v", f.Path, f.Err) })
	if err != nil {
		c.lost("check: %v", err)
	}
}

func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// read returns an object's content, or nil.
func (c *rig) read(t *testing.T, key string) ([]byte, error) {
	r, _, err := c.s.Get(t.Context(), key, 0, -1)
	if errors.Is(err, object.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

// step is one call of a worker.
func (c *rig) step(t *testing.T, w int, r *rand.Rand) {
	own := crashKey(w, r.IntN(crashKeys))
	switch r.IntN(6) {
	case 0, 1, 2:
		content := bytes.Repeat([]byte(fmt.Sprint(own, r.Uint64())), r.IntN(8)*r.IntN(1000))
		if content == nil {
			content = []byte{}
		}
		c.write(own, content, func() error {
			_, err := c.s.Put(t.Context(), own, bytes.NewReader(content), object.PutOptions{Size: -1})
			return err
		})
	case 3:
		c.write(own, nil, func() error { return c.s.Delete(t.Context(), own) })
	case 4:
		content := []byte(fmt.Sprint("content", r.IntN(10)))
		sum := object.SumOf(content)
		_, _, err := object.PutContent(t.Context(), c.s, sum, -1, bytes.NewReader(content))
		c.mu.Lock()
		if err == nil {
			c.content[sum] = content
		}
		c.mu.Unlock()
		c.unexpected(err)
	case 5:
		c.observe(t, crashKey(r.IntN(c.workers), r.IntN(crashKeys)))
	}
}

// write notes a further version, and that it is there for good if do succeeds.
func (c *rig) write(key string, content []byte, do func() error) {
	c.mu.Lock()
	h := c.keys[key]
	h.versions = append(h.versions, content)
	c.mu.Unlock()
	err := do()
	c.mu.Lock()
	if err == nil {
		h.low = len(h.versions) - 1
	}
	c.mu.Unlock()
	c.unexpected(err)
}

func (c *rig) unexpected(err error) {
	if err != nil && !c.sys.isDead() {
		c.lost("without any fault: %v", err)
	}
}

// observe looks at an object that another may be changing, and notes that the
// version which it has seen is there for good.
func (c *rig) observe(t *testing.T, key string) {
	c.mu.Lock()
	h := c.keys[key]
	low := h.low
	c.mu.Unlock()
	got, err := c.read(t, key)
	if err != nil {
		c.unexpected(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for v := low; v < len(h.versions); v++ {
		if same(got, h.versions[v]) {
			h.low = max(h.low, v)
			return
		}
	}
	c.losses = append(c.losses, fmt.Sprintf("%s is read as what was never put", key))
}

// crashKernel is the kernel below the disk that forgets.
type crashKernel struct{ osSys }

func (crashKernel) Symlinkat(string, int, string) error            { return unix.ENOSYS }
func (crashKernel) Mknodat(int, string, uint32, uint64) error      { return unix.ENOSYS }
func (crashKernel) Ftruncate(int, int64) error                     { return unix.ENOSYS }
func (crashKernel) Fallocate(int, uint32, int64, int64) error      { return unix.ENOSYS }
func (crashKernel) Fchmod(int, uint32) error                       { return unix.ENOSYS }
func (crashKernel) Fchown(int, int, int) error                     { return unix.ENOSYS }
func (crashKernel) Futimens(int, int64, int64, int64, int64) error { return unix.ENOSYS }

// crashSys is the door to the disk of a process that dies at a moment that the
// test chooses. It knows where in the store each sync is called, and can leave
// those of one place out.
type crashSys struct {
	disk *sim.Disk

	mu      sync.Mutex
	calls   int
	die     int // the call at which the process dies; 0: never
	dead    bool
	sites   map[string]int
	skip    string
	skipped int
}

func (s *crashSys) rearm(call int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead, s.die = false, 0
	if call > 0 {
		s.die = s.calls + call
	}
}

func (s *crashSys) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
}

func (s *crashSys) isDead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

func (s *crashSys) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.die > 0 && s.calls >= s.die {
		s.dead = true
	}
	if s.dead {
		return unix.EIO
	}
	return nil
}

// sync makes a sync, unless it is one that is left out. Then the process dies
// before long.
func (s *crashSys) sync(kind string, fd int, do func(int) error) error {
	if err := s.admit(); err != nil {
		return err
	}
	runtime.Gosched() // so that others come while it runs
	site := site() + " " + kind
	s.mu.Lock()
	s.sites[site]++
	skip := site == s.skip
	if skip {
		if s.skipped++; s.skipped == 1 && s.calls%2 == 0 {
			s.die = s.calls + 1 + s.calls%5
		}
	}
	s.mu.Unlock()
	if skip {
		return nil
	}
	return do(fd)
}

// site is the function of the store for which a sync is made.
func site() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		_, name, _ := strings.Cut(f.Function, "/object/dir.")
		name, _, _ = strings.Cut(name, ".func")
		switch name {
		case "", "(*Store).syncFolder", "(*Store).settle", "(*Store).settleName", "(*Store).gated", "(*flights).join":
		default:
			if !strings.Contains(name, "Sys)") {
				return name
			}
		}
		if !more {
			return "nowhere"
		}
	}
}

func (s *crashSys) Openat(dirfd int, name string, flags int, mode uint32) (int, error) {
	if err := s.admit(); err != nil {
		return -1, err
	}
	return s.disk.Openat(dirfd, name, flags, mode)
}

func (s *crashSys) Mkdirat(dirfd int, name string, mode uint32) error {
	if err := s.admit(); err != nil {
		return err
	}
	return s.disk.Mkdirat(dirfd, name, mode)
}

func (s *crashSys) Linkat(fromfd, dirfd int, name string) error {
	if err := s.admit(); err != nil {
		return err
	}
	return s.disk.Linkat(fromfd, dirfd, name)
}

func (s *crashSys) Unlinkat(dirfd int, name string, flags int) error {
	if err := s.admit(); err != nil {
		return err
	}
	return s.disk.Unlinkat(dirfd, name, flags)
}

func (s *crashSys) Renameat(fromfd int, from string, tofd int, to string) error {
	if err := s.admit(); err != nil {
		return err
	}
	return s.disk.Renameat(fromfd, from, tofd, to)
}

func (s *crashSys) Pwrite(fd int, p []byte, off int64) (int, error) {
	if err := s.admit(); err != nil {
		return 0, err
	}
	return s.disk.Pwrite(fd, p, off)
}

func (s *crashSys) Fdatasync(fd int) error { return s.sync("Fdatasync", fd, s.disk.Fdatasync) }
func (s *crashSys) Fsync(fd int) error     { return s.sync("Fsync", fd, s.disk.Fsync) }
func (s *crashSys) Syncfs(fd int) error    { return s.sync("Syncfs", fd, s.disk.Syncfs) }

// anonymousSys can make files without a name as well: of those there is nothing a
// disk would have to remember before they are linked.
type anonymousSys struct{ *crashSys }

func (s anonymousSys) Tmpfile(dirfd int, mode uint32) (int, error) {
	if err := s.admit(); err != nil {
		return -1, err
	}
	return osSys{}.Tmpfile(dirfd, mode)
}
