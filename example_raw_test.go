package nfsbox_test

import (
	"context"
	"fmt"
	"log"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// Call procedures of the protocol by hand, over the client's connection.
func ExampleClient_Raw() {
	url, stop := filer()
	defer stop()
	ctx := context.Background()

	c, err := nfsbox.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	raw := c.Raw()
	root := nfs3.NfsFh3{Data: raw.Root.Bytes()}

	var attr nfs3.GETATTR3res
	reply, err := raw.RPC.Call(ctx, nfs3.NFSPROC3_GETATTR, raw.Auth, &nfs3.GETATTR3args{Object: root}, &attr)
	if err != nil {
		log.Fatal(err)
	}
	// What a result holds of the reply is gone with it; numbers are not.
	reply.Release()
	if attr.Status != nfs3.NFS3_OK {
		log.Fatal(attr.Status)
	}
	fmt.Printf("%v, mode %04o\n", attr.Resok.ObjAttributes.Type, attr.Resok.ObjAttributes.Mode)

	var info nfs3.FSINFO3res
	reply, err = raw.RPC.Call(ctx, nfs3.NFSPROC3_FSINFO, raw.Auth, &nfs3.FSINFO3args{Fsroot: root}, &info)
	if err != nil {
		log.Fatal(err)
	}
	reply.Release()
	if info.Status != nfs3.NFS3_OK {
		log.Fatal(info.Status)
	}
	fmt.Println("reads of up to", info.Resok.Rtmax, "bytes")
	// Output:
	// NF3DIR, mode 0777
	// reads of up to 1048576 bytes
}
