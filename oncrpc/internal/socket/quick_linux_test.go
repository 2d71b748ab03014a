//go:build linux && !386 && !s390x && !race

package socket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// quickPair is a quick socket, what it stands for, and the other end.
func quickPair(t *testing.T) (io.ReadWriter, *net.TCPConn, *net.TCPConn) {
	t.Helper()
	nc, other := pair(t)
	s := Of(nc)
	if _, ok := s.ReadWriter.(*quickSocket); !ok {
		t.Fatalf("a %T", s.ReadWriter)
	}
	return s, nc, other
}

// begin runs f, and await waits for its end.
func begin(f func() error) chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

func await(t *testing.T, done chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
		return nil
	}
}

// TestQuickSocketMoves: all bytes arrive, in both directions, however many more
// there are than the kernel and one system call take.
func TestQuickSocketMoves(t *testing.T) {
	q, _, other := quickPair(t)
	sent := make([]byte, 8<<20+1)
	for i := range sent {
		sent[i] = byte(i * 7 >> 3)
	}
	echoed := begin(func() error {
		_, err := io.CopyN(other, other, int64(len(sent)))
		return err
	})
	written := begin(func() error {
		n, err := q.Write(sent)
		if n != len(sent) {
			t.Errorf("%d bytes written", n)
		}
		return err
	})
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(q, got); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(await(t, echoed), await(t, written)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, sent) {
		t.Error("other bytes have come back")
	}
	if n, err := q.Read(nil); n != 0 || err != nil {
		t.Errorf("reading nothing: %d, %v", n, err)
	}
}

// TestQuickSocketEnds: a read ends with the stream, with its deadline, when the
// socket is closed and when the peer resets the connection; a write as well.
func TestQuickSocketEnds(t *testing.T) {
	var buf [10]byte
	t.Run("end", func(t *testing.T) {
		q, _, other := quickPair(t)
		if err := other.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if n, err := q.Read(buf[:]); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%d, %v", n, err)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		q, nc, _ := quickPair(t)
		read := begin(func() error { _, err := q.Read(buf[:]); return err })
		write := begin(func() error { _, err := q.Write(make([]byte, 64<<20)); return err })
		if err := nc.SetDeadline(time.Now()); err != nil {
			t.Fatal(err)
		}
		for _, done := range []chan error{read, write} {
			if err := await(t, done); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
		}
	})
	t.Run("close", func(t *testing.T) {
		q, nc, _ := quickPair(t)
		done := begin(func() error { _, err := q.Read(buf[:]); return err })
		if err := nc.Close(); err != nil {
			t.Fatal(err)
		}
		if err := await(t, done); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	t.Run("reset", func(t *testing.T) {
		q, _, other := quickPair(t)
		if err := errors.Join(other.SetLinger(0), other.Close()); err != nil {
			t.Fatal(err)
		}
		_, err := q.Read(buf[:])
		op, ok := errors.AsType[*net.OpError](err)
		if !ok || op.Op != "read" || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%v", err)
		}
		if _, err := q.Write(buf[:]); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("%v", err)
		}
	})
}

// TestQuickSocketNeverBlocks: it blocks no thread, not even on a descriptor that was made
// blocking, as File and Fd of package net and os do.
func TestQuickSocketNeverBlocks(t *testing.T) {
	q, nc, _ := quickPair(t)
	raw, err := nc.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { err = syscall.SetNonblock(int(fd), false) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	done := begin(func() error { _, err := q.Read(make([]byte, 1)); return err })
	if err := nc.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := await(t, done); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}
