package replycache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
)

// saved is a cache of so many clients and calls, as it is saved.
func saved(t testing.TB, clients, calls int) (*cacheRig, []byte) {
	t.Helper()
	r := newCacheRig(t, Options{})
	for g := range clients {
		m := r.client(addr("192.0.2.1", 1))
		if g > 0 {
			m = r.client(addr(fmt.Sprintf("192.0.2.%d", g+1), 1))
		}
		for i := range calls {
			r.answer(m, i, fmt.Appendf(nil, "reply %d to %d", i, g))
			r.now = r.now.Add(time.Second)
		}
	}
	r.client(addr("198.51.100.1", 1)) // has nothing to save
	var b bytes.Buffer
	if err := r.Save(&b); err != nil {
		t.Fatal(err)
	}
	return r, b.Bytes()
}

var errTest = errors.New("test")

// sealed is what a file with this content and the right sum looks like.
func sealed(p []byte) []byte {
	sum := sha256.Sum256(p)
	return append(bytes.Clone(p), sum[:]...)
}

// TestReplyCacheSave: what is loaded is what was saved.
func TestReplyCacheSave(t *testing.T) {
	r, file := saved(t, 3, 50)
	l := newCacheRig(t, Options{PerClient: 20, Keep: 10 * time.Second})
	l.now = r.now
	if err := l.Load(iotest.OneByteReader(bytes.NewReader(file))); err != nil {
		t.Fatal(err)
	}
	if st, was := l.Stats(), r.Stats(); st.Replies != was.Replies || st.Clients != was.Clients-1 || l.key != r.key {
		t.Errorf("%+v, was %+v", st, was)
	}
	var again bytes.Buffer
	if err := l.Save(&again); err != nil || !bytes.Equal(again.Bytes(), file) {
		t.Errorf("saved again it is another file: %v", err)
	}
	m := l.client(addr("192.0.2.3", 1))
	h := &heard{}
	if m.claim(callNumber(49), asker{}, h); !bytes.Equal(h.reply, []byte("reply 49 to 2")) {
		t.Error("the last reply is not the last reply")
	}
	l.answer(m, 50, nil)
	if l.knows(m, 0) || !l.knows(m, 40) {
		t.Error("what was loaded does not age")
	}
}

// TestReplyCacheLoadOld: replies keep their age over a restart.
func TestReplyCacheLoadOld(t *testing.T) {
	r, file := saved(t, 2, 50)
	for _, x := range []struct {
		pause time.Duration
		want  string
	}{{70 * time.Second, "0 to 49"}, {DefaultMaxAge - 19*time.Second, "31 to 49"}, {time.Hour, "-1 to -1"}} {
		l := newCacheRig(t, Options{})
		l.now = r.now.Add(x.pause)
		if err := l.Load(bytes.NewReader(file)); err != nil {
			t.Fatal(err)
		}
		if got := l.known(l.client(addr("192.0.2.2", 1)), 50); got != x.want {
			t.Errorf("after %v are known %s, want %s", x.pause, got, x.want)
		}
	}
}

