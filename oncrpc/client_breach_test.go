package oncrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/xdr"
)

// serveEach has serve play the server on each connection of the bubble, one after the other,
// and closes it when serve returns. served ends that, and returns their number.
func (b *bubble) serveEach(serve func(nc net.Conn)) (served func() int) {
	stop := make(chan struct{})
	n := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case nc := <-b.conns:
				n++
				serve(nc)
				_ = nc.Close() // the client may have closed it
			}
		}
	})
	return func() int {
		close(stop)
		wg.Wait()
		return n
	}
}

// hear reads a call of one fragment; ok is false if the client has closed.
func hear(nc net.Conn) (xid uint32, args []byte, ok bool) {
	mark := make([]byte, markBytes)
	if _, err := io.ReadFull(nc, mark); err != nil {
		return 0, nil, false
	}
	d := xdr.NewDecoder(mark)
	rec := make([]byte, d.Uint32()&^lastFragment)
	if _, err := io.ReadFull(nc, rec); err != nil {
		return 0, nil, false
	}
	d = xdr.NewDecoder(rec)
	return d.Uint32(), rec[40:], true
}

// cuts are the places where a server ends a connection.
var cuts = map[string]func(nc net.Conn){
	"before the call":   func(net.Conn) {},
	"in the call":       func(nc net.Conn) { _, _ = io.ReadFull(nc, make([]byte, 10)) },
	"with it in hand":   func(nc net.Conn) { hear(nc) },
	"in the reply":      answerWith(func(xid uint32, args []byte) []byte { return record(accepted(xid, args))[:21] }),
	"after another's":   answerWith(func(xid uint32, args []byte) []byte { return record(accepted(xid-1, args)) }),
	"before its length": answerWith(func(uint32, []byte) []byte { return words(0, 0)[:6] }),
}

// answerWith takes a call and sends what reply makes of it.
func answerWith(reply func(xid uint32, args []byte) []byte) func(net.Conn) {
	return func(nc net.Conn) {
		if xid, args, ok := hear(nc); ok {
			_, _ = nc.Write(reply(xid, args)) // the client may have closed
		}
	}
}

var echoing = answerWith(func(xid uint32, args []byte) []byte { return record(accepted(xid, args)) })

// TestOnlyTimeEnds has a server that cuts every connection. A soft call goes on until its
// patience has passed. It succeeds if the server begins to answer before.
func TestOnlyTimeEnds(t *testing.T) {
	for name, cut := range cuts {
		for _, sane := range []time.Duration{25 * time.Second, time.Hour} {
			t.Run(fmt.Sprintf("%s/%v", name, sane), func(t *testing.T) {
				inBubble(t, ClientOptions{Timeout: 10 * time.Second, Resend: true}, 0, func(b *bubble) {
					b.met().hangUp()
					time.Sleep(time.Millisecond)
					b.start = time.Now()
					served := b.serveEach(func(nc net.Conn) {
						if time.Since(b.start) < sane {
							cut(nc)
						} else {
							echoing(nc)
						}
					})
					err := callEcho(b.t.Context(), b.c, procOnce, "x")
					n := served()
					switch {
					case sane < time.Hour && err != nil:
						t.Errorf("after %d connections: %v", n, err)
					case sane == time.Hour:
						b.passed(30 * time.Second)
						if !errors.Is(err, ErrTimeout) {
							t.Errorf("after %d connections: %v", n, err)
						}
					}
					if n < 10 || n > 60 {
						t.Errorf("%d connections", n)
					}
				})
			})
		}
	}
}

// TestFirstTries: a server that closes connections and has never answered is given up
// after some seconds.
func TestFirstTries(t *testing.T) {
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ClientOptions{}, 0, func(b *bubble) {
				if name == "after another's" {
					return // it has answered
				}
				served := b.serveEach(cut)
				err := callEcho(b.t.Context(), b.c, procEcho, "x")
				if n := served(); err == nil || n < maxFirstTries || n > maxFirstTries+1 || time.Since(b.start) > 10*time.Second {
					t.Errorf("after %d connections and %v: %v", n, time.Since(b.start), err)
				}
			})
		})
	}
}

// breaches are what no RPC server sends, and their kinds.
var breaches = map[string]struct {
	kind  error
	reply func(xid uint32, args []byte) []byte
}{
	"a record too long": {nil, func(uint32, []byte) []byte { return words(lastFragment | 0x7fffffff) }},
	"another protocol":  {nil, func(uint32, []byte) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }},
	"a call":            {errNotReply, func(xid uint32, args []byte) []byte { return record(message(xid, procEcho, args)) }},
	"an empty record":   {errCutMessage, func(uint32, []byte) []byte { return record(nil) }},
	"a number alone":    {errCutMessage, func(xid uint32, _ []byte) []byte { return record(words(xid)) }},
	"empty fragments":   {errEmpties, func(uint32, []byte) []byte { return make([]byte, 4*(maxEmptyFragments+1)) }},
	"and too long in the end": {nil, func(xid uint32, args []byte) []byte {
		return join(words(600), accepted(xid, make([]byte, 600-24)), words(0x7fffffff))
	}},
}

