// Command responder answers NFSv3 calls without a file system: what it says is
// made up, and always the same. Clients that are measured against it are not
// measured together with a server's disk, and find their replies in the groups
// in which their calls came: a connection is read until nothing is left, and all
// that it held is answered with one write.
//
// It prints the URL that it serves, and ends when its standard input does.
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/xdr"
)

const (
	// A call is no longer than maxCall; a client that sends a longer one is cut off.
	maxCall = 64 << 10
	// inBuffer is read at once.
	inBuffer = 1 << 20
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("nfs://%v/\n", l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go func() {
			defer func() { _ = c.Close() }() // nothing is promised that it could break
			if err := serve(c); !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
}

// serve answers the calls of one connection, up to its end, which is an error.
func serve(c net.Conn) error {
	in := bufio.NewReaderSize(c, inBuffer)
	var call, out []byte
	for {
		var mark [4]byte
		if _, err := io.ReadFull(in, mark[:]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(mark[:]) &^ (1 << 31)
		if n > maxCall || mark[0]&0x80 == 0 {
			return fmt.Errorf("a call of %d bytes, or in fragments", n)
		}
		call = append(call[:0], make([]byte, n)...)
		if _, err := io.ReadFull(in, call); err != nil {
			return err
		}
		var err error
		if out, err = answer(out, call); err != nil {
			return err
		}
		if in.Buffered() > 0 && len(out) < inBuffer {
			continue
		}
		if _, err := c.Write(out); err != nil {
			return err
		}
		out = out[:0]
	}
}

// answer appends the reply to a call, with its record mark.
func answer(out, call []byte) ([]byte, error) {
	var d xdr.Decoder
	d.Reset(call)
	xid, _, _ := d.Uint32(), d.Uint32(), d.Uint32()
	prog, _, proc := d.Uint32(), d.Uint32(), d.Uint32()
	for range 2 { // credential, verifier
		d.Uint32()
		d.Opaque("opaque_auth", 400)
	}
	if err := d.Err(); err != nil {
		return out, err
	}
	at := len(out)
	out = binary.BigEndian.AppendUint32(out, 0)
	out = binary.BigEndian.AppendUint32(out, xid)
	out = append(out,
		0, 0, 0, 1, // a reply
		0, 0, 0, 0, // accepted
		0, 0, 0, 0, 0, 0, 0, 0, // no verifier
		0, 0, 0, 0) // success
	body := len(out)
	out, err := results(out, prog, proc, &d)
	switch {
	case errors.Is(err, errUnknownProgram):
		binary.BigEndian.PutUint32(out[body-4:], uint32(oncrpc.ProgUnavail))
	case err != nil:
		return out, err
	}
	binary.BigEndian.PutUint32(out[at:], uint32(len(out)-at-4)|1<<31)
	return out, nil
}
