//go:build linux && (amd64 || arm64)

package localfs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// callsEnv makes the process the one whose system calls are counted.
const callsEnv = "NFSBOX_TEST_CALLS"

// cost is how many system calls an operation makes: those of the file system, and
// those that change the thread's identity.
type cost struct{ calls, ids int }

// counted are the operations of a small upload and a small download, as a server
// makes them for a caller who is not the process, in a directory that is not the
// root, and the most that each may cost with the kernel's handles and with the map,
// which asks for a handle, too, to tell objects apart.
var counted = []struct {
	name           string
	kernel, mapped cost
	run            func(*uploader)
}{
	{"open to create", cost{6, 10}, cost{6, 10}, (*uploader).create},
	{"write", cost{3, 0}, cost{3, 0}, (*uploader).write},
	{"close", cost{0, 0}, cost{0, 0}, (*uploader).close},
	{"rename", cost{4, 10}, cost{8, 20}, func(u *uploader) { u.rename("temporary", "file") }},
	{"look up what was written", cost{4, 0}, cost{5, 0}, (*uploader).lookup},
	{"open what was looked up", cost{2, 0}, cost{2, 0}, (*uploader).open},
	{"read", cost{2, 0}, cost{2, 0}, (*uploader).read},
	{"close what was read", cost{0, 0}, cost{0, 0}, (*uploader).close},
	{"let go of it", cost{3, 0}, cost{4, 0}, func(u *uploader) { u.host.fds.Forget(u.x) }},
	{"look up what is not open", cost{5, 0}, cost{5, 0}, (*uploader).lookup},
	{"open what is not open", cost{2, 0}, cost{2, 0}, (*uploader).open},
	{"create", cost{6, 10}, cost{6, 10}, (*uploader).make},
	{"attributes of what was made", cost{1, 0}, cost{1, 0}, (*uploader).attributes},
	{"rename over another", cost{9, 10}, cost{12, 20}, func(u *uploader) { u.rename("temporary", "file") }},
}

// TestSystemCalls counts what the everyday operations cost, in a process of its own
// that is traced.
func TestSystemCalls(t *testing.T) {
	if os.Getenv(callsEnv) != "" {
		runCounted(t)
		return
	}
	needRoot(t)
	bothModes(t, func(t *testing.T, o Options) {
		for i, calls := range traced(t, o.Handles)[:len(counted)] {
			op, got := counted[i], cost{}
			want := op.kernel
			if o.Handles == HandlesMap {
				want = op.mapped
			}
			for name, n := range calls {
				if strings.HasPrefix(name, "set") {
					got.ids += n
				} else {
					got.calls += n
				}
			}
			t.Logf("%s: %+v, %v", op.name, got, calls)
			if got.calls > want.calls || got.ids > want.ids {
				t.Errorf("%s: %+v, want at most %+v: %v", op.name, got, want, calls)
			}
		}
	})
}

// markCall is the first argument of a prctl(2) that does nothing but say which
// operation comes next.
const markCall = 0x6e667362

func nextCall(i int) { _, _, _ = unix.RawSyscall(unix.SYS_PRCTL, markCall, uintptr(i), 0) }

// runCounted is what the traced process does. What it does the first time, to find
// out how far below the root the directory is, say, is not counted.
func runCounted(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	o := Options{Handles: HandlesKernel, Volatile: true}
	if os.Getenv(callsEnv) == HandlesMap.String() {
		o.Handles = HandlesMap
	}
	modest(t)
	unix.Umask(0) // which would be made good by more calls
	f, err := New(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	u := &uploader{T: t, host: f.host, fs: f.As(alice()), dir: dirOf(t, f, "dir", alice(), 0o755), data: make([]byte, 4096)}
	for round := range 2 {
		for i, op := range counted {
			if round > 0 {
				nextCall(i)
			}
			op.run(u)
		}
		nextCall(len(counted))
		u.close()
		if _, err := u.fs.Remove(t.Context(), u.dir, "file", false); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// uploader is a caller and the one file that he deals with.
type uploader struct {
	*testing.T
	host *host
	fs   vfs.FS
	dir  vfs.Handle
	x    vfs.Handle
	file vfs.File
	data []byte
}

func (u *uploader) ok(err error) {
	u.Helper()
	if err != nil {
		u.Fatal(err)
	}
}

var newFile = vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateGuarded, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}}

func (u *uploader) create() {
	file, o, err := u.fs.Open(u.Context(), vfs.At{Dir: u.dir, Name: "temporary"}, &vfs.OpenHow{Access: vfs.ShareWrite, Create: &newFile})
	u.ok(err)
	u.file, u.x = file, o.H
}

func (u *uploader) make() {
	x, _, _, err := u.fs.Create(u.Context(), u.dir, "temporary", &newFile)
	u.ok(err)
	u.x = x
}

func (u *uploader) write() {
	var w vfs.Written
	_, err := u.file.WriteAt(u.Context(), u.data, 0, vfs.Unstable, &w)
	u.ok(err)
}

func (u *uploader) close() { u.ok(u.file.Close(u.Context())) }

func (u *uploader) rename(from, to string) {
	_, _, err := u.fs.Rename(u.Context(), u.dir, from, u.dir, to)
	u.ok(err)
}

func (u *uploader) lookup() {
	x, _, _, err := u.fs.Lookup(u.Context(), u.dir, "file")
	u.ok(err)
	if x != u.x {
		u.Error("another handle")
	}
}

func (u *uploader) open() {
	file, _, err := u.fs.Open(u.Context(), vfs.At{H: u.x}, &vfs.OpenHow{Access: vfs.ShareRead})
	u.ok(err)
	u.file = file
}

func (u *uploader) read() {
	var post vfs.Attr
	_, _, err := u.file.ReadAt(u.Context(), u.data, 0, &post)
	u.ok(err)
}

func (u *uploader) attributes() {
	_, err := u.fs.GetAttr(u.Context(), u.x, vfs.MaskV3)
	u.ok(err)
}

// traced runs this test in a process of its own, and counts the system calls of the
// thread that makes marks, by operation and name.
func traced(t *testing.T, mode Mode) []map[string]int {
	t.Helper()
	runtime.LockOSThread() // a process is traced by the thread that has begun it
	defer runtime.UnlockOSThread()
	child := exec.Command(os.Args[0], "-test.run=^TestSystemCalls$", "-test.timeout=60s")
	child.Env = append(os.Environ(), callsEnv+"="+mode.String())
	child.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true, Pdeathsig: unix.SIGKILL}
	var out strings.Builder
	file, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	child.Stdout, child.Stderr = file, file
	if err := child.Start(); err != nil {
		need.Missing(t, "root", fmt.Sprintf("no process can be traced here: %v", err))
	}
	tr := tracer{group: child.Process.Pid, calls: make([]map[string]int, len(counted)+1), at: -1}
	err = tr.follow()
	_ = child.Process.Release()
	if raw, e := os.ReadFile(file.Name()); e == nil {
		out.Write(raw)
	}
	if err != nil || tr.calls[len(counted)] == nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return tr.calls
}

