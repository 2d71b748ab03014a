package config

import "github.com/nfsbox/nfsbox/oncrpc"

// Config says what to serve, and how. Its keys are those of nfsbox.toml and the
// names of the flags of `nfsbox serve` at once: one list, from which the file is
// read, the command line parsed and its help printed. Default is a good one. What
// is a table of the file, such as log, is the prefix of its flags: log.level is
// --log-level.
//
// The tag "default" is what help shows; a test holds it against Default.
type Config struct {
	Listen        []string `toml:"listen" sep:"none" default:"127.0.0.1:2049" help:"Address and port of NFS, MOUNT, the lock manager and the port mapper alike; port 0 takes a free one. May be repeated."`
	UDP           bool     `toml:"udp" help:"Serve all but NFS over UDP on the same ports as well."`
	PortmapListen []string `toml:"portmap-listen" sep:"none" placeholder:"ADDRESS" help:"Answer as the port mapper alone at this address, too, over TCP and UDP: \":111\" lets clients mount without port options. May be repeated."`
	RPCBind       bool     `toml:"rpcbind" name:"rpcbind" help:"Register with the port mapper of this host, unless an NFS server of the kernel has."`
	Locks         bool     `toml:"locks" default:"true" negatable:"" help:"Serve byte-range locks (NLM, NSM)."`
	Grace         Duration `toml:"grace" default:"45s" help:"How long after a start locks can only be claimed back by who had them. Clients may take 30s to notice a restart: a shorter grace may give a lock to another while its owner still relies on it."`

	LocalIO    string `toml:"localio" name:"localio" default:"on" help:"Let clients of this host read and write files without the network: on, off, trusted."`
	LocalIODir string `toml:"localio-dir,omitempty" name:"localio-dir" placeholder:"DIR" help:"Where the socket for that is made; by default /run/nfsbox for root, else nfsbox in $XDG_RUNTIME_DIR."`

	IOPool            string `toml:"io-pool" default:"auto" help:"How work reaches the disk: auto, none, go, c."`
	IOThreads         int    `toml:"io-threads" placeholder:"N" help:"Threads that the disk may hold, of all exports together; 0 takes the gate's own."`
	IOPriorityThreads int    `toml:"io-priority-threads" placeholder:"N" help:"Of them, with real-time priority (c only)."`
	IOAffinity        bool   `toml:"io-affinity" help:"Tie each thread to a processor (c only)."`
	IOQueue           int    `toml:"io-queue" placeholder:"N" help:"Calls that may wait for a thread; 0 takes the gate's own. What is more is told to come back."`

	MaxConnections   int      `toml:"max-connections" default:"4096" help:"Connections at once. Above, the one that has been silent longest makes room."`
	MaxCalls         int      `toml:"max-calls-per-connection" name:"max-calls-per-connection" default:"128" help:"Calls of one connection under way. At the bound it is not read."`
	MaxRequestBytes  Size     `toml:"max-request-bytes" default:"128MiB" help:"Memory of requests, all connections together. At the bound large ones are not read."`
	MaxReplyBytes    Size     `toml:"max-reply-bytes" default:"128MiB" help:"Memory of data that is being read or waits to be sent, all connections together."`
	IdleTimeout      Duration `toml:"idle-timeout" default:"6m" help:"Close a connection that is silent for so long."`
	MaxOpenFiles     int      `toml:"max-open-files" default:"4096" help:"Descriptors of files kept open, of each directory that is served. Locks have half of them, and a client that is alone a quarter; some are kept for those who have few."`
	RepliesPerClient int      `toml:"replies-per-client" default:"4096" help:"Replies to remember of each client, so that no change is made twice."`
	RepliesKeep      Duration `toml:"replies-keep" default:"1m" help:"How long to remember more than those."`
	RepliesBytes     Size     `toml:"replies-bytes" default:"64MiB" help:"Memory of remembered replies, of all clients."`

	Slow        Duration `toml:"slow" placeholder:"TIME" help:"Log calls that take longer; 0 logs none."`
	Metrics     string   `toml:"metrics" placeholder:"ADDRESS" help:"Serve /metrics (Prometheus) and /healthz there."`
	HTTP        string   `toml:"http" name:"http" placeholder:"ADDRESS" help:"Serve the live view there, a page of charts and what nfsbox top shows, and /healthz."`
	Pprof       string   `toml:"pprof" placeholder:"ADDRESS" help:"Serve Go's profiles there; an address of loopback."`
	PprofPublic bool     `toml:"pprof-public" help:"Let the profiles' address be another. They tell what is in memory."`

	StateDir       string   `toml:"state-dir" placeholder:"DIR" help:"Where the key of the handles, their map if one is needed, locks and remembered replies live."`
	TrustStatePath bool     `toml:"trust-state-path" help:"Take a state directory that others could move away, since they can write to one above it."`
	DrainTimeout   Duration `toml:"drain-timeout" default:"10s" help:"How long calls under way may take to finish at the end. What takes longer is cut off."`

	Log Log `toml:"log" embed:"" prefix:"log-" group:"Log:"`
	API API `toml:"api" embed:"" prefix:"api-" group:"File API:"`

	Exports []Export `toml:"export" kong:"-"`
}

