package oncrpc

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/xdr"
)

func TestCalls(t *testing.T) {
	_, _, c := pair(t, ServerOptions{}, ClientOptions{})
	ctx := t.Context()
	if r, err := c.Call(ctx, proc(procNull), Auth{}, xdr.Void{}, xdr.Void{}); err != nil {
		t.Fatal(err)
	} else {
		r.Release()
	}
	for _, n := range []int{0, 1, 3, 4, 500, 511, 512, 513, 4096, 70000, maxEcho} {
		if err := callEcho(ctx, c, procEcho, strings.Repeat("x", n)); err != nil {
			t.Fatalf("echo of %d bytes: %v", n, err)
		}
	}
}

func TestBulk(t *testing.T) {
	_, _, c := pair(t, ServerOptions{MaxRecord: 8 << 20}, ClientOptions{})
	for _, n := range []int{0, 1, 2, 3, 4, 100, 440, 450, 460, 470, 480, 490, 2047, 2048, 2049, 4096, 65537, 1 << 20, maxBulk} {
		if err := readBulk(t, c, uint32(n), n+5); err != nil {
			t.Errorf("read of %d: %v", n, err)
		}
		if err := writeBulk(t, c, n); err != nil {
			t.Errorf("write of %d: %v", n, err)
		}
	}
}

// readBulk reads n bytes into a buffer of size and checks them.
func readBulk(t *testing.T, c *Client, n uint32, size int) error {
	buf := bytes.Repeat([]byte{0xee}, size)
	res := readRes{Data: buf}
	r, err := c.Call(t.Context(), proc(procRead), Auth{}, &readArgs{Seed: n, Count: n}, &res)
	defer r.Release()
	if err != nil {
		return err
	}
	want := make([]byte, n)
	pattern(want, n)
	if !bytes.Equal(res.Data, want) || res.Tail != n || string(res.Note) != "note" {
		return fmt.Errorf("wrong result: %d bytes, tail %d, note %q", len(res.Data), res.Tail, res.Note)
	}
	if rest := buf[n:]; !bytes.Equal(rest, bytes.Repeat([]byte{0xee}, len(rest))) {
		return errors.New("bytes behind the result were touched")
	}
	return nil
}

func writeBulk(t *testing.T, c *Client, n int) error {
	data := make([]byte, n)
	pattern(data, 9)
	var res writeRes
	r, err := c.Call(t.Context(), proc(procWrite), Auth{}, &writeArgs{Name: []byte("abc"), Data: data, Tail: 77}, &res)
	defer r.Release()
	if err == nil && (res.Count != uint32(n) || res.Sum != sum(data)^77) {
		err = fmt.Errorf("server saw %d bytes, or others", res.Count)
	}
	return err
}

func TestConcurrent(t *testing.T) {
	_, _, c := pair(t, ServerOptions{MaxCallsPerConn: 16}, ClientOptions{})
	var wg sync.WaitGroup
	for g := range 700 { // more than there are slots
		wg.Go(func() {
			for i := range 5 {
				var err error
				switch (g + i) % 3 {
				case 0:
					err = callEcho(t.Context(), c, procEcho, fmt.Sprint(g, i, strings.Repeat("y", g*7)))
				case 1:
					err = readBulk(t, c, uint32(g*50), g*50+1)
				case 2:
					err = writeBulk(t, c, g*50)
				}
				if err != nil {
					t.Errorf("caller %d: %v", g, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