// tracer counts.
type tracer struct {
	group int // of processes, and the first one of them
	tid   int // the thread that makes the marks
	at    int // the operation
	calls []map[string]int
}

// follow runs until the first process has ended.
func (tr *tracer) follow() error {
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL
	set := false
	for {
		var ws unix.WaitStatus
		tid, err := unix.Wait4(-tr.group, &ws, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case ws.Exited() || ws.Signaled():
			if tid != tr.group {
				continue
			}
			if ws.Signaled() || ws.ExitStatus() != 0 {
				return fmt.Errorf("the traced process: %v", ws)
			}
			return nil
		case !ws.Stopped():
			continue
		}
		if !set {
			set = true
			if err := unix.PtraceSetOptions(tid, options); err != nil {
				return err
			}
		}
		sig := 0
		switch s := ws.StopSignal(); s {
		case unix.SIGTRAP | 0x80:
			tr.note(tid)
		case unix.SIGTRAP, unix.SIGSTOP:
		default:
			sig = int(s)
		}
		if err := unix.PtraceSyscall(tid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
}

// callInfo is the head of struct ptrace_syscall_info.
type callInfo struct {
	op   uint8
	_    [3]uint8
	arch uint32
	_    [2]uint64
	nr   uint64
	args [6]uint64
	_    [2]uint64
}

// note counts the call that tid is about to make.
func (tr *tracer) note(tid int) {
	var in callInfo
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), unsafe.Sizeof(in), uintptr(unsafe.Pointer(&in)), 0, 0)
	if e != 0 || in.op != unix.PTRACE_SYSCALL_INFO_ENTRY {
		return
	}
	if in.nr == unix.SYS_PRCTL && in.args[0] == markCall && in.args[1] < uint64(len(tr.calls)) {
		tr.tid, tr.at = tid, int(in.args[1])
		tr.calls[tr.at] = make(map[string]int)
		return
	}
	if name, ok := callNames[in.nr]; ok && tr.at >= 0 && tid == tr.tid {
		tr.calls[tr.at][name]++
	}
}

// callNames are the calls that count: not those of the runtime.
var callNames = map[uint64]string{
	unix.SYS_STATX: "statx", unix.SYS_OPENAT: "openat", unix.SYS_CLOSE: "close",
	unix.SYS_NAME_TO_HANDLE_AT: "name_to_handle_at", unix.SYS_OPEN_BY_HANDLE_AT: "open_by_handle_at",
	unix.SYS_RENAMEAT: "renameat", unix.SYS_RENAMEAT2: "renameat2", unix.SYS_UNLINKAT: "unlinkat", unix.SYS_LINKAT: "linkat",
	unix.SYS_PREAD64: "pread", unix.SYS_PREADV2: "preadv2", unix.SYS_PWRITE64: "pwrite",
	unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync", unix.SYS_FSTATFS: "fstatfs", unix.SYS_FSTAT: "fstat",
	unix.SYS_GETXATTR: "getxattr", unix.SYS_FGETXATTR: "fgetxattr", unix.SYS_FACCESSAT2: "faccessat2",
	unix.SYS_FCHMODAT: "fchmodat", unix.SYS_FCHOWNAT: "fchownat", unix.SYS_UTIMENSAT: "utimensat",
	unix.SYS_READLINKAT: "readlinkat", unix.SYS_FCNTL: "fcntl", unix.SYS_WRITE: "write",
	unix.SYS_SETGROUPS: "setgroups", unix.SYS_SETFSUID: "setfsuid", unix.SYS_SETFSGID: "setfsgid", unix.SYS_CAPSET: "setcap",
}
