package v3suite

import (
	"errors"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

var authTests = []test{
	{name: "none", run: func(e *env) {
		e.auth = oncrpc.Auth{}
		if accepted, _ := e.raw(nfs3.NFSPROC3_NULL, nothing{}, nothing{}); !accepted {
			e.Errorf("NULL without a credential is refused")
		}
		// What it may do beyond is the server's to say: something, or nothing.
		if accepted, answer := e.raw(nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: fh(e.export)}, new(nfs3.GETATTR3res)); !accepted {
			e.denied(answer, oncrpc.AuthTooWeak, oncrpc.AuthRejectedCred, oncrpc.AuthBadCred)
		}
	}},
	{name: "none-is-nobody", needs: needsIdentities, run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		e.ok(e.setattr(h, mode(0o600)).Status)
		e.auth = oncrpc.Auth{}
		res := nfs3.READ3res{Resok: nfs3.READ3resok{Data: make([]byte, 4)}}
		accepted, answer := e.raw(nfs3.NFSPROC3_READ, &nfs3.READ3args{File: fh(h), Count: 4}, &res)
		if accepted {
			e.gotStatus(res.Status, nfs3.NFS3ERR_ACCES)
		} else {
			e.denied(answer, oncrpc.AuthTooWeak, oncrpc.AuthRejectedCred, oncrpc.AuthBadCred)
		}
	}},
	{name: "unknown-flavor", run: func(e *env) {
		e.auth = oncrpc.Auth{Flavor: 390_077, Body: []byte("whatever")}
		e.refusedAuth(oncrpc.AuthBadCred, oncrpc.AuthRejectedCred, oncrpc.AuthTooWeak)
	}},
	{name: "seventeen-groups", run: func(e *env) {
		body := append(words(0, 0, 0, 0), words(oncrpc.MaxGIDs+1)...)
		for i := range uint32(oncrpc.MaxGIDs + 1) {
			body = append(body, words(i)...)
		}
		e.auth = oncrpc.Auth{Flavor: oncrpc.AuthSysFlavor, Body: body}
		e.refusedAuth(oncrpc.AuthBadCred, oncrpc.AuthRejectedCred)
	}},
	{name: "cut-short", run: func(e *env) {
		for _, body := range []literal{words(0, 0), words(0, 0, 0, 0, 3, 1), words(0, 100, 0, 0)} {
			e.auth = oncrpc.Auth{Flavor: oncrpc.AuthSysFlavor, Body: body}
			e.refusedAuth(oncrpc.AuthBadCred, oncrpc.AuthRejectedCred)
		}
	}},
	{name: "long-machine-name", run: func(e *env) {
		body := append(words(0), xdr.AppendOpaque(nil, make([]byte, oncrpc.MaxMachineName+1))...)
		e.auth = oncrpc.Auth{Flavor: oncrpc.AuthSysFlavor, Body: append(body, words(0, 0, 0)...)}
		e.refusedAuth(oncrpc.AuthBadCred, oncrpc.AuthRejectedCred)
	}},
}

func (e *env) refusedAuth(want ...oncrpc.AuthStat) {
	accepted, answer := e.raw(nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: fh(e.export)}, new(nfs3.GETATTR3res))
	if accepted {
		e.Errorf("the credential was taken")
		return
	}
	e.denied(answer, want...)
}

func (e *env) denied(answer error, want ...oncrpc.AuthStat) {
	var d *oncrpc.DeniedError
	if !errors.As(answer, &d) || d.Stat != oncrpc.AuthRejected {
		e.Errorf("%v, want a denial", answer)
		return
	}
	for _, w := range want {
		if d.Auth == w {
			return
		}
	}
	e.Errorf("denied for %v, want %v", d.Auth, want)
}
