// Package rpcfault is a proxy between an RPC client and an RPC server that does
// to their calls and replies what networks, crashes and broken servers do: it
// loses them, delays, doubles and reorders them, cuts connections at any byte,
// lets a call be executed and throws its reply away, and writes lies into
// replies. It is for tests: what it does is said by rules, and follows from a
// seed.
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
// # What it understands
//
// The proxy reads records (RFC 5531, section 11), of any number of fragments,
// and the heads of the messages in them (section 9): number, direction and, of a
// call, program and procedure. A reply is known by the number of its call on the
// same connection. Arguments and results mean nothing to it; an [Edit] that
// lies about a count is told where the count is. What does not parse, in either
// direction, is passed on as it came and counted. Records are sent on as one
// fragment each, unless [Fragment] or [FragmentCall] want it otherwise.
//
// # Rules and chance
//
// Each call is put before every [Rule], in order, whatever connection it came
// by; what happens to its reply is decided then, too. A rule has chance of its
// own and draws from it once for every call that it is about, so that the same
// seed and rules lead to the same decisions for the first, second, third such
// call. Which call is the first is up to the client: with many callers at work
// it is the scheduler's choice, and a seed then stands for a mix of faults and
// not for one history. A call that is sent again is a new call; Rule.Budget says
// when it is to get through.
//
// All rules that fire hold. Of one message, loss comes before all else; then
// edits, in the order of the rules; then the wait; then the cut, or the copies.
//
// # Time
//
// Waits are timers of package time: in a testing/synctest bubble, with
// connections of sim.Network or of [Proxy.Dial], they pass in no time at all. A
// message that waits is overtaken by those behind it.
//
// # Bounds
//
// bounds.go names them. What a peer announces costs nothing before it has come,
// and what waits is counted. [Proxy.Close] ends every connection and returns
// when no goroutine is left.
package rpcfault
