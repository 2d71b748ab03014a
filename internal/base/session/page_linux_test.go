package session

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/proto/localio"
)

func newPageView(t testing.TB, slots int) (*Page, *View) {
	t.Helper()
	p, err := NewPage(slots)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	v, err := MapPage(p.FD(), slots)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return p, v
}

func TestPage(t *testing.T) {
	noneLeft(t)
	for _, slots := range []int{1, 1023, 1024, localio.SESSION_MAX_SLOTS} {
		p, v := newPageView(t, slots)
		for i := range slots + 1 {
			if v.Load(i) != 0 {
				t.Fatalf("word %d is not 0", i)
			}
			p.Store(i, uint32(i)+5)
		}
		for i := range slots + 1 {
			if v.Load(i) != uint32(i)+5 || p.Load(i) != uint32(i)+5 {
				t.Fatalf("word %d is %d, and %d at the server", i, v.Load(i), p.Load(i))
			}
		}
		if v.Load(slots+1) != 0 || v.Load(-1) != 0 {
			t.Error("words that are not there are not 0")
		}
		p.Close()
		p.Store(0, 1) // for nobody
		if v.Load(slots) == 0 {
			t.Error("the client's view ends with the server's descriptor")
		}
		v.Close()
		v.Close()
		if v.Load(0) != 0 || v.Load(slots) != 0 {
			t.Error("a closed view is valid")
		}
		if p.FD() != -1 {
			t.Error("a closed page has a descriptor")
		}
	}
}

// TestPageUnmapped gives the memory of a page back at once: clients come and go
// faster than garbage is collected, and the kernel lets a process have so many
// mappings.
func TestPageUnmapped(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	mapped := func() int {
		t.Helper()
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(maps, []byte("/memfd:localio"))
	}
	before := mapped()
	for range 100 {
		p, err := NewPage(1)
		if err != nil {
			t.Fatal(err)
		}
		p.Store(1, 7)
		p.Close()
		p.Close()
		p.Store(1, 8)
		if got := p.Load(1); got != 0 {
			t.Fatalf("a page that is closed has %d", got)
		}
	}
	if got := mapped(); got > before {
		t.Errorf("%d pages are mapped, %d before", got, before)
	}
}

// TestPageIsSealed tries to write as the client, who may be root.
func TestPageIsSealed(t *testing.T) {
	noneLeft(t)
	p, v := newPageView(t, 10)
	fd := p.FD()
	if _, err := unix.Pwrite(fd, []byte{1}, 0); err == nil {
		t.Error("the descriptor writes")
	}
	again, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err) // the mode of such files lets everybody
	}
	defer func() {
		if err := unix.Close(again); err != nil {
			t.Error(err)
		}
	}()
	if _, err := unix.Pwrite(again, []byte{1}, 0); err == nil {
		t.Error("opened again, it writes")
	}
	if b, err := unix.Mmap(again, 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
		t.Error("opened again, it is mapped for writing", unix.Munmap(b))
	}
	for _, size := range []int64{0, 1 << 20} {
		if err := unix.Ftruncate(again, size); err == nil {
			t.Errorf("it has %d bytes now", size)
		}
	}
	if err := unix.Fallocate(again, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 44); err == nil {
		t.Error("it has a hole")
	}
	p.Store(1, 7)
	if v.Load(1) != 7 {
		t.Error("the server's own mapping is sealed, too")
	}
}

// TestHostilePage is what a server might send to have its client fault.
func TestHostilePage(t *testing.T) {
	noneLeft(t)
	memfd := func(size int64, flags, seals int) func(*testing.T) int {
		return func(t *testing.T) int {
			fd, err := unix.MemfdCreate("hostile", unix.MFD_CLOEXEC|flags)
			if err != nil {
				t.Skip(err)
			}
			if err := unix.Ftruncate(fd, size); err != nil {
				t.Fatal(err)
			}
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil && seals != 0 {
				t.Fatal(err)
			}
			return fd
		}
	}
	const good = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	for name, x := range map[string]struct {
		open  func(*testing.T) int
		slots int
	}{
		"good":       {memfd(44, unix.MFD_ALLOW_SEALING, good), 10},
		"no seals":   {memfd(44, unix.MFD_ALLOW_SEALING, 0), 10},
		"may shrink": {memfd(44, unix.MFD_ALLOW_SEALING, unix.F_SEAL_GROW), 10},
		"too short":  {memfd(43, unix.MFD_ALLOW_SEALING, good), 10},
		"no slots":   {memfd(44, unix.MFD_ALLOW_SEALING, good), 0},
		"negative":   {memfd(44, unix.MFD_ALLOW_SEALING, good), -1},
		"too many":   {memfd(1<<20, unix.MFD_ALLOW_SEALING, good), localio.SESSION_MAX_SLOTS + 1},
		"huge pages": {memfd(2<<20, unix.MFD_ALLOW_SEALING|unix.MFD_HUGETLB, good), 10},
		"a file": {func(t *testing.T) int {
			fd, err := unix.Open(filepath.Join(t.TempDir(), "f"), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Ftruncate(fd, 4096); err != nil {
				t.Fatal(err)
			}
			return fd
		}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			fd := x.open(t)
			v, err := MapPage(fd, x.slots)
			if (err == nil) != (name == "good") {
				t.Errorf("%v, %v", v, err)
			}
			if v != nil {
				v.Close()
			}
			if err := unix.Close(fd); err != nil {
				t.Error(err)
			}
		})
	}
	for _, slots := range []int{-1, 0, localio.SESSION_MAX_SLOTS + 1} {
		if _, err := NewPage(slots); err == nil {
			t.Errorf("a page of %d slots", slots)
		}
	}
}

// TestViewClosesUnderLoads looks at a page that is closed meanwhile, and whose
// memory goes back.
func TestViewClosesUnderLoads(t *testing.T) {
	noneLeft(t)
	for range 100 {
		p, err := NewPage(5000)
		if err != nil {
			t.Fatal(err)
		}
		p.Store(4000, 9)
		v, err := MapPage(p.FD(), 5000)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var closed atomic.Bool
		for range 4 {
			wg.Go(func() {
				over := false
				for !over {
					over = closed.Load() // before the look
					if got := v.Load(4000); got != 0 && (got != 9 || over) {
						t.Errorf("a view that is closed (%t) has %d", over, got)
						return
					}
				}
			})
		}
		v.Close()
		closed.Store(true)
		p.Close()
		wg.Wait()
	}
	for range 100 {
		runtime.GC()
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(maps), "memfd:localio") {
			return
		}
		runtime.Gosched()
	}
	t.Error("pages stay mapped")
}

func TestLoadAllocs(t *testing.T) {
	p, v := newPageView(t, 10)
	if n := testing.AllocsPerRun(100, func() { p.Store(3, v.Load(3)+1) }); n != 0 {
		t.Errorf("%v allocations for an access", n)
	}
}

// BenchmarkValid is what a client does before each access to a file.
func BenchmarkValid(b *testing.B) {
	p, v := newPageView(b, 1024)
	p.Store(0, localio.PAGE_LIVE)
	p.Store(77, 5)
	for b.Loop() {
		if v.Load(0) != localio.PAGE_LIVE || v.Load(77) != 5 {
			b.Fatal("not valid")
		}
	}
}
