package session

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/proto/localio"
)

// TestFiles passes as many files as a message takes, which arrive in order, and
// are not for the programs that the client runs.
func TestFiles(t *testing.T) {
	noneLeft(t)
	client, server := ends(t)
	sent := temps(t, localio.SESSION_MAX_OPENS)
	if err := server.Send(opened(len(sent)), sent...); err != nil {
		t.Fatal(err)
	}
	var m localio.SessionMessage
	got, err := client.Receive(&m)
	if err != nil || len(got) != len(sent) || len(m.Opened.Files) != len(sent) {
		t.Fatalf("%d descriptors, %d files, %v", len(got), len(m.Opened.Files), err)
	}
	for i, fd := range got {
		b := make([]byte, 2)
		if n, err := unix.Pread(fd, b, 0); n != 1 || err != nil || b[0] != byte(i) {
			t.Errorf("file %d holds %v, %v", i, b[:max(n, 0)], err)
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("file %d has flags %#x, %v", i, flags, err)
		}
	}
	if err := closeAll(got); err != nil {
		t.Error(err)
	}
}

func TestEndIsEOF(t *testing.T) {
	noneLeft(t)
	client, server := ends(t)
	if err := client.Send(hello()); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	var m localio.SessionMessage
	if _, err := server.Receive(&m); err != nil || m.Hello.UserNs != 7 {
		t.Fatalf("what was sent before the end: %+v, %v", m, err)
	}
	if _, err := server.Receive(&m); !errors.Is(err, io.EOF) {
		t.Errorf("the end is %v", err)
	}
	if err := server.Send(bound(1)); err == nil {
		t.Error("a message to nobody is sent")
	}
	if err := client.Send(hello()); err == nil {
		t.Error("a message of a closed end is sent")
	}
}

// TestEndUnread is an end like any other, though the kernel has another error for a
// peer who has left messages unread.
func TestEndUnread(t *testing.T) {
	noneLeft(t)
	client, server := ends(t)
	if err := server.Send(bound(1)); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	var m localio.SessionMessage
	if _, err := server.Receive(&m); !errors.Is(err, io.EOF) {
		t.Errorf("the end is %v", err)
	}
}

