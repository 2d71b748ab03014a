package fileapi

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	oldMode, newMode = 0o640, 0o604
	// crashSteps bounds the calls of the kernel of which each is the last in one life;
	// an upload that makes more is an error of the test's.
	crashSteps = 60
	diskPage   = 4096 // the disk loses bytes by pages
)

// What is stored before and after: three pages that are all different, and a piece.
var oldData, newData = pages('a'), pages('n')

func pages(first byte) (b []byte) {
	for i := range byte(3) {
		b = append(b, bytes.Repeat([]byte{first + i}, diskPage)...)
	}
	return append(b, first+3)
}

// crashRig is a server over a disk that forgets. There is no network: its handler is
// called.
type crashRig struct {
	*rig
	base string
	mode localfs.Mode
	disk *sim.Disk
	uid  uint32
}

func newCrashRig(t *testing.T, mode localfs.Mode, seed uint64) *crashRig {
	t.Helper()
	c := &crashRig{rig: &rig{TB: t}, base: inMemory(t), mode: mode, uid: uint32(os.Geteuid())}
	root, dir := filepath.Join(c.base, "root"), filepath.Join(c.base, "root", "dir")
	c.ok(os.Mkdir(root, 0o755), os.Mkdir(dir, 0o755), os.Mkdir(filepath.Join(c.base, "state"), 0o700))
	if c.uid == 0 {
		c.uid = 1000
		c.ok(os.Chown(dir, 1000, 1000))
	}
	var err error
	c.disk, err = sim.NewDisk(linux.OS{}, filepath.Join(c.base, "shadow"), seed)
	c.ok(err)
	if err := c.start(seed); err != nil {
		c.ok(c.disk.Close())
		if mode == localfs.HandlesKernel && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EOPNOTSUPP)) {
			t.Skipf("NOT TESTED with the kernel's handles: %v", err)
		}
		t.Fatal(err)
	}
	if err := c.put(oldData, new(uint32(oldMode)), true); err != nil {
		t.Fatal(err)
	}
	return c
}

// inMemory is a directory on a disk in memory, where there is one: what it really has is
// not what counts here.
func inMemory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "nfsbox-fileapi-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func (c *crashRig) ok(errs ...error) {
	c.Helper()
	if err := errors.Join(errs...); err != nil {
		c.Fatal(err)
	}
}

// start begins a life: whatever a former one has left is swept.
func (c *crashRig) start(seed uint64) error {
	fs, err := localfs.New(filepath.Join(c.base, "root"), localfs.Options{
		Handles: c.mode, StateDir: filepath.Join(c.base, "state"), Sys: c.disk, Rand: sim.NewRand(seed).Fill,
	})
	if err != nil {
		return err
	}
	c.fs = fs
	table, err := export.NewTable(export.Key{1}, export.Export{Path: "/", FS: fs})
	if err != nil {
		return err
	}
	c.s, err = New(c.Context(), Options{
		Table: table, Loopback: &vfs.Caller{UID: c.uid, GID: c.uid}, Ledger: filepath.Join(c.base, "uploads"),
		Report: func(error) {}, // what cannot be removed without power
	})
	return err
}

// crash takes the power, and starts anew.
func (c *crashRig) crash(loss sim.Loss, seed uint64) {
	c.Helper()
	c.disk.PowerOff(0)
	if l := c.s.temps.ledger; l.file != nil {
		c.ok(l.file.Close())
	}
	_ = vfs.CloseFS(c.fs) // without power it may well fail
	c.ok(c.disk.Crash(loss), c.start(seed))
}

// end is a clean one.
func (c *crashRig) end() {
	c.Helper()
	c.ok(c.s.Close(), vfs.CloseFS(c.fs), c.disk.Close())
	if n := c.s.buffers.Outstanding(); n != 0 {
		c.Errorf("%d buffers are lent out", n)
	}
}

// call makes a call, and returns its error.
func (c *crashRig) call(name, contentType string, body []byte) error {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/"+pb.FileServiceName+"/"+name, bytes.NewReader(body)).WithContext(c.Context())
	r.RemoteAddr, r.Header = "127.0.0.1:700", http.Header{"Content-Type": {contentType}}
	w := httptest.NewRecorder()
	c.s.ServeHTTP(w, r)
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `{"error":`) {
		return errors.New(w.Body.String())
	}
	return nil
}

func (c *crashRig) put(data []byte, mode *uint32, sync bool) error {
	b, err := proto.Marshal(&pb.PutRequest{File: &pb.PutRequest_Path{Path: "/dir/file"}, Data: data, Mode: mode, Sync: sync})
	if err != nil {
		return err
	}
	return c.call("Put", "application/proto", b)
}

func (c *crashRig) upload(sync bool) error {
	head := &pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/dir/file"}, Mode: new(uint32(newMode)), Sync: sync}
	return c.call("Upload", "application/connect+proto", uploadMessages(head, newData, 5000))
}

