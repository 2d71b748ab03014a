package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const testAddr = "10.0.0.1:2049"

// connect dials testAddr and accepts, and closes everything in the cleanup.
func connect(t *testing.T, n *Network) (client, server *Conn) {
	t.Helper()
	l, err := n.Listen(testAddr)
	if err != nil {
		t.Fatal(err)
	}
	client, err = n.Dial(t.Context(), testAddr)
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server = accepted.(*Conn)
	if server.Peer() != client {
		t.Fatal("the accepted end is not the peer of the dialled one")
	}
	t.Cleanup(func() {
		client.Reset()
		if err := l.Close(); err != nil {
			t.Errorf("closing the listener: %v", err)
		}
	})
	return client, server
}

func send(t *testing.T, c net.Conn, p []byte) {
	t.Helper()
	if n, err := c.Write(p); err != nil || n != len(p) {
		t.Fatalf("Write of %d bytes: %d, %v", len(p), n, err)
	}
}

func wantRead(t *testing.T, c net.Conn, want string) {
	t.Helper()
	p := make([]byte, len(want))
	if _, err := io.ReadFull(c, p); err != nil || string(p) != want {
		t.Fatalf("read %q, %v, want %q", p, err, want)
	}
}

func wantErr(t *testing.T, c net.Conn, want error) {
	t.Helper()
	if n, err := c.Read(make([]byte, 10)); n != 0 || !errors.Is(err, want) {
		t.Fatalf("Read: %d, %v, want %v", n, err, want)
	}
}

func TestBothWays(t *testing.T) {
	client, server := connect(t, NewNetwork(1))
	send(t, client, []byte("ping"))
	wantRead(t, server, "ping")
	send(t, server, []byte("pong"))
	if err := server.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	wantRead(t, client, "pong")
	wantErr(t, client, io.EOF)
	send(t, client, []byte("half open"))
	wantRead(t, server, "half open")
	if got, want := client.Stats(), (Stats{Writes: 2, BytesWritten: 13, Reads: 1, BytesRead: 4}); got != want {
		t.Errorf("stats are %+v, want %+v", got, want)
	}
	if client.LocalAddr().String() != server.RemoteAddr().String() || client.RemoteAddr().String() != testAddr {
		t.Errorf("addresses %v -> %v, seen from the server %v", client.LocalAddr(), client.RemoteAddr(), server.RemoteAddr())
	}
}

// TestBoundedBuffer fills a connection that nobody reads.
func TestBoundedBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t, NewNetwork(1))
		sent := bytes.Repeat([]byte("0123456789abcdef"), StreamBuffer/16+1000)
		done := make(chan error, 1)
		go func() {
			_, err := client.Write(sent)
			done <- err
		}()
		synctest.Wait()
		if n := len(done); n != 0 {
			t.Fatal("a Write beyond the buffer did not block")
		}
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(server, got); err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("read back: %v, equal %v", err, bytes.Equal(got, sent))
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if s := client.Stats(); s.Writes != 1 {
			t.Errorf("one Write counted as %d", s.Writes)
		}
	})
}

func TestClosing(t *testing.T) {
	tests := []struct {
		name string
		do   func(t *testing.T, client, server *Conn)
	}{
		{"what was sent before Close arrives", func(t *testing.T, client, server *Conn) {
			send(t, server, []byte("last words"))
			if err := server.Close(); err != nil {
				t.Fatal(err)
			}
			wantRead(t, client, "last words")
			wantErr(t, client, io.EOF)
			if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
				t.Errorf("writing to a closed end: %v", err)
			}
		}},
		{"Close with unread input resets the peer", func(t *testing.T, client, server *Conn) {
			send(t, client, []byte("unread"))
			send(t, server, []byte("reply"))
			if err := server.Close(); err != nil {
				t.Fatal(err)
			}
			wantErr(t, client, syscall.ECONNRESET)
		}},
		{"a closed end", func(t *testing.T, client, _ *Conn) {
			if err := client.Close(); err != nil {
				t.Fatal(err)
			}
			wantErr(t, client, net.ErrClosed)
			if _, err := client.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Write: %v", err)
			}
			if err := client.Close(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("second Close: %v", err)
			}
			if err := client.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
				t.Errorf("SetDeadline: %v", err)
			}
		}},
		{"Reset", func(t *testing.T, client, server *Conn) {
			send(t, client, []byte("lost"))
			client.Reset()
			wantErr(t, server, syscall.ECONNRESET)
			wantErr(t, client, syscall.ECONNRESET)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, server := connect(t, NewNetwork(1))
			tt.do(t, client, server)
		})
	}
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t, NewNetwork(1))
		start := time.Now()
		if err := client.SetDeadline(start.Add(3 * time.Second)); err != nil {
			t.Fatal(err)
		}
		_, err := client.Read(make([]byte, 1))
		var ne net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &ne) || !ne.Timeout() {
			t.Fatalf("Read: %v", err)
		}
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("the deadline of 3 s came after %v", d)
		}
		if _, err := client.Write(make([]byte, StreamBuffer+1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write: %v", err)
		}
		if err := client.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		send(t, server, []byte("again"))
		wantRead(t, client, "again")
	})
}

func TestLatencyAndBandwidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t, NewNetwork(1))
		client.SetFaults(Faults{Latency: 10 * time.Millisecond, Bandwidth: 1000})
		start := time.Now()
		send(t, client, make([]byte, 500))
		send(t, client, make([]byte, 500))
		if d := time.Since(start); d != 0 {
			t.Errorf("Write waited %v for the line", d)
		}
		got := make([]byte, 1000)
		if _, err := io.ReadFull(server, got[:500]); err != nil || time.Since(start) != 510*time.Millisecond {
			t.Errorf("first half after %v, %v", time.Since(start), err)
		}
		if _, err := io.ReadFull(server, got[500:]); err != nil || time.Since(start) != 1010*time.Millisecond {
			t.Errorf("second half after %v, %v", time.Since(start), err)
		}
	})
}

// chopped returns the lengths of the reads that a seed leads to.
func chopped(t *testing.T, seed uint64) (lengths []int) {
	n := NewNetwork(seed)
	n.SetFaults(Faults{Chop: 7}, Faults{})
	client, server := connect(t, n)
	sent := []byte("the quick brown fox jumps over the lazy dog")
	send(t, client, sent)
	var got []byte
	for len(got) < len(sent) {
		p := make([]byte, len(sent))
		k, err := server.Read(p)
		if err != nil || k < 1 || k > 7 {
			t.Fatalf("Read: %d, %v, want 1 to 7 bytes", k, err)
		}
		got = append(got, p[:k]...)
		lengths = append(lengths, k)
	}
	if !bytes.Equal(got, sent) {
		t.Fatalf("read %q", got)
	}
	return lengths
}

func TestChopIsReproducible(t *testing.T) {
	a, b, other := chopped(t, 1), chopped(t, 1), chopped(t, 2)
	if !slices.Equal(a, b) {
		t.Errorf("seed 1 chopped %v and %v", a, b)
	}
	if slices.Equal(a, other) {
		t.Errorf("seeds 1 and 2 both chopped %v", a)
	}
}

func TestCutAfter(t *testing.T) {
	client, server := connect(t, NewNetwork(1))
	send(t, server, []byte("before"))
	client.SetFaults(Faults{CutAfter: 5})
	send(t, client, []byte("abc"))
	if n, err := client.Write([]byte("defg")); n != 2 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("Write over the cut: %d, %v", n, err)
	}
	wantRead(t, server, "abcde")
	wantErr(t, server, syscall.ECONNRESET)
	wantRead(t, client, "before")
	wantErr(t, client, syscall.ECONNRESET)
	if _, err := server.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("Write of the other end: %v", err)
	}
}

func TestStallAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t, NewNetwork(1))
		client.SetFaults(Faults{StallAfter: 4})
		send(t, client, []byte("abcdef"))
		if err := client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		wantRead(t, server, "abcd")
		if err := server.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		wantErr(t, server, os.ErrDeadlineExceeded)
		if err := server.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		client.SetFaults(Faults{})
		wantRead(t, server, "ef")
		wantErr(t, server, io.EOF)
	})
}

func TestPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork(1)
		client, server := connect(t, n)
		if err := n.Partition(testAddr); err != nil {
			t.Fatal(err)
		}
		send(t, client, []byte("held"))
		if err := client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Dial(ctx, testAddr); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Dial into a partition: %v", err)
		}
		if err := server.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		wantErr(t, server, os.ErrDeadlineExceeded)
		if err := server.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if err := n.Heal(testAddr); err != nil {
			t.Fatal(err)
		}
		wantRead(t, server, "held")
		wantErr(t, server, io.EOF)
	})
}

func TestDialErrors(t *testing.T) {
	n := NewNetwork(1)
	if _, err := n.Dial(t.Context(), testAddr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	client, _ := connect(t, n)
	if _, err := n.Listen(testAddr); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second listener: %v", err)
	}
	if err := n.Refuse(testAddr, true); err != nil {
		t.Fatal(err)
	}
	if _, err := n.DialContext(t.Context(), "tcp", testAddr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("refused: %v", err)
	}
	conns, err := n.Conns(testAddr)
	if err != nil || len(conns) != 1 || conns[0] != client {
		t.Errorf("connections: %v, %v", conns, err)
	}
	for _, addr := range []string{"", "host:1", "10.0.0.1", "10.0.0.1:x"} {
		if _, err := n.Dial(t.Context(), addr); err == nil {
			t.Errorf("dialled %q", addr)
		}
	}
}

// TestFullBacklog dials until nothing more fits, and closes the listener.
func TestFullBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork(1)
		l, err := n.Listen(":0")
		if err != nil {
			t.Fatal(err)
		}
		var conns []*Conn
		for range listenBacklog {
			c, err := n.DialFrom(t.Context(), "10.0.0.9:0", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Dial(ctx, l.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Dial behind a full backlog: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		for _, c := range conns {
			wantErr(t, c, syscall.ECONNRESET)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept after Close: %v", err)
		}
	})
}

func TestRand(t *testing.T) {
	var a, b, other [32]byte
	for seed, p := range map[*Rand][]byte{NewRand(7): a[:], NewRand(7): b[:], NewRand(8): other[:]} {
		if n, err := seed.Read(p); n != len(p) || err != nil {
			t.Fatalf("Read: %d, %v", n, err)
		}
	}
	if a != b || a == other {
		t.Errorf("seed 7 gave %x and %x, seed 8 %x", a, b, other)
	}
}
