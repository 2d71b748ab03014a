module github.com/nfsbox/nfsbox/compare

go 1.26.0

require (
	github.com/nfsbox/nfsbox v0.0.0
	github.com/rasky/go-xdr v0.0.0-20170124162913-1a41d1a06c93
	github.com/stellar/go-xdr v0.0.0-20260828180817-2b1309f8a5a6
)

require (
	github.com/willscott/go-nfs-client v0.0.0-20251022144359-801f10d98886
	golang.org/x/sys v0.49.0
)

require (
	connectrpc.com/connect v1.21.1 // indirect
	github.com/klauspost/cpuid/v2 v2.4.0 // indirect
	github.com/wasilibs/go-re2 v1.13.0 // indirect
	github.com/zeebo/blake3 v0.2.4 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/nfsbox/nfsbox => ../
