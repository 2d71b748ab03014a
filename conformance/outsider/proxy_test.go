//go:build linux

package outsider

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// proxy is a network that is at fault: a relay of bytes on a port of its own. It
// knows nothing of what passes.
type proxy struct {
	b        *box
	listener net.Listener
	upstream string

	delay time.Duration // each way
	// towards and back begin to change what passes by a connection, to the server
	// and to the client. What they return may be longer or shorter, or nothing.
	towards, back func() change
	// cut ends a connection after so many bytes have come back by it; 0: never.
	cut func() int64

	frozen atomic.Bool // nothing passes any more, and nobody is told
	sent   atomic.Int64
	came   atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	over  bool
	work  sync.WaitGroup
}

// change is what a network makes of the next bytes of one direction.
type change func([]byte) []byte

// proxy begins to relay to a server. set, if not nil, says what is at fault.
func (b *box) proxy(s *server, set func(*proxy)) *proxy {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	b.no(err)
	p := &proxy{b: b, listener: l, upstream: fmt.Sprintf("127.0.0.1:%d", s.port), conns: make(map[net.Conn]struct{})}
	if set != nil {
		set(p)
	}
	p.work.Go(p.accept)
	b.Cleanup(p.close)
	return p
}

// url is s's, by the proxy.
func (p *proxy) url() string { return fmt.Sprintf("nfs://%s/", p.listener.Addr()) }

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.relay(c) })
	}
}

// track keeps c to be closed in the end; false: that was already.
func (p *proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		_ = c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}

func (p *proxy) relay(down net.Conn) {
	if !p.track(down) {
		return
	}
	defer p.drop(down)
	up, err := net.Dial("tcp", p.upstream)
	if err != nil || !p.track(up) {
		return
	}
	defer p.drop(up)
	limit := int64(1) << 62
	if p.cut != nil {
		if n := p.cut(); n > 0 {
			limit = n
		}
	}
	var both sync.WaitGroup
	both.Go(func() { p.pump(down, up, p.towards, &p.sent, 1<<62); _ = up.Close() })
	both.Go(func() { p.pump(up, down, p.back, &p.came, limit); _ = down.Close() })
	both.Wait()
}

// parcel is bytes and when they are due.
type parcel struct {
	data []byte
	due  time.Time
}

// parcelsUnderway bounds what is on its way, in parcels of up to 64 KiB each.
const parcelsUnderway = 4096

// pump moves bytes from one end to the other, late and changed.
func (p *proxy) pump(from, to net.Conn, begin func() change, count *atomic.Int64, limit int64) {
	alter := func(data []byte) []byte { return data }
	if begin != nil {
		alter = begin()
	}
	queue := make(chan parcel, parcelsUnderway)
	var writer sync.WaitGroup
	writer.Go(func() {
		for item := range queue {
			time.Sleep(time.Until(item.due))
			data := item.data[:min(int64(len(item.data)), limit)]
			limit -= int64(len(data))
			if p.frozen.Load() {
				continue
			}
			if _, err := to.Write(data); err != nil || limit == 0 {
				_ = from.Close()
			}
		}
	})
	for {
		buf := make([]byte, 64<<10)
		n, err := from.Read(buf)
		if n > 0 {
			count.Add(int64(n))
			queue <- parcel{alter(buf[:n]), time.Now().Add(p.delay)}
		}
		if err != nil {
			break
		}
	}
	close(queue)
	writer.Wait()
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.over = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.work.Wait()
}

// replacing puts one text in place of another of the same length.
func replacing(old, with string) func() change {
	if len(old) != len(with) {
		panic("texts of different lengths")
	}
	return func() change {
		return func(p []byte) []byte { return bytes.ReplaceAll(p, []byte(old), []byte(with)) }
	}
}

// smallLetters makes small letters of the large ones in all names that calls of NFS
// carry: to the client it is a server whose disk folds case.
func smallLetters() change { return smallLettersIn(nil)() }

// smallLettersIn does so in the directory of one handle alone, or with nil in all of them.
func smallLettersIn(dir []byte) func() change {
	return func() change { return foldCalls(dir) }
}

func foldCalls(dir []byte) change {
	var pending []byte
	return func(p []byte) (whole []byte) {
		pending = append(pending, p...)
		for len(pending) >= 4 {
			n := 4 + int(binary.BigEndian.Uint32(pending)&(1<<31-1))
			if len(pending) < n {
				break
			}
			call := reader(pending[4:n])
			foldNames(&call, dir)
			whole = append(whole, pending[:n]...)
			pending = pending[n:]
		}
		return whole
	}
}

// foldNames changes the names in a call, where they stand, if they are names in dir.
func foldNames(call *reader, dir []byte) {
	if _, kind, _ := call.u32(), call.u32(), call.u32(); kind != 0 {
		return
	}
	program, _, procedure := call.u32(), call.u32(), call.u32()
	if program != progNFS {
		return
	}
	for range 2 { // credential and verifier
		_, _ = call.u32(), call.opaque()
	}
	var in []byte
	for _, isName := range map[uint32][]bool{
		nfsLOOKUP: {false, true}, nfsCREATE: {false, true}, nfsREMOVE: {false, true},
		9: {false, true}, 10: {false, true}, 11: {false, true}, 13: {false, true}, // MKDIR, SYMLINK, MKNOD, RMDIR
		14: {false, true, false, true}, 15: {false, false, true}, // RENAME, LINK
	}[procedure] {
		p := call.opaque()
		if !isName {
			in = p
		} else if dir == nil || bytes.Equal(in, dir) {
			copy(p, bytes.ToLower(p)) // of ASCII names, which keep their length
		}
	}
}

// impostor is a server of something else: it answers whatever it is sent with text,
// or with nothing, and then hangs up or does not.
func (b *box) impostor(text string, hangUp bool) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	b.no(err)
	var work sync.WaitGroup
	stop := make(chan struct{})
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer func() { _ = c.Close() }()
				if strings.HasPrefix(text, "SSH") { // speaks first
					_, _ = io.WriteString(c, text)
				}
				_, _ = c.Read(make([]byte, 4096))
				_, _ = io.WriteString(c, text)
				if !hangUp {
					<-stop
					return
				}
				// To close with unread bytes would take the text back from the client.
				_ = c.(*net.TCPConn).CloseWrite()
				_ = c.SetReadDeadline(time.Now().Add(patience / 2))
				_, _ = io.Copy(io.Discard, c) // until the client closes
			})
		}
	})
	b.Cleanup(func() { _ = l.Close(); close(stop); work.Wait() })
	return l.Addr().String()
}