// TestHostile sends what no end ever sends: an error, the end of the session, and
// nothing left.
func TestHostile(t *testing.T) {
	encode := func(m *localio.SessionMessage) []byte {
		b, err := m.AppendXDR(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	files := temps(t, 40)
	refusedFile := opened(2)
	refusedFile.Opened.Files[1].Why = localio.SESSION_IDENTITY
	for name, x := range map[string]struct {
		server bool
		packet []byte
		fds    int
		want   string
	}{
		"empty":                       {true, nil, 0, "EOF"},
		"empty, with descriptors":     {false, nil, 3, "EOF"},
		"one byte":                    {true, []byte{0}, 0, "is none"},
		"unknown type":                {true, []byte{0, 0, 0, 99}, 0, "is none"},
		"not whole":                   {true, encode(hello())[:20], 0, "is none"},
		"bytes behind":                {true, append(encode(hello()), 0, 0, 0, 0), 0, "SESSION_HELLO"},
		"too long":                    {true, append(encode(hello()), make([]byte, localio.SESSION_MAX_PACKET)...), 0, "more than"},
		"too many files":              {true, []byte{0, 0, 0, 4, 0, 0, 1, 0}, 0, "is none"},
		"files beyond memory":         {true, []byte{0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff}, 0, "is none"},
		"BOUND to the server":         {true, encode(bound(1)), 0, "not for this end"},
		"HELLO to the client":         {false, encode(hello()), 0, "not for this end"},
		"descriptors to the server":   {true, encode(hello()), 2, "other descriptors"},
		"descriptors beside BOUND":    {false, encode(bound(1)), 1, "other descriptors"},
		"fewer descriptors":           {false, encode(opened(3)), 2, "other descriptors"},
		"more descriptors":            {false, encode(opened(3)), 40, "other descriptors"},
		"one for what was refused":    {false, encode(refusedFile), 2, "other descriptors"},
		"WELCOME without a page":      {false, encode(&localio.SessionMessage{Type: localio.SESSION_WELCOME}), 0, "other descriptors"},
		"descriptors with bad packet": {false, []byte{1, 2, 3}, 4, "is none"},
	} {
		t.Run(name, func(t *testing.T) {
			noneLeft(t)
			c, peer := raw(t, x.server)
			closes(t, peer)
			sendRaw(t, peer, x.packet, files[:x.fds])
			var m localio.SessionMessage
			got, err := c.Receive(&m)
			if err == nil || !strings.Contains(err.Error(), x.want) || len(got) != 0 {
				t.Errorf("%d descriptors, %v, want an error with %q", len(got), err, x.want)
			}
			if n, err := peer.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("the session goes on: %d, %v", n, err)
			}
		})
	}
}

// TestNoRights has the kernel refuse a client that sends a server descriptors,
// whose last close could take forever.
func TestNoRights(t *testing.T) {
	noneLeft(t)
	dir := runtimeDir(t)
	l := listen(t, dir, testUUID)
	c := connect(t, dir, testUUID)
	raw, err := l.l.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if _, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS); errors.Is(err, unix.ENOPROTOOPT) {
				t.Skip("NOT TESTED: before Linux 6.16 nobody can refuse descriptors")
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Send(hello(), temps(t, 1)...); !errors.Is(err, unix.EPERM) {
		t.Errorf("a descriptor is sent to the server: %v", err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	closes(t, server)
	var m localio.SessionMessage
	if fds, err := server.Receive(&m); !errors.Is(err, io.EOF) {
		t.Errorf("the server receives %v, %d descriptors, %v", m.Type, len(fds), err)
	}
}

// TestShutdown ends a session at both ends, and does not wait for the goroutine
// that receives.
func TestShutdown(t *testing.T) {
	noneLeft(t)
	client, server := ends(t)
	for range 2 {
		if err := server.Shutdown(); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Send(bound(1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Send: %v", err)
	}
	var m localio.SessionMessage
	for _, c := range []*Conn{client, server} {
		if _, err := c.Receive(&m); !errors.Is(err, io.EOF) {
			t.Errorf("Receive: %v", err)
		}
		if err := c.Shutdown(); err != nil { // it is closed
			t.Error(err)
		}
	}
}

// sendRaw sends a packet past package net, which would put a byte into one that is
// empty and has descriptors beside it.
func sendRaw(t *testing.T, c *net.UnixConn, packet []byte, fds []int) {
	t.Helper()
	var m unix.Msghdr
	var v unix.Iovec
	if len(packet) > 0 {
		v.Base = &packet[0]
		v.SetLen(len(packet))
		m.Iov = &v
		m.SetIovlen(1)
	}
	if len(fds) > 0 {
		control := unix.UnixRights(fds...)
		m.Control = &control[0]
		m.SetControllen(len(control))
	}
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var errno unix.Errno
	err = raw.Control(func(fd uintptr) { _, _, errno = unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&m)), 0) })
	if err != nil || errno != 0 {
		t.Fatal(err, errno)
	}
}

// TestNoDescriptors runs out of descriptors while some arrive: those are closed,
// and the message is as good as any.
func TestNoDescriptors(t *testing.T) {
	noneLeft(t)
	client, server := ends(t)
	sent := temps(t, 3)
	if err := server.Send(opened(3), sent...); err != nil {
		t.Fatal(err)
	}
	next, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Close(next); err != nil {
		t.Fatal(err)
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	// All below next are taken, so there is room for one.
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next) + 1, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	var m localio.SessionMessage
	got, receiveErr := client.Receive(&m)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(receiveErr, ErrNoDescriptors) || len(got) != 0 || len(m.Opened.Files) != 3 {
		t.Fatalf("%v, %d files, %v", got, len(m.Opened.Files), receiveErr)
	}
	if err := server.Send(opened(3), sent...); err != nil {
		t.Fatal(err)
	}
	if got, err = client.Receive(&m); err != nil || len(got) != 3 {
		t.Fatalf("afterwards: %v, %v", got, err)
	}
	if err := closeAll(got); err != nil {
		t.Error(err)
	}
}

// TestSendIsBounded sends to a peer who does not read.
func TestSendIsBounded(t *testing.T) {
	noneLeft(t)
	client, server := ends(t)
	server.patience = 20 * time.Millisecond
	files := temps(t, 1)
	for range 100_000 {
		if err := server.Send(opened(1), files...); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the bound is %v", err)
			}
			if again := server.Send(bound(1)); !errors.Is(again, err) {
				t.Errorf("then it is %v", again)
			}
			var m localio.SessionMessage
			if _, err := server.Receive(&m); err == nil {
				t.Error("the connection lives on")
			}
			_ = client // until here
			return
		}
	}
	t.Error("no bound")
}