// check looks at what there is: of the file, and of its directory.
func (c *crashRig) check(acknowledged, sync bool) error {
	names, err := os.ReadDir(filepath.Join(c.base, "root", "dir"))
	if err != nil || len(names) != 1 || names[0].Name() != "file" {
		return fmt.Errorf("the directory holds %v, %w", names, err)
	}
	name := filepath.Join(c.base, "root", "dir", "file")
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid != c.uid {
		return fmt.Errorf("it belongs to %d", uid)
	}
	isOld := bytes.Equal(data, oldData) && info.Mode() == oldMode
	isNew := bytes.Equal(data, newData) && info.Mode() == newMode
	switch {
	case sync && acknowledged && !isNew, sync && !isOld && !isNew:
		return fmt.Errorf("it has %d bytes, %.20q, and mode %v", len(data), data, info.Mode())
	case !sync && !isOld:
		return partOf(data)
	}
	return nil
}

// partOf is nil for what may be left of new bytes that were not synced: pages of them,
// and none of anything else.
func partOf(data []byte) error {
	if len(data) > len(newData) {
		return fmt.Errorf("it has %d bytes", len(data))
	}
	for at := 0; at < len(data); at += diskPage {
		page := data[at:min(at+diskPage, len(data))]
		if want := newData[at : at+len(page)]; !bytes.Equal(page, want) && !bytes.Equal(page, make([]byte, len(page))) {
			return fmt.Errorf("at %d there is %.20q, of neither the new file nor nothing", at, page)
		}
	}
	return nil
}

// onDisks runs a test with each kind of handles.
func onDisks(t *testing.T, test func(t *testing.T, mode localfs.Mode)) {
	for _, mode := range []localfs.Mode{localfs.HandlesKernel, localfs.HandlesMap} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) { test(t, mode) })
	}
}

// TestCrash takes the power at each step of an upload. What was acknowledged with sync is
// there after it; else there is the old file or the new one, of which bytes may be missing
// if no sync was asked for. No temporary outlives the next start.
func TestCrash(t *testing.T) {
	onDisks(t, func(t *testing.T, mode localfs.Mode) {
		for i := range 8 {
			sync, loss, streamed := i&1 == 0, sim.Loss(i>>1&1), i&4 != 0
			acknowledged := false
			for step := 0; !acknowledged; step++ {
				if step == crashSteps {
					t.Fatalf("it takes more than %d steps", step)
				}
				c := newCrashRig(t, mode, uint64(step))
				before := c.disk.Calls()
				c.disk.PowerOff(step)
				var err error
				if streamed {
					err = c.upload(sync)
				} else {
					err = c.put(newData, new(uint32(newMode)), sync)
				}
				acknowledged = err == nil
				if acknowledged && c.disk.Calls()-before > step {
					t.Errorf("step %d: acknowledged, though the power was off before its end", step)
				}
				c.crash(loss, uint64(step))
				if err := c.check(acknowledged, sync); err != nil {
					t.Errorf("step %d, sync %v, loss %d, streamed %v, acknowledged %v: %v", step, sync, loss, streamed, acknowledged, err)
				}
				c.end()
			}
		}
	})
}

// TestDiskFull has no space, or no quota, left from each step of an upload on: an error,
// the old file, and nothing else.
func TestDiskFull(t *testing.T) {
	onDisks(t, func(t *testing.T, mode localfs.Mode) {
		for _, full := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
			for step := 1; ; step++ {
				if step == crashSteps {
					t.Fatalf("it takes more than %d steps", step)
				}
				c := newCrashRig(t, mode, 1)
				n, freed := 0, false
				c.disk.SetFault(func(op string) error {
					freed = freed || op == "unlinkat"
					if n++; n < step || freed {
						return nil
					}
					return full
				})
				err := c.upload(true)
				c.disk.SetFault(nil)
				if err == nil && n >= step {
					t.Errorf("%v, step %d: acknowledged", full, step)
				}
				if left := c.s.temps.left.Load(); left != 0 {
					t.Errorf("%v, step %d: %d temporaries are left", full, step, left)
				}
				if err := c.check(err == nil, true); err != nil {
					t.Errorf("%v, step %d: %v", full, step, err)
				}
				c.end()
				if err == nil {
					break
				}
			}
		}
	})
}

// TestCrashAfterEnd ends the server cleanly when an upload has got its name, but the disk
// only knows of its temporary's, because a sync came between. The power goes then.
func TestCrashAfterEnd(t *testing.T) {
	onDisks(t, func(t *testing.T, mode localfs.Mode) {
		c := newCrashRig(t, mode, 1)
		view := c.s.view(c.s.loopback, netipLoopback)
		dir, _, err := view.Mount(t.Context(), "/dir")
		c.ok(err)
		tmp, err := c.s.temps.create(t.Context(), view, dir, newMode, false)
		c.ok(err, c.put(oldData, nil, true))
		_, err = tmp.rename(t.Context(), "file")
		c.ok(err, tmp.discard(t.Context()), c.s.Close())
		c.crash(sim.LoseAll, 2)
		if err := c.check(true, false); err != nil {
			t.Error(err)
		}
		c.end()
	})
}
