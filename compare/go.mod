module github.com/nfsbox/nfsbox/compare

go 1.26.0

require (
	github.com/nfsbox/nfsbox v0.0.0
	github.com/rasky/go-xdr v0.0.0-20170124162913-1a41d1a06c93
	github.com/stellar/go-xdr v0.0.0-20260828180817-2b1309f8a5a6
)

require github.com/willscott/go-nfs-client v0.0.0-20251022144359-801f10d98886

require golang.org/x/sys v0.49.0 // indirect

replace github.com/nfsbox/nfsbox => ../
