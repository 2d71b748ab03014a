package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

var (
	refused = &net.OpError{
		Op: "dial", Net: "tcp", Source: &net.TCPAddr{Port: 753}, Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2049},
		Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
	}
	noHost = &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "filer.example", Server: "10.0.0.53:53", IsNotFound: true}}
)

// status is an error of a procedure, as the client makes it.
type status struct {
	proc string
	vfs.Status
}

func (e status) Error() string { return e.proc + ": " + e.Status.Error() }
func (e status) Unwrap() error { return e.Status }

// Each error with what is said of it.
var told = []struct {
	err        error
	text, code string
	advice     string // part of it
}{
	{nil, "", "", ""},
	{
		fmt.Errorf("nfs://127.0.0.1:2049/x: cannot be reached: %w", fmt.Errorf("nfs: 127.0.0.1: MOUNT: %w", refused)),
		"nfs://127.0.0.1:2049/x: cannot be reached: MOUNT: connection refused", "ECONNREFUSED", "nothing listens",
	},
	{fmt.Errorf("top: %w", refused), "top: 127.0.0.1:2049: connection refused", "ECONNREFUSED", "nothing listens"},
	{
		fmt.Errorf("nfs://filer.example/x: %w", fmt.Errorf("nfs: filer.example: portmapper: %w", noHost)),
		"nfs://filer.example/x: portmapper: no host has the name filer.example", CodeNoHost, "written right",
	},
	{
		fmt.Errorf("nfs://h/nope: %w", &fs.PathError{Op: "resolve", Path: "nope", Err: vfs.ErrNoEnt}),
		"nfs://h/nope: no such file or directory", "ENOENT", "as it is on the server",
	},
	{
		fmt.Errorf("nfs://h/a/b: %w", &fs.PathError{Op: "resolve", Path: "a", Err: vfs.ErrAccess}),
		"nfs://h/a/b: a: permission denied", "EACCES", "uid=",
	},
	{
		fmt.Errorf("nfs://h/a/f/z/: %w", &fs.PathError{Op: "resolve", Path: "/a/f", Err: vfs.ErrNotDir}),
		"nfs://h/a/f/z/: /a/f: not a directory", "ENOTDIR", "as it is on the server",
	},
	{
		fmt.Errorf("nfs://h/a/f/: %w", &fs.PathError{Op: "resolve", Path: "/a/f", Err: vfs.ErrNotDir}),
		"nfs://h/a/f/: not a directory", "ENOTDIR", "as it is on the server",
	},
	{&fs.PathError{Op: "stat", Path: "/nonexistent", Err: syscall.ENOENT}, "stat /nonexistent: no such file or directory", "ENOENT", ""},
	{fmt.Errorf("f: %w", status{"WRITE", vfs.ErrNoSpace}), "f: WRITE: no space left on device", "ENOSPC", "make room"},
	{fmt.Errorf("f: %w", fmt.Errorf("f: %w", vfs.ErrBusy)), "f: busy, try again later", "NFS3ERR_JUKEBOX", "passes on a server that is away"},
	{errors.Join(vfs.ErrStale, vfs.ErrStale), "stale file handle", "ESTALE", "handle"},
	{
		fmt.Errorf("close: %w", errors.Join(errors.New("one\ntwo"), vfs.ErrIO)),
		"close: one\ntwo; input/output error", "EIO", "",
	},
	{fmt.Errorf("%w; and %w (give its port)", refused, vfs.ErrIO), "127.0.0.1:2049: connection refused; and input/output error (give its port)", "EIO", ""},
	{fmt.Errorf("nfs://h/x: READ: %w", context.Canceled), "interrupted: nfs://h/x: READ", CodeCanceled, ""},
	{fmt.Errorf("copy a: %w; then %w", context.Canceled, errors.New("b is left behind")), "interrupted: copy a; then b is left behind", CodeCanceled, ""},
	{fmt.Errorf("after %w", context.Canceled), "interrupted: after interrupted", CodeCanceled, ""},
	{context.Canceled, "interrupted", CodeCanceled, ""},
	{fmt.Errorf("nfs://h/x: %w", os.ErrDeadlineExceeded), "nfs://h/x: i/o timeout", "ETIMEDOUT", "no answer"},
	{
		fmt.Errorf("nfs://h/x: %w", fmt.Errorf("MOUNT at port 7: %w: %w", ErrMute, os.ErrDeadlineExceeded)),
		"nfs://h/x: MOUNT at port 7: the port accepts connections, and answers nothing: i/o timeout", "ETIMEDOUT", "another service may listen there",
	},
	{syscall.ELOOP, syscall.ELOOP.Error(), "ELOOP", "in circles"},
	{errors.New("odd: nfs: odd"), "odd: nfs: odd", CodeOther, ""},
}

func TestTold(t *testing.T) {
	for _, tt := range told {
		if got := Text(tt.err); got != tt.text {
			t.Errorf("%v\n  is told as %q\n        want %q", tt.err, got, tt.text)
		}
		if got := Code(tt.err); got != tt.code {
			t.Errorf("the code of %v is %q, want %q", tt.err, got, tt.code)
		}
		if tt.err == nil {
			continue
		}
		if got := Advice(tt.err); !strings.Contains(got, tt.advice) {
			t.Errorf("the advice on %v is %q, want %q in it", tt.err, got, tt.advice)
		}
	}
}

// TestCodesOfStatuses: every status of the contract has a code of its own.
func TestCodesOfStatuses(t *testing.T) {
	seen := make(map[string]vfs.Status)
	for number := range vfs.Status(20000) {
		if number.Name() == fmt.Sprint(uint32(number)) {
			continue
		}
		code := Code(fmt.Errorf("x: %w", number))
		if other, ok := seen[code]; ok {
			t.Errorf("%v and %v are both %s", other, number, code)
		}
		seen[code] = number
	}
	if len(seen) < 29 {
		t.Errorf("%d statuses found, want 29 or more", len(seen))
	}
}

// FuzzText: no text is lost that is nowhere else, and none is empty.
func FuzzText(f *testing.F) {
	f.Add("nfs", "127.0.0.1", "connection refused")
	f.Add("nfs://h/a", "resolve a", "no such file")
	f.Add("", ": ", "x")
	f.Fuzz(func(t *testing.T, a, b, cause string) {
		err := fmt.Errorf("%s: %w", a, fmt.Errorf("%s: %w", b, errors.New(cause)))
		text := Text(err)
		if cause != "" && !strings.Contains(text, cause) {
			t.Errorf("%q lacks its cause %q", text, cause)
		}
		if len(text) > len(err.Error()) {
			t.Errorf("%q is longer than %q", text, err)
		}
	})
}
