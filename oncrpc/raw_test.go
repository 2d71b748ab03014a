package oncrpc

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/xdr"
)

// patience is how long a test waits for what must come. Only a test that fails waits so
// long.
const patience = 20 * time.Second

// record is one record of these fragments.
func record(fragments ...[]byte) []byte {
	var b []byte
	for i, f := range fragments {
		word := uint32(len(f))
		if i == len(fragments)-1 {
			word |= lastFragment
		}
		b = append(binary.BigEndian.AppendUint32(b, word), f...)
	}
	return b
}

// pieces cuts p into fragments of n bytes.
func pieces(p []byte, n int) (f [][]byte) {
	for len(p) > n {
		f, p = append(f, p[:n]), p[n:]
	}
	return append(f, p)
}

// strewn puts n empty fragments before each of f.
func strewn(f [][]byte, n int) (all [][]byte) {
	for _, p := range f {
		all = append(append(all, make([][]byte, n)...), p)
	}
	return all
}

// words is their encoding.
func words(v ...uint32) (b []byte) {
	for _, w := range v {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// message is a call of the test program, not yet a record.
func message(xid, number uint32, args []byte) []byte {
	p := &xdr.Proc{Program: testProgram, Version: testVersion, Number: number}
	return append(appendCall(nil, xid, p, &Auth{}), args...)
}

func str(s string) []byte { return xdr.AppendOpaque(nil, []byte(s)) }

// rawConn is a connection on which a test writes and reads the messages itself.
type rawConn struct {
	t  testing.TB
	nc net.Conn
	r  recordReader
}

func newRaw(t testing.TB, nc net.Conn) *rawConn {
	t.Cleanup(func() { _ = nc.Close() }) // most are closed by then
	// A pipe whose other end is closed already has no deadlines.
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Fatal(err)
	}
	return &rawConn{t: t, nc: nc, r: recordReader{src: nc, buf: make([]byte, 4096), ahead: 4096, max: 1 << 30}}
}

func dialRaw(t testing.TB, addr string) *rawConn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return newRaw(t, nc)
}

func (r *rawConn) send(b []byte) {
	r.t.Helper()
	if _, err := r.nc.Write(b); err != nil {
		r.t.Fatalf("sending: %v", err)
	}
}

// receive reads one record whole.
func (r *rawConn) receive() ([]byte, error) {
	if err := r.r.begin(); err != nil {
		return nil, err
	}
	var all []byte
	for {
		p := make([]byte, 1000)
		n, err := r.r.Read(p)
		all = append(all, p[:n]...)
		if errors.Is(err, errRecordEnd) {
			r.r.end()
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// reply reads one reply: its number, its results, and what it says.
func (r *rawConn) reply() (xid uint32, results []byte, err error) {
	rec, err := r.receive()
	if err != nil {
		return 0, nil, err
	}
	d := xdr.NewDecoder(rec)
	xid = d.Uint32()
	_, err = decodeReply(&d)
	return xid, d.Rest(), err
}

// mustReply is reply of a call that succeeds, with number xid.
func (r *rawConn) mustReply(xid uint32) []byte {
	r.t.Helper()
	got, results, err := r.reply()
	if err != nil || got != xid {
		r.t.Fatalf("reply to %#x: number %#x, error %v", xid, got, err)
	}
	return results
}

// mustClose checks that the peer closes without saying more.
func (r *rawConn) mustClose() {
	r.t.Helper()
	if _, _, err := r.reply(); !gone(err) {
		r.t.Fatalf("connection is not closed: %v", err)
	}
}

// gone reports whether err says that the peer has closed.
func gone(err error) bool {
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !isAnswer(err)
}

// pipeListener hands out the ends of net.Pipe.
type pipeListener struct {
	conns  chan net.Conn
	done   chan struct{}
	closed sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.closed.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

func (l *pipeListener) dial() (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.done:
		return nil, io.ErrClosedPipe
	}
}

func (l *pipeListener) dialContext(context.Context) (net.Conn, error) { return l.dial() }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// startPipeServer serves s on pipes. stop closes it and checks that nothing is
// left; in a synctest bubble the test calls it itself.
func startPipeServer(t testing.TB, s *service, o ServerOptions) (srv *Server, l *pipeListener, stop func()) {
	t.Helper()
	srv, err := NewServer([]Service{s.service()}, o)
	if err != nil {
		t.Fatal(err)
	}
	l = newPipeListener()
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	return srv, l, func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, ErrServerClosed) {
			t.Errorf("Serve returned %v", err)
		}
		if st := srv.Stats(); st.Buffers != 0 || st.RequestBytes != 0 || st.Conns != 0 || srv.underWay.Load() != 0 {
			t.Errorf("server left things behind: %+v", st)
		}
		if n := s.pool.Outstanding(); n != 0 {
			t.Errorf("%d bulk buffers lost", n)
		}
	}
}
