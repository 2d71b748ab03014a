// Package nsm is the Network Status Monitor, version 1, on the wire (X/Open CAE
// C702, chapter 11): how a host learns that a peer with which it shares locks
// has restarted. sm_inter.x is the specification; cmd/xdrgen makes the Go of it.
//
// A lock manager asks the monitor of its own host to watch a peer (SM_MON) and
// names the procedure to call when the peer's state number changes; the call
// carries a [Status]. A host that restarts raises its state number and tells
// every peer it knew (SM_NOTIFY), whose lock managers then free its locks, or
// claim their own again.
package nsm

//go:generate go run github.com/nfsbox/nfsbox/cmd/xdrgen -pkg nsm -open res sm_inter.x