// TestBreach: a server that breaks the protocol in the same way twice ends a call at once,
// hard or soft, with an error that says what is wrong. A breach alone, or two of different
// kinds, do not.
func TestBreach(t *testing.T) {
	for name, k := range breaches {
		for _, hard := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/hard=%v", name, hard), func(t *testing.T) {
				inBubble(t, ClientOptions{Hard: hard, Resend: true}, 0, func(b *bubble) {
					b.met().hangUp()
					time.Sleep(time.Millisecond)
					b.start = time.Now()
					served := b.serveEach(answerWith(k.reply))
					err := callEcho(b.t.Context(), b.c, procOnce, "x")
					_, tooLong := errors.AsType[*RecordError](err)
					if n := served(); n != maxBreaches || !errors.Is(err, ErrBadReply) || !errors.Is(err, ErrUnknownOutcome) ||
						(k.kind == nil) != tooLong || (k.kind != nil && !errors.Is(err, k.kind)) {
						t.Errorf("after %d connections: %v", n, err)
					}
					if took := time.Since(b.start); took > time.Second {
						t.Errorf("took %v", took)
					}
				})
			})
		}
		if name == "another protocol" {
			continue // TestForeign
		}
		t.Run(name+"/once", func(t *testing.T) {
			inBubble(t, ClientOptions{}, 0, func(b *bubble) {
				other := "a call"
				if name == other {
					other = "an empty record"
				}
				n := 0
				served := b.serveEach(func(nc net.Conn) {
					switch n++; n {
					case 1:
						answerWith(k.reply)(nc)
					case 2:
						answerWith(breaches[other].reply)(nc)
					default:
						echoing(nc)
					}
				})
				if err := callEcho(b.t.Context(), b.c, procEcho, "x"); err != nil || served() != 3 {
					t.Error(err)
				}
			})
		})
	}
}

// TestForeign: a server that has never answered, and speaks a protocol that is known to be another one, would do so
// again. The call ends at once, hard or soft.
func TestForeign(t *testing.T) {
	for _, hard := range []bool{false, true} {
		inBubble(t, ClientOptions{Hard: hard}, 0, func(b *bubble) {
			served := b.serveEach(answerWith(breaches["another protocol"].reply))
			err := callEcho(b.t.Context(), b.c, procEcho, "x")
			if e, ok := errors.AsType[*RecordError](err); !ok || e.Speaks != "HTTP" || !errors.Is(err, ErrBadReply) {
				t.Errorf("hard=%v: %v", hard, err)
			}
			if n := served(); n != 1 {
				t.Errorf("hard=%v: after %d connections", hard, n)
			}
		})
	}
}

// TestBreachOfAnother: one call's reply breaks the protocol each time. It alone fails, and
// other calls of its connection get their replies, with or without a number in the breach.
func TestBreachOfAnother(t *testing.T) {
	for name, k := range breaches {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ClientOptions{}, 0, func(b *bubble) {
				served := b.serveEach(func(nc net.Conn) {
					for {
						xid, args, ok := hear(nc)
						if !ok {
							return
						}
						if args[3] == 7 { // the length of the culprit's argument
							time.Sleep(time.Second)
							_, _ = nc.Write(k.reply(xid, args)) // the client may have closed
							return
						}
						if _, err := nc.Write(record(accepted(xid, args))); err != nil {
							return
						}
					}
				})
				// A server that had never answered would be given up with the first words of another protocol (TestForeign).
				if err := callEcho(b.t.Context(), b.c, procEcho, "first"); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(b.t.Context())
				var others sync.WaitGroup
				for range 8 {
					others.Go(func() {
						for ctx.Err() == nil {
							if err := callEcho(b.t.Context(), b.c, procEcho, "x"); err != nil {
								t.Error(err)
							}
							time.Sleep(100 * time.Millisecond)
						}
					})
				}
				if err := callEcho(b.t.Context(), b.c, procEcho, "culprit"); !errors.Is(err, ErrBadReply) {
					t.Errorf("error %v", err)
				}
				cancel()
				others.Wait()
				if err := b.c.Close(); err != nil {
					t.Error(err)
				}
				if n := served(); n > 2*(maxNearBreaches+2) {
					t.Errorf("%d connections", n)
				}
			})
		})
	}
}
