package oncrpc_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/xdr"
)

// number is an unsigned integer as arguments and results; generated code has
// types like it for a whole protocol.
type number uint32

func (n *number) AppendXDR(b []byte) ([]byte, error) { return xdr.AppendUint32(b, uint32(*n)), nil }

func (n *number) DecodeXDR(d *xdr.Decoder) error {
	*n = number(d.Uint32())
	return d.Err()
}

// A program with one procedure, served and called.
func Example() {
	program := &xdr.Program{Name: "SQUARE_V1", Number: 0x20000001, Version: 1, Procs: []xdr.Proc{
		{Name: "NULL", Program: 0x20000001, Version: 1, Number: 0, Repeatable: true},
		{Name: "SQUARE", Program: 0x20000001, Version: 1, Number: 1, Repeatable: true},
	}}
	square := func(_ context.Context, c *oncrpc.Call) error {
		var n number
		if err := n.DecodeXDR(&c.Args); err != nil {
			return err // becomes GARBAGE_ARGS
		}
		n *= n
		return c.Reply(&n)
	}
	srv, err := oncrpc.NewServer([]oncrpc.Service{{Program: program, Handlers: []oncrpc.Handler{nil, square}}}, oncrpc.ServerOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = srv.Serve(l) }() // returns ErrServerClosed
	var seed [4]byte
	_, _ = rand.Read(seed[:]) // never fails
	client := oncrpc.NewClient(oncrpc.ClientOptions{
		FirstXID: binary.BigEndian.Uint32(seed[:]),
		Dial: func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", l.Addr().String())
		},
	})
	n := number(12)
	reply, err := client.Call(context.Background(), &program.Procs[1], oncrpc.Auth{}, &n, &n)
	fmt.Println(n, err)
	reply.Release()
	fmt.Println(client.Close(), srv.Close())
	// Output:
	// 144 <nil>
	// <nil> <nil>
}