func TestSendConcurrently(t *testing.T) {
	noneLeft(t)
	client, server := ends(t)
	const senders, each = 8, 100
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for range each {
				if err := server.Send(bound(byte(i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	got := make([]int, senders)
	var m localio.SessionMessage
	for range senders * each {
		if _, err := client.Receive(&m); err != nil {
			t.Fatal(err)
		}
		got[m.Bound.Nonce[0]]++
	}
	wg.Wait()
	if slices.ContainsFunc(got, func(n int) bool { return n != each }) {
		t.Errorf("messages of each sender: %v, want %d", got, each)
	}
}

// TestTooLongToSend is an error of the message, not of the connection.
func TestTooLongToSend(t *testing.T) {
	noneLeft(t)
	client, server := ends(t)
	if err := server.Send(opened(localio.SESSION_MAX_OPENS + 1)); err == nil {
		t.Error("too many files were sent")
	}
	if err := server.Send(bound(3)); err != nil {
		t.Fatal(err)
	}
	var m localio.SessionMessage
	if _, err := client.Receive(&m); err != nil || m.Bound.Nonce[0] != 3 {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestLargestMessages fit the bound of a message.
func TestLargestMessages(t *testing.T) {
	m := localio.SessionMessage{Type: localio.SESSION_OPEN}
	for range localio.SESSION_MAX_OPENS {
		m.Open.Files = append(m.Open.Files, localio.SessionOpenFile{
			Handle: make([]byte, localio.SESSION_MAX_HANDLE), Groups: make([]uint32, localio.SESSION_MAX_GROUPS),
		})
	}
	for _, m := range []*localio.SessionMessage{&m, opened(localio.SESSION_MAX_OPENS)} {
		if b, err := m.AppendXDR(nil); err != nil || len(b) > localio.SESSION_MAX_PACKET {
			t.Errorf("%v takes %d bytes, %v", m.Type, len(b), err)
		}
	}
}

func FuzzReceive(f *testing.F) {
	for _, m := range []*localio.SessionMessage{hello(), bound(1), opened(2), {Type: localio.SESSION_OPEN}, {Type: localio.SESSION_CLOSE}} {
		b, err := m.AppendXDR(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint8(0), true)
		f.Add(b, uint8(2), false)
	}
	f.Fuzz(func(t *testing.T, packet []byte, n uint8, server bool) {
		if len(packet) > localio.SESSION_MAX_PACKET+1 {
			return
		}
		before := len(fds(t))
		c, peer := raw(t, server)
		var control []byte
		if n %= 5; n > 0 {
			control = unix.UnixRights(slices.Repeat([]int{0}, int(n))...)
		}
		if _, _, err := peer.WriteMsgUnix(packet, control, nil); err != nil {
			t.Fatal(err)
		}
		var m localio.SessionMessage
		got, err := c.Receive(&m)
		if err == nil {
			if want := beside(&m); len(got) != want || fromClient(m.Type) != server {
				t.Errorf("%v with %d descriptors at the server: %t", m.Type, len(got), server)
			}
			b, err := m.AppendXDR(nil)
			if err != nil || len(b) != len(packet) {
				t.Errorf("%x was taken, and is %x, %v", packet, b, err)
			}
		} else if len(got) != 0 {
			t.Errorf("descriptors beside %v", err)
		}
		if err := errors.Join(closeAll(got), c.Close(), peer.Close()); err != nil {
			t.Error(err)
		}
		if after := len(fds(t)); after != before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
	})
}
