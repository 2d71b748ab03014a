package oncrpc

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"
)

// TestLeftInBatch: a call times out while the batch that holds it is being written. From then
// on the batch does not matter to it: when the server or Close ends the connection of its
// next try, that try ends at once.
func TestLeftInBatch(t *testing.T) {
	for _, closes := range []bool{false, true} {
		inBubble(t, ClientOptions{Timeout: 10 * time.Second, Retries: 5}, 0, func(b *bubble) {
			echo := func(text string) chan error {
				return begin(func() error { return callEcho(b.t.Context(), b.c, procEcho, text) })
			}
			old := b.met()
			first := echo("first")
			time.Sleep(3 * time.Second)
			second := echo("second") // stands in the queue, since nobody takes the first
			time.Sleep(3 * time.Second)
			old.call()          // and now the second is being written, for longer than it waits
			fresh := b.accept() // of the first one's next try, which nobody takes either
			b.passed(10 * time.Second)
			time.Sleep(5 * time.Second)
			if b.c.queued() != 1 {
				t.Error("the second call does not stand behind the first one's next try")
			}
			if closes {
				if err := b.c.Close(); err != nil {
					t.Error(err)
				}
			} else {
				fresh.hangUp()
				last := b.accept()
				last.answer()
				last.answer()
				b.passed(15 * time.Second)
			}
			for _, done := range []chan error{first, second} {
				if err := <-done; (err == nil) == closes || closes && !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			}
		})
	}
}

// slowly reads no more than 64 KiB a second.
type slowly struct{ src io.Reader }

func (s slowly) Read(p []byte) (int, error) {
	time.Sleep(time.Second / 16)
	return s.src.Read(p[:min(len(p), 4<<10)])
}

// TestSlowTaker: a server that reads slowly, but reads, keeps its connection for as long as
// the call waits, which is longer at each try.
func TestSlowTaker(t *testing.T) {
	inBubble(t, ClientOptions{Timeout: 10 * time.Second, Hard: true}, 0, func(b *bubble) {
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
		defer cancel()
		data := make([]byte, 1<<20)
		done := begin(func() error {
			r, err := b.c.Call(ctx, proc(procWrite), Auth{}, &writeArgs{Data: data}, &writeRes{})
			r.Release()
			return err
		})
		for range 2 {
			r := b.accept()
			r.r.src = slowly{r.nc}
			if rec, err := r.receive(); err == nil {
				r.send(record(accepted(binary.BigEndian.Uint32(rec), words(uint32(len(data)), 0))))
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