// Export is one directory, or another server's, and the path under which clients find it. On the
// command line Path is --export, and the flags hold for all exports alike.
type Export struct {
	Path string `toml:"path" name:"export" default:"/" help:"The path under which clients find DIR; while it is the only one, they may mount / for it."`
	Dir  string `toml:"dir" kong:"-"`
	From string `toml:"from" kong:"-"` // a URL: the export of another server that this one stands for
	Rule
	Allow []string `toml:"allow" sep:"none" placeholder:"CLIENT" help:"Who may mount: an address, a network (10.0.0.0/8), a host name, *.example.org, *. May be repeated; without any, everybody, but where the configuration has clients: then those alone."`

	Async        bool   `toml:"async" help:"Answer before the disk has it. A crash of this host then loses what clients take for safe."`
	MountPoint   bool   `toml:"mountpoint" name:"mountpoint" help:"Leave the export out while nothing is mounted on the directory, so that nobody writes beneath a mount that is missing."`
	CrossMounts  bool   `toml:"crossmnt" name:"crossmnt" help:"Serve file systems mounted below, too; otherwise they are hidden."`
	LocalWriters bool   `toml:"local-writers" help:"Programs of this host change the directory as well: leave out attributes from before a change."`
	LocalIO      *bool  `toml:"localio,omitempty" kong:"-"` // false: every read and write goes over the network
	Handles      string `toml:"handles" default:"auto" help:"What file handles are made of: auto, kernel, map; of another server: auto, verbatim (its own, for an export that is the only one)."`
	FSID         uint32 `toml:"fsid" placeholder:"N" help:"The export's number in handles; 0 makes one of its path."`

	Cache       string   `toml:"cache" placeholder:"CACHE" help:"Keep what is read of another server in files below this directory."`
	CacheConfig string   `toml:"cache-config" name:"cache-config" placeholder:"FILE" help:"Read the cache's size and other settings from a file, as cachefilesd.conf(5) has them, and its directory if there is no --cache."`
	Offline     Duration `toml:"offline" placeholder:"TIME" help:"While another server does not answer, tell attributes, rights and names that it told no longer ago than that, and read what is cached. By default nothing."`

	// Clients are rules of their own for some clients. What one leaves out is
	// the export's. Without Clients and Allow, everybody is let in by the
	// export's own rule; with any, nobody else.
	Clients []Client `toml:"clients" kong:"-"`
}

// Client is a rule for the clients that Match.
type Client struct {
	Match string `toml:"match"`
	Rule
}

// Rule says what a client may do, and as whom. nil, and "", are: not said here.
type Rule struct {
	ReadOnly     *bool   `toml:"ro,omitempty" name:"ro" help:"Refuse every change."`
	Squash       string  `toml:"squash,omitempty" placeholder:"WHOM" help:"Who becomes nobody: none, root, all. By default none where all listen on loopback, whose users the kernel knows, else root."`
	AnonUID      *uint32 `toml:"anonuid,omitempty" name:"anonuid" placeholder:"N" help:"User that nobody is (65534)."`
	AnonGID      *uint32 `toml:"anongid,omitempty" name:"anongid" placeholder:"N" help:"Group that nobody is in (65534)."`
	Secure       *bool   `toml:"secure,omitempty" help:"Refuse clients whose port is 1024 or above: programs of users who are not root there."`
	ManageGroups *bool   `toml:"manage-groups,omitempty" help:"Look groups up on this host, instead of believing the 16 that a client sends."`
	TrustLocal   *bool   `toml:"trust-local,omitempty" help:"Believe programs of this host to be who they say, also where the kernel knows who runs them."`
}

// Default is what holds where nothing is said.
func Default() Config {
	return Config{
		Listen: []string{"127.0.0.1:2049"}, Locks: true, Grace: Duration(defaultGrace),
		LocalIO: LocalIOOn, IOPool: "auto",
		MaxConnections: oncrpc.DefaultMaxConns, MaxCalls: oncrpc.DefaultMaxCallsPerConn,
		MaxRequestBytes: defaultMaxRequestBytes, MaxReplyBytes: defaultMaxReplyBytes,
		IdleTimeout: Duration(oncrpc.DefaultIdleTimeout), MaxOpenFiles: defaultMaxOpenFiles,
		RepliesPerClient: defaultRepliesPerClient, RepliesKeep: Duration(defaultRepliesKeep), RepliesBytes: defaultRepliesBytes,
		DrainTimeout: Duration(defaultDrain), Log: defaultLog(), API: defaultAPI(),
	}
}

// DefaultExport is what holds of an export where nothing is said.
func DefaultExport() Export { return Export{Path: "/", Handles: "auto"} }

// What Config.LocalIO may say.
const (
	LocalIOOn      = "on"      // where the directory for its socket can be had
	LocalIOOff     = "off"     // never
	LocalIOTrusted = "trusted" // and every process that is let in may do with descriptors what they allow
)

// Rules are the clients that may mount the export, each with its rule.
func (e *Export) Rules() []Client {
	all := e.Clients
	for _, match := range e.Allow {
		all = append(all[:len(all):len(all)], Client{Match: match, Rule: e.Rule})
	}
	if len(all) == 0 {
		all = []Client{{Match: "*", Rule: e.Rule}}
	}
	return all
}

// Cached reports whether what is read is kept on this host's disk.
func (e *Export) Cached() bool { return e.Cache != "" || e.CacheConfig != "" }

// AllReadOnly reports whether no client may change anything.
func (e *Export) AllReadOnly() bool {
	for _, client := range e.Rules() {
		if !IsSet(client.ReadOnly) {
			return false
		}
	}
	return true
}

// IsSet reports whether b is given, and true.
func IsSet(b *bool) bool { return b != nil && *b }
