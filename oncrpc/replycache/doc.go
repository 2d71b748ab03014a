// Package replycache is a duplicate request cache for an [oncrpc.Server]: it remembers
// the replies of calls that must not be executed twice.
//
// RPC sends a call again when no reply comes (RFC 5531, section 5), and the server may
// have executed it the first time: a second REMOVE would answer that there is no such
// file. The server therefore remembers what it has answered (RFC 1813, section 4.5).
//
// # What it promises
//
// A call is executed at most once in the life of the cache, and a retransmission gets
// the first execution's reply, for [Options].MaxAge. Within that time a reply is evicted
// only for want of memory; ReplyCacheStats.EvictedYoung counts these. Not remembered are
// errors of RPC, what a handler has asked to forget, and replies longer than
// maxReply bytes.
//
// Two calls are the same if they agree in client, program, version, procedure, XID, and
// in a keyed hash of credential and arguments. The client is its address without the
// port, since it connects anew, and its user if the server knows that
// ([oncrpc.ClientOf]). Of AUTH_SYS the stamp is left out: some clients renew it.
//
// A retransmission of a call under way joins it. The reply then leaves on the newest
// connection that has asked and is still there. A call that has begun is finished even
// if its connection is lost. One that has not begun is dropped with its connection.
//
// # Restarts
//
// Servers that follow each other in one process may share a cache. For a restart of the
// process, [Cache.Save] writes it and [Cache.Load] reads it: the server ends, saves, and
// the next one loads before its first connection. The format has a magic, a version and a
// checksum against damage, but no secret: whoever stores it seals it against forgers, as
// the daemon does with its key, and lets it be loaded once. After a crash nothing was
// saved, and a retransmission is a new call.
//
// # Shares
//
// All replies share MaxBytes. Above it the share ([oncrpc.ShareOf]) that holds most gives
// back its oldest replies: a client that writes without end displaces its own, from
// however many addresses. Of clients that have left, maxClients are known.
//
// # NFSv4
//
// Sessions of NFSv4.1 keep replies in slots instead (RFC 8881, section 2.10.6). They need
// nothing of this package.
//
// # Locks
//
// Cache.mu comes before client.mu, and both before those of the server's connections.
// Neither is held while an asker's call is ended.
package replycache
