package v3suite

import "github.com/nfsbox/nfsbox/proto/nfs3"

var nullTests = []test{
	{name: "answers", run: func(e *env) {
		reply, err := e.nfs.Call(e.ctx, nfs3.NFSPROC3_NULL, e.auth, nothing{}, nothing{})
		if err != nil {
			e.Fatalf("NULL: %v", err)
		}
		reply.Release()
	}},
}