// TestReplyCacheLoadLess: a cache with less room takes what is newest.
func TestReplyCacheLoadLess(t *testing.T) {
	r, file := saved(t, 1, 100)
	l := newCacheRig(t, Options{MaxBytes: r.bytes.Load() / 10})
	if err := l.Load(bytes.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	if st := l.Stats(); st.Bytes > l.o.MaxBytes || st.Replies < 8 || !l.knows(l.client(addr("192.0.2.1", 1)), 99) {
		t.Errorf("%+v", st)
	}
}

// TestReplyCacheLoadRefuses: a file that is not whole, or changed, changes
// nothing; nor does one that comes too late.
func TestReplyCacheLoadRefuses(t *testing.T) {
	_, file := saved(t, 2, 2)
	body := file[:len(file)-sha256.Size]
	l := newCacheRig(t, Options{})
	key := l.key
	refuses := func(name string, in io.Reader, want error) {
		t.Helper()
		if err := l.Load(in); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
		if st := l.Stats(); st != (oncrpc.ReplyCacheStats{}) || l.key != key {
			t.Errorf("%s has changed the cache: %+v", name, st)
		}
	}
	for n := range file {
		refuses(fmt.Sprint("cut after ", n), bytes.NewReader(file[:n]), ErrNotSaved)
		bad := bytes.Clone(file)
		bad[n] ^= 0x40
		refuses(fmt.Sprint("changed at ", n), bytes.NewReader(bad), ErrNotSaved)
	}
	refuses("longer", bytes.NewReader(append(bytes.Clone(file), 0)), ErrNotSaved)
	refuses("disk error", iotest.TimeoutReader(bytes.NewReader(file)), iotest.ErrTimeout)
	refuses("broken disk", iotest.ErrReader(errTest), errTest)
	refuses("another version", bytes.NewReader(sealed(append([]byte(savedMagic), 0, 0, 0, 2))), ErrNotSaved)

	head := body[:len(savedMagic)+4+hashKeyBytes]
	client := body[len(head)+4 : len(head)+4+(len(body)-len(head)-4)/2]
	twice := append(binary.BigEndian.AppendUint32(bytes.Clone(head), 2), client...)
	refuses("a client twice", bytes.NewReader(sealed(append(twice, client...))), ErrNotSaved)
	name := 2 + int(client[1])
	reply := client[name+4 : name+4+(len(client)-name-4)/2]
	twice = append(binary.BigEndian.AppendUint32(bytes.Clone(head), 1), client[:name]...)
	twice = append(binary.BigEndian.AppendUint32(twice, 2), reply...)
	refuses("a call twice", bytes.NewReader(sealed(append(twice, reply...))), ErrNotSaved)
	refuses("a name too long", bytes.NewReader(sealed(append(bytes.Clone(head), 0, 0, 0, 1, 1, 0))), ErrNotSaved)

	l.client(addr("192.0.2.1", 1))
	if err := l.Load(bytes.NewReader(file)); !errors.Is(err, ErrInUse) || l.key != key {
		t.Errorf("in use: %v", err)
	}
}

// failsAfter is a disk that is full after n bytes.
type failsAfter int

func (f *failsAfter) Write(p []byte) (int, error) {
	if *f -= failsAfter(len(p)); *f < 0 {
		return 0, errTest
	}
	return len(p), nil
}

// TestReplyCacheSaveFails has a disk that becomes full at every point.
func TestReplyCacheSaveFails(t *testing.T) {
	r, file := saved(t, 2, 2)
	for n := range len(file) {
		disk := failsAfter(n)
		if err := r.Save(&disk); !errors.Is(err, errTest) {
			t.Fatalf("full after %d bytes: %v", n, err)
		}
	}
}

// FuzzReplyCacheLoad loads files with any content and the right sum. What is
// loaded can be saved and loaded again; what is not has changed nothing.
func FuzzReplyCacheLoad(f *testing.F) {
	for _, n := range []int{0, 1, 3} {
		_, file := saved(f, n, n)
		f.Add(file[:len(file)-sha256.Size])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		l := newCacheRig(t, Options{MaxBytes: 4 << 10})
		if err := l.Load(bytes.NewReader(sealed(body))); err != nil {
			if st := l.Stats(); st != (oncrpc.ReplyCacheStats{}) || !errors.Is(err, ErrNotSaved) {
				t.Fatalf("%v: %+v", err, st)
			}
			return
		}
		if l.bytes.Load() > l.o.MaxBytes {
			t.Fatalf("%d bytes", l.bytes.Load())
		}
		var file bytes.Buffer
		if err := l.Save(&file); err != nil {
			t.Fatal(err)
		}
		again := newCacheRig(t, l.o)
		again.now = l.now
		if err := again.Load(&file); err != nil || again.Stats().Replies != l.Stats().Replies {
			t.Fatalf("loaded again: %v, %+v", err, again.Stats())
		}
	})
}
