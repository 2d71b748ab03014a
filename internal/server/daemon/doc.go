// Package daemon is `nfsbox serve`: it puts directories, the table of exports,
// the gate to the disk and the server together, listens, and ends them in good
// order.
//
// # Configuration
//
// [Config] is one list of keys: those of nfsbox.toml, and the names of the flags.
// [Load] reads the file, lays over it what the command line has said, and finds
// what is wrong with the result, each fault with its line or its flag. Nothing is
// taken on trust or left out in silence: an unknown key is an error.
//
// # Life
//
// [Serve] goes through four stages. It opens all that must succeed before
// clients can be let in: state, directories, server, listeners. It tells the
// service manager that it is ready. It serves, and a hangup makes it go over to another
// configuration: new directories are opened, the table is replaced at once, and a
// directory that is exported no longer is closed when its last call has ended; if
// any of this fails, all stays as it was. In the end it drains: it stops reading,
// answers what it has read, waits for clients to take their leave, syncs, and
// leaves what was answered lately to the next server.
//
// For what comes between an end and the next start there are sockets that the
// service manager holds (socket activation). Clients that find theirs closed
// connect again, wait in the listener's queue, and send again what was not
// answered; remembered replies keep that from being done twice.
//
// A directory is known by where its path leads to, and not by its path alone: at a
// reload, one that was replaced or mounted over is another, and handles of the former
// are stale, as they are when the path is another.
//
// A reload is prepared beside the server, which goes on meanwhile and does not wait
// for it in the end: a directory that is dead may never answer.
//
// # Clients on this host
//
// LOCALIO is on where the directory for its socket can be had, and nowhere else; one
// that somebody has named must be had. The server ends its sessions before it ends
// its listeners, and a reload leaves them alone: what it changes is told to those who
// watch, file by file.
//
// A program of this host that comes over TCP is the user whose socket it has, as the
// kernel tells when the connection is made (package sockdiag), and not the one that its
// credentials name. So by default nobody is squashed on loopback, where users are
// known; where they are not, root is.
//
// # The file API
//
// The file API is a second way to the same table of exports, and so to the same views
// and through the same gate; its store of content has a lane of its own there. It
// begins after NFS' server and ends beside it. What it knows callers by, and is known
// by, are files that a reload reads again. A caller without a proof is nobody, unless it is
// said as which user programs of this host call; root, who could do most harm, is never
// supposed to have meant it.
//
// # State
//
// What must outlive a restart lies in the state directory, in a folder of the
// server's own, named by a hash of the path of its configuration, or of the
// directory if there is none:
//
//	handles.key   the key under which handles are sealed
//	lock          locked while a server runs with this folder
//	control       the socket by which the operator lists clients and drops them
//	replies       remembered replies, from a clean end to the next start
//	locks/        which clients hold locks
//	uploads       in which directories uploads by the file API are under way
//	<hash>/       localfs' map of handles of one directory, where one is needed;
//	              without a configuration it lies beside the key
//
// Without the key every handle that clients hold would be stale. The state
// directory must not lie within the tree that is served: a client that can read
// the key can forge handles, and one that can write the map can lead handles
// astray. For like reasons neither may the configuration, the logs, and the files of
// the file API, nor any symbolic link by which one of them is found: a user that can
// replace the link says what is read at the next reload. Nobody but root and the
// server's user may be able to put another state directory in its place, by rights on
// what lies above it, unless Config.TrustStatePath says that they are trusted. What a second
// mount shows elsewhere (bind mounts) is known by its place in the file system, as
// /proc/self/mountinfo has it. Without that, and on NFS, only the directory of an export is
// known again. What a file system is made of, such as an image or the layers of
// an overlay, is not looked for in the tree.
//
// # The process
//
// Where the process is the server's alone ([World].Alone), the limit of
// descriptors is raised to what is configured, and then CAP_SYS_RESOURCE is laid
// down in all threads: with it, quotas and reserved blocks would not bind clients.
//
// # Logs
//
// The server's own log is slog's, and goes where the configuration says; what its file
// does not take is lost and counted, and no call fails for it. Slow calls are told of
// there, by a goroutine of their own, but for those of the file API that moved so much
// that their time was the network's. The log of requests, of which package reqlog is
// the most part, has a file to itself: package oncrpc asks of each call whether it is
// wanted, and describes only those that are.
//
// # Metrics and the live view
//
// The rooms below count; nothing here counts again. A scrape asks them for
// snapshots and writes them down in Prometheus' words. What could grow with the
// clients has no label of its own. What the rooms count once for each transport is
// added up.
//
// The live view is drawn from the same scrapes, one every few seconds, however many
// watch. It shows the slowest calls of all that took a millisecond or more,
// whatever the log tells of. A reader needs no right but to reach the address:
// it shows names of exports and addresses of clients, and changes nothing. On
// loopback, pages of other sites that had their names pointed there are refused, by
// the name that they ask for, at all addresses for operators.
package daemon
