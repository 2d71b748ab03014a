package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
)

// forgetful is a Disk that loses what was not synced.
type forgetful struct {
	System
	d *sim.Disk
}

func (f forgetful) Mkdir(name string) error { return f.d.Mkdirat(unix.AT_FDCWD, name, 0o700) }

func (f forgetful) Create(name string) (*os.File, error) {
	if file, err := os.OpenFile(name, os.O_RDWR, 0); err == nil { //nolint:gosec // The test's own.
		return file, f.d.Ftruncate(int(file.Fd()), 0)
	}
	fd, err := f.d.Openat(unix.AT_FDCWD, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (f forgetful) Rename(from, to string) error {
	return f.d.Renameat(unix.AT_FDCWD, from, unix.AT_FDCWD, to)
}

func (f forgetful) Remove(name string) error { return f.d.Unlinkat(unix.AT_FDCWD, name, 0) }

func (f forgetful) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // nothing was written
	return f.d.Fsync(int(d.Fd()))
}

func (f forgetful) Sync(file *os.File) error     { return f.d.Fsync(int(file.Fd())) }
func (f forgetful) Datasync(file *os.File) error { return f.d.Fdatasync(int(file.Fd())) }

func (f forgetful) WriteAt(file *os.File, p []byte, off int64) (int, error) {
	return f.d.Pwrite(int(file.Fd()), p, off)
}

// TestPowerFails: whatever of the unsynced a power failure leaves, at any call: the next start works by itself, hands out no
// wrong byte, and takes no more than it may.
func TestPowerFails(t *testing.T) {
	need.Speed(t, "one goroutine")
	first, seeds := uint64(72), uint64(8) // 77 finds removals that come back
	if os.Getenv("NFSBOX_SOAK") != "" {
		first, seeds = 0, 600
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { powerFails(t, seed) })
	}
}

func powerFails(t *testing.T, seed uint64) {
	const files, size = 12, 8 * MinGranule
	rnd := rand.New(rand.NewPCG(seed, 5))
	dir := home(t)
	d, err := sim.NewDisk(linux.OS{}, filepath.Join(t.TempDir(), "shadow"), seed)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	o := Options{Dir: dir, Size: size, NoChecksum: seed%4 == 3, Disk: forgetful{d: d}, Space: roomy, Granule: MinGranule}
	version := make([]int, files) // of each file, as the server has it
	length := func(n int) int { return 1 + (n*7+version[n])%5*MinGranule/2 }
	id := func(n int) int { return n + files*version[n] }
	for range 4 {
		if rnd.IntN(4) > 0 {
			d.PowerOff(rnd.IntN(150))
		}
		if s, err := Open(o); err == nil { // else the power failed while it was opened
			for range rnd.IntN(30) {
				n := rnd.IntN(files)
				if rnd.IntN(6) == 0 {
					version[n]++
				}
				fillAs(t, s, n, id(n), length(n))
				checkAs(t, s, n, id(n), length(n))
			}
			_ = s.Close() // the power may have failed
		}
		loss := sim.LoseAll
		if rnd.IntN(2) == 0 {
			loss = sim.LoseSome
		}
		if err := d.Crash(loss); err != nil {
			t.Fatal(err)
		}
		s, err := Open(o)
		if err != nil {
			t.Fatalf("after the crash: %v", err)
		}
		for n := range files {
			checkAs(t, s, n, id(n), length(n))
			fillAs(t, s, n, id(n), length(n))
			if took := taken(t, s.dir); took > size {
				t.Errorf("the files take %d bytes, of %d", took, size)
			}
		}
		if st := s.Stats(); st.State != "on" || st.Entries == 0 {
			t.Errorf("after the crash: %+v", st)
		}
		stop(t, s)
	}
}

// fillAs and checkAs are fill and check of file n in a version that has its own bytes.
func fillAs(t *testing.T, s *Store, n, v, size int) {
	t.Helper()
	e := s.Open(key(n), version(v, size), "")
	if e == nil {
		return
	}
	defer e.Release()
	data := bytesOf(v, size)
	for g := 0; g*e.Granule() < size; g++ {
		e.Fill(g, data[g*e.Granule():min((g+1)*e.Granule(), size)])
	}
}

func checkAs(t *testing.T, s *Store, n, v, size int) {
	t.Helper()
	e := s.Open(key(n), version(v, size), "")
	if e == nil {
		return
	}
	defer e.Release()
	data, p := bytesOf(v, size), make([]byte, size)
	for off := 0; off < size; {
		k := e.ReadAt(p, uint64(off))
		if string(p[:k]) != string(data[off:off+k]) {
			t.Fatalf("file %d, version %d: wrong bytes in [%d, %d)", n, v, off, off+k)
		}
		if off += k; k == 0 {
			off = (off/e.Granule() + 1) * e.Granule()
		}
	}
}
