// Package rpcfault is a proxy between an RPC client and an RPC server that injects the faults
// of networks, crashes and broken servers. It loses calls and replies, delays, doubles and
// reorders them, cuts connections at any byte, lets a call be executed and drops its reply, and
// changes replies. It is for tests: rules say what it does, and a seed decides the rest.
//
//	p := rpcfault.New(rpcfault.Options{
//		Upstream: func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", server) },
//		Seed:     7,
//		Rules: []rpcfault.Rule{
//			{Every: 777, Fault: rpcfault.Fault{Kind: rpcfault.CutBefore}},
//			{Procs: []*xdr.Proc{nfs3.NFSPROC3_CREATE}, Budget: 1, Fault: rpcfault.Fault{Kind: rpcfault.CutInReply}},
//		},
//	})
//	go p.Serve(l) // or hand p.Dial to the client
//
// # What it parses
//
// The proxy reads records (RFC 5531, section 11), of any number of fragments, and the heads of
// the messages in them (section 9): number, direction and, for a call, program and procedure. A
// reply is matched to its call by the number on the same connection. The proxy does not parse
// arguments and results; an [Edit] that changes a count gets its offset. What does not parse is
// passed on unchanged and counted. Records are sent on as one fragment each, unless [Fragment]
// or [FragmentCall] says otherwise.
//
// # Rules and chance
//
// Each call is matched with every [Rule], in order, whatever its connection; that also decides
// the faults of its reply. A rule has a random source of its own and draws from it once for
// every call that it is about. So the same seed and rules lead to the same decisions for the
// first, second, third such call. Which call is the first is up to the client: with many
// callers the scheduler chooses, and a seed then stands for a mix of faults and not for one
// history. A call that is sent again is a new call; Rule.Budget bounds how often it is hit.
//
// All rules that fire apply. To one message loss applies first; then edits, in the order of the
// rules; then the wait; then the cut, or the copies.
//
// # Time
//
// Waits are timers of package time: in a testing/synctest bubble, with connections of
// sim.Network or of [Proxy.Dial], they take no real time. Later messages overtake a message
// that waits.
//
// # Bounds
//
// bounds.go names them. An announced length costs no memory before its bytes have come, and
// waiting messages are counted. [Proxy.Close] ends every connection and returns when no
// goroutine is left.
package rpcfault
