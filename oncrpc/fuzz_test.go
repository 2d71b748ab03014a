package oncrpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
)

// dribble reads from p in steps whose lengths depend on p.
type dribble struct {
	p    []byte
	step uint8
}

func (d *dribble) Read(p []byte) (int, error) {
	if len(d.p) == 0 {
		return 0, io.EOF
	}
	n := min(len(p), len(d.p), 1+int(d.step%7))
	d.step = d.step*5 + d.p[0]
	n = copy(p, d.p[:n])
	d.p = d.p[n:]
	return n, nil
}

// FuzzRecord feeds streams to the record reader. It always ends, returns no byte that was not
// sent, and takes no memory for what did not come.
func FuzzRecord(f *testing.F) {
	f.Add(record([]byte("hello"), []byte(", "), []byte("world")))
	f.Add(append(record(), record([]byte("x"))...))
	f.Add(words(0, 0, 0, lastFragment|3))
	f.Add(words(0x7fffffff, 1, 2, 3))
	f.Add(record(make([]byte, 9000)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		const limit = 1 << 20
		var pool bufpool.Pool
		r := recordReader{src: &dribble{p: stream}, buf: make([]byte, 64), ahead: 64, max: limit}
		want := wholeRecords(stream, limit)
		for {
			err := r.begin()
			if err == nil {
				b := pool.Get(1)
				b.B = b.B[:0]
				b, err = r.rest(&pool, b, nil)
				if err == nil {
					if len(want) == 0 || !bytes.Equal(b.B, want[0]) {
						t.Fatalf("record %x, want %x", b.B, want)
					}
					want = want[1:]
				}
				if len(b.B) > limit || cap(b.B) > max(growFactor*2*len(stream), 2*smallRecord) {
					t.Fatalf("%d bytes in a buffer of %d, of a stream of %d", len(b.B), cap(b.B), len(stream))
				}
				b.Release()
			} else if errors.Is(err, errRecordEnd) {
				r.end()
				want = want[1:]
				continue
			}
			if err != nil {
				break
			}
		}
		if len(want) != 0 || pool.Outstanding() != 0 {
			t.Fatalf("%d records missed, %d buffers lost", len(want), pool.Outstanding())
		}
	})
}

// wholeRecords is the record reader in its simplest form.
func wholeRecords(stream []byte, limit int) (all [][]byte) {
	rec := []byte{}
	for empty := 0; len(stream) >= markBytes; {
		word := binary.BigEndian.Uint32(stream)
		n := int(word &^ lastFragment)
		if word == 0 {
			empty++
		}
		stream = stream[markBytes:]
		if n > len(stream) || len(rec)+n > limit || empty > maxEmptyFragments+len(rec)/bytesPerEmpty {
			break
		}
		rec, stream = append(rec, stream[:n]...), stream[n:]
		if word&lastFragment != 0 {
			all = append(all, rec)
			rec, empty = []byte{}, 0
		}
	}
	return all
}

// FuzzServer feeds streams to a server. It answers or closes, and nothing is left.
func FuzzServer(f *testing.F) {
	for _, c := range hostileCalls {
		f.Add(record(c.msg))
		f.Add(record(pieces(c.msg, 3)...))
	}
	f.Add(append(record(message(1, procRead, words(5, 9000))), record(message(2, procEcho, str("x")))...))
	f.Add(record(message(3, procWrite, append(words(0, 8000), make([]byte, 8004)...))))
	s := newService()
	srv, err := NewServer([]Service{s.service()}, ServerOptions{MaxRecord: 64 << 10, MaxCallsPerConn: 3})
	if err != nil {
		f.Fatal(err)
	}
	l := newPipeListener()
	go func() { _ = srv.Serve(l) }() // ends with Close
	f.Cleanup(func() {
		if err := srv.Close(); err != nil {
			f.Error(err)
		}
	})
	close(s.gate)
	go func() {
		for range s.seen { // WAIT must not fill it
		}
	}()
	f.Fuzz(func(t *testing.T, stream []byte) {
		nc, err := l.dial()
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		answers := begin(func() error {
			_, err := io.Copy(io.Discard, nc)
			return err
		})
		_, _ = nc.Write(stream) // the server may close
		_ = nc.Close()          // always answers nil
		if err := <-answers; err != nil && !gone(err) {
			t.Fatal(err)
		}
		waitFor(t, "the connection's end", func() bool { return srv.Stats().Conns == 0 })
		waitFor(t, "all buffers", func() bool { return srv.Stats().Buffers == 0 && s.pool.Outstanding() == 0 })
	})
}

