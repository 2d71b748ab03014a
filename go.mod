module github.com/nfsbox/nfsbox

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0 // indirect
	github.com/klauspost/cpuid/v2 v2.0.12 // indirect
	github.com/zeebo/blake3 v0.2.4 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
