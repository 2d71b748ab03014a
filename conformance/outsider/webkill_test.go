//go:build linux

package outsider

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	// killedPuts is how many uploads each end is killed in.
	killedPuts = 10
	// longPut bounds one upload, however large.
	longPut = 10 * time.Minute
)

// TestKilledPut kills curl, or the server, at any moment of an upload. Then all of the new file is
// there, or what there was before: nothing, or all of the old file. What curl was told is stored is. After
// it there is no temporary.
func TestKilledPut(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("NOT TESTED: ", err)
	}
	size := int64(64 << 20)
	if os.Getenv("NFSBOX_SOAK") != "" {
		size = 5 << 30
	}
	b := newBox(t)
	w := b.web()
	k := &killing{
		web: w, size: size, name: filepath.Join(w.dir, "big"), rnd: rand.New(rand.NewPCG(1, 2)),
		old: b.path("old"), new: b.path("new"), ends: make(map[string]int),
	}
	k.sums[0], k.sums[1] = k.write(k.old, 1), k.write(k.new, 2)
	start := time.Now()
	for round := range 2 * killedPuts {
		k.round(round%2 == 0, round/2%2 == 0)
	}
	t.Logf("%d uploads of %d bytes, killed: %v, in %v", 2*killedPuts, size, k.ends, time.Since(start))
}

// killing is uploads of one name that are killed.
type killing struct {
	*web
	size     int64
	name     string
	old, new string    // the files, beside what is served
	sums     [2]string // of both
	rnd      *rand.Rand
	ends     map[string]int // how uploads have ended
}

// write makes a file, and returns its checksum.
func (k *killing) write(name string, seed byte) string {
	k.b.Helper()
	f, err := os.Create(name)
	k.b.no(err)
	h := sha256.New()
	_, err = io.CopyN(io.MultiWriter(f, h), rand.NewChaCha8([32]byte{seed}), k.size)
	k.b.no(err)
	k.b.no(f.Close())
	return fmt.Sprintf("%x", h.Sum(nil))
}

// round begins an upload over nothing, or over the old file, and kills one end of it.
func (k *killing) round(server, replaces bool) {
	b := k.b
	b.Helper()
	_ = os.Remove(k.name) // it may not be there
	if replaces {
		b.no(os.Link(k.old, k.name)) // an upload that wrote to it would show in both
	}
	curl := exec.Command("curl", "-sS", "-o", os.DevNull, "-w", "%{http_code}", "-T", k.new, k.at+"/big")
	var said strings.Builder
	curl.Stdout = &said
	b.no(curl.Start())
	over := make(chan error, 1)
	go func() { over <- curl.Wait() }()
	// One in ten is killed when all bytes have come, and one in ten after its end.
	k.grown(k.rnd.Int64N(k.size+k.size/4), over)
	if server {
		k.kill()
	} else {
		_ = curl.Process.Kill() // it may have ended
	}
	if err := <-over; err == nil && !strings.HasPrefix(said.String(), "2") {
		b.Errorf("curl has ended well, and was told %q", said.String())
	}
	if !server {
		b.until("the upload's end", func() bool { return k.temporary() == "" })
	}
	k.whole(replaces, strings.HasPrefix(said.String(), "2"))
	if server {
		k.again()
	}
	if left := k.temporary(); left != "" {
		b.Fatalf("there is still %s", left)
	}
}

// grown waits until the upload's temporary has so many bytes, or all, or curl has ended. With an
// eighth more than all it waits for curl.
func (k *killing) grown(bytes int64, over chan error) {
	k.b.Helper()
	for end := time.Now().Add(longPut); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		select {
		case err := <-over:
			over <- err
			return
		default:
		}
		if info, err := os.Stat(k.temporary()); err == nil && info.Size() >= min(bytes, k.size) && bytes < k.size+k.size/8 {
			return
		}
	}
	k.b.Fatalf("the upload takes more than %v", longPut)
}

// temporary is the hidden name of an upload; "": there is none.
func (k *killing) temporary() string {
	names, err := filepath.Glob(filepath.Join(k.dir, ".nfsbox-upload-*"))
	if err != nil || len(names) == 0 {
		return ""
	}
	return names[0]
}

// whole fails unless the name has all of the new file, or what it had before. It has the new one
// if curl was told so.
func (k *killing) whole(replaces, told bool) {
	b := k.b
	b.Helper()
	end := "neither"
	if _, err := os.Lstat(k.name); os.IsNotExist(err) {
		end = "nothing"
	} else {
		switch sumFile(b, k.name) {
		case k.sums[0]:
			end = "old"
		case k.sums[1]:
			end = "new"
		}
	}
	before := map[bool]string{false: "nothing", true: "old"}[replaces]
	if end != "new" && (told || end != before) {
		info, err := os.Stat(k.name)
		b.Fatalf("there was %s, curl was told that all is stored: %v, and there is %s: %v, %v", before, told, end, info, err)
	}
	k.ends[end]++
}

// again starts the server again.
func (k *killing) again() {
	k.b.Helper()
	k.server = k.b.serveWith(k.state, "127.0.0.1:0", k.dir, "--localio=off", "--api=127.0.0.1:0", fmt.Sprintf("--api-loopback=%d:%d", os.Getuid(), os.Getgid()))
	k.found()
}

// sumFile is the checksum of a file.
func sumFile(b *box, name string) string {
	b.Helper()
	f, err := os.Open(name)
	b.no(err)
	defer func() { _ = f.Close() }()
	h := sha256.New()
	_, err = io.Copy(h, f)
	b.no(err)
	return fmt.Sprintf("%x", h.Sum(nil))
}