// FuzzReply feeds streams to a client that waits for a plain result and for one with bulk. The
// calls return, and no buffer is lost.
func FuzzReply(f *testing.F) {
	for _, h := range hostileReplies {
		if len(h.msg) < 1000 {
			f.Add(record(h.msg), true)
			f.Add(record(pieces(h.msg, 5)...), false)
		}
	}
	f.Add(record(accepted(7, str("fine"))), false)
	f.Add(record(accepted(7, join(words(0, 0, 9), make([]byte, 12), words(1)))), true)
	f.Fuzz(func(t *testing.T, stream []byte, bulk bool) {
		near, far := net.Pipe()
		dialed := false
		c := NewClient(ClientOptions{FirstXID: 7, Retries: -1, DialTries: 1, MaxReply: 64 << 10,
			Dial: func(context.Context) (net.Conn, error) {
				if dialed {
					return nil, errTest
				}
				dialed = true
				return near, nil
			}})
		go func() {
			_, _ = io.CopyN(io.Discard, far, 4) // the call is on its way
			go func() { _, _ = io.Copy(io.Discard, far) }()
			_, _ = far.Write(stream) // the client may close
			_ = far.Close()          // always answers nil
		}()
		buf := make([]byte, 24)
		var r Reply
		var err error
		if bulk {
			res := readRes{Data: buf[8:16:16]}
			r, err = c.Call(t.Context(), readProc, Auth{}, &readArgs{}, &res)
			if err == nil && res.Status == 0 && len(res.Data) > 8 {
				t.Errorf("%d bytes of data", len(res.Data))
			}
		} else {
			r, err = c.Call(t.Context(), echoProc, Auth{}, &opaque{}, &opaque{})
		}
		if err != nil && (r.rec != nil || r.tail != nil) {
			t.Error("a reply beside an error")
		}
		r.Release()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if st := c.Stats(); st.Buffers != 0 || st.InFlight != 0 || st.Conns != 0 {
			t.Errorf("client left things behind: %+v", st)
		}
		if !bytes.Equal(buf[:8], make([]byte, 8)) || !bytes.Equal(buf[16:], make([]byte, 8)) {
			t.Errorf("bytes around the buffer were touched: %x", buf)
		}
	})
}

// FuzzAuthSys parses credentials. One that parses encodes to the same bytes, but for those in
// the padding.
func FuzzAuthSys(f *testing.F) {
	for _, a := range []AuthSys{{}, {Stamp: 1, Machine: "host", UID: 2, GID: 3, GIDs: []uint32{4, 5}}, {GIDs: make([]uint32, MaxGIDs)}} {
		auth, err := a.Auth()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(auth.Body)
	}
	f.Add(words(1, 0xffffffff))
	f.Add(words(1, 0, 2, 3, 17))
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := ParseAuthSys(body)
		if err != nil {
			return
		}
		auth, err := a.Auth()
		if err != nil || len(auth.Body) != len(body) || auth.Flavor != AuthSysFlavor {
			t.Fatalf("%+v encodes to %x: %v", a, auth.Body, err)
		}
		b, err := ParseAuthSys(auth.Body)
		if err != nil || b.Machine != a.Machine || b.UID != a.UID || b.GID != a.GID || len(b.GIDs) != len(a.GIDs) {
			t.Fatalf("%+v and %+v: %v", a, b, err)
		}
	})
}
