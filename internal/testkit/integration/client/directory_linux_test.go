package client

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// listed is what a process that lists a directory says about itself.
type listed struct {
	Entries uint64
	First   time.Duration // until the first entry
	Took    time.Duration
	CPU     time.Duration // user and system
	RSS     uint64        // the most memory that was resident, in KiB
	Before  uint64        // the same before the listing
}

// listURL is the environment variable that makes a test binary list.
const listURL = "NFSBOX_TEST_LIST"

// TestDirectoryProcess lists a vast directory in a process of its own, in less
// than 64 MiB of all its memory: ten million entries if NFSBOX_SOAK is set.
func TestDirectoryProcess(t *testing.T) {
	if url := os.Getenv(listURL); url != "" {
		fmt.Printf("%s\n", listAll(t, url))
		return
	}
	entries := uint64(100_000)
	if os.Getenv("NFSBOX_SOAK") != "" {
		entries = 10_000_000
	}
	const most = 64 << 10 // KiB
	port := serve(t, export.Export{Path: "/", FS: newVast(entries)})
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDirectoryProcess$")
	cmd.Env = append(os.Environ(), listURL+"=nfs://127.0.0.1:"+port+"/")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	report, _, _ := strings.Cut(string(out), "\n")
	var l listed
	if err := json.Unmarshal([]byte(report), &l); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if l.Entries != entries || l.RSS > most && !need.Race {
		t.Errorf("%d entries in %d KiB, want %d in %d", l.Entries, l.RSS, entries, most)
	}
	t.Logf("%d entries: the first after %v, all after %v, CPU %v (%.0f ns an entry), %d KiB, of which %d before",
		l.Entries, l.First, l.Took, l.CPU, float64(l.CPU)/float64(l.Entries), l.RSS, l.Before)
}

// listAll lists the root of a URL and says, as JSON, what that took.
func listAll(t *testing.T, url string) []byte {
	fs := dial(t, url).FS()
	root, _, err := fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := listed{Before: resident(t)}
	cpu, start := used(t), time.Now()
	for e, err := range fs.ReadDir(t.Context(), root, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if l.Entries == 0 {
			l.First = time.Since(start)
		}
		if e.Attr.Size != l.Entries || e.Handle.IsZero() { // tally would take too long
			t.Fatalf("entry %d is %q", l.Entries, e.Name)
		}
		l.Entries++
	}
	l.Took, l.CPU, l.RSS = time.Since(start), used(t)-cpu, resident(t)
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// used is the process's CPU time.
func used(t testing.TB) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// resident is the most memory that was resident so far, in KiB. (That of
// getrusage counts the process which started this one.)
func resident(t testing.TB) (kib uint64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, hwm, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(hwm, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
