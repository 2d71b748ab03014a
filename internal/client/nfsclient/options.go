package nfsclient

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
)

const (
	// nfsPort is NFS's port unless the portmapper says otherwise.
	nfsPort = 2049

	// maxMountReply bounds the replies of MOUNT and the portmapper, in bytes. A longer list
	// of exports is an error.
	maxMountReply = 8 << 20

	// maxLockReply bounds the replies of NLM, in bytes. The longest have two strings of 1 KiB.
	maxLockReply = 8 << 10

	// maxNFSReply bounds the replies of NFS, in bytes beside the count that a READ, READDIR or
	// READDIRPLUS asks for. The longest others are access control lists, of 25 KB, and links. A
	// longer one closes the connection. A second one of the same call is an error.
	maxNFSReply = 128 << 10

	// DefaultConns is the default for the most connections: one for calls that must not
	// queue behind bulk, and three for bulk, which is as much as one fast link needs. They
	// are made when needed, so that a client with little to do has one. More is not always
	// better: some servers do worse with 16 of one client, and reserved ports are scarce.
	DefaultConns = 4

	// maxClimb bounds how many parents of a path are tried. At the bound the path does not
	// mount: the deeper directory must be exported, or a shorter path given.
	maxClimb = 64

	// maxDial bounds the first connection to a port, as package oncrpc bounds later ones.
	// The system alone would wait for two minutes, and a caller's dialer perhaps for ever.
	// At the bound the connection has failed.
	maxDial = 30 * time.Second
	// minDial is its least time, however short the patience of a call is.
	minDial = 5 * time.Second

	// seenTime bounds the question whether the server looks at the path. Without an answer
	// it is assumed to.
	seenTime = 5 * time.Second

	// limitsTime bounds how long Mount waits for FSINFO, which it sends alongside other
	// calls. Without an answer the first call that needs the limits asks again.
	limitsTime = 5 * time.Second

	// umountTime bounds how long Close waits for UMNT, which only removes an entry of a
	// list that no server relies on.
	umountTime = 2 * time.Second
	// leaveTime is the same bound for Leave.
	leaveTime = 500 * time.Millisecond
)

// SourcePort says which local ports connections are made from.
type SourcePort uint8

// Servers that export with "secure", their default, accept calls only from ports that only the
// superuser may use.
const (
	PortAuto     SourcePort = iota // a reserved one if the process may, else any
	PortReserved                   // between 512 and 1023, or fail
	PortAny
)

// Options say what to mount and how. Host and Path are required.
type Options struct {
	Host string // a name or an address; IPv6 without brackets
	Path string // absolute, '/' between its parts, no ".."
	// Export is the beginning of Path that MOUNT is asked for; the rest is looked up in
	// it. "": as much of Path as the server mounts.
	Export string

	Version   int    // of NFS: 3, or 0 for the best available
	Port      uint16 // of NFS and MOUNT; 0: ask the portmapper
	NFSPort   uint16 // of NFS; 0: Port
	MountPort uint16 // of MOUNT; 0: Port, then the portmapper
	LockPort  uint16 // of NLM; 0: likewise

	FS v3.Options // the caller, sizes, read-only

	// Dial makes connections; nil is TCP with SourcePort, Interface and SynCount, which
	// another Dial does not use.
	Dial       func(ctx context.Context, network, address string) (net.Conn, error)
	SourcePort SourcePort
	Interface  string // bind to this network interface (Linux)
	SynCount   int    // attempts of the kernel to connect (Linux, TCP_SYNCNT); 0: its own choice

	// A call is tried for Timeout times Retries+1, whether it waits for a reply or for a
	// connection; if FS.Hard, until its context ends.
	Timeout   time.Duration // of one try of a call; 0: that of package oncrpc
	Retries   int           // 0: that of package oncrpc; negative: none
	DialTries int           // for a call that needs a new connection; 0: as its patience allows
	DialOnce  bool          // a lost connection to NFS is not made again

	// Conns is the most connections to NFS, up to oncrpc.MaxConns; 0 is
	// [DefaultConns]. DialOnce allows one.
	Conns int

	// Log receives what a user needs to know of a server that does not answer, and other
	// events at debug level; nil: nothing is logged.
	Log *slog.Logger

	// Silent, if set, is called when a port of the server is silent, and when it sends
	// again, as in oncrpc.ClientOptions, from the first connection on. Silence.Server is
	// its host and port. Calls may be concurrent.
	Silent func(oncrpc.Silence)

	// Rand fills p with random bytes; nil is crypto/rand.
	Rand func(p []byte)
}

func (o *Options) fill() error {
	if o.Rand == nil {
		o.Rand = func(p []byte) { _, _ = rand.Read(p) } // crypto/rand.Read never fails
	}
	if o.FS.Rand == nil {
		o.FS.Rand = o.Rand
	}
	if o.FS.Machine == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("nfs: name of this host: %w", err)
		}
		o.FS.Machine = name[:min(len(name), oncrpc.MaxMachineName)]
	}
	o.Conns = cmp.Or(o.Conns, DefaultConns)
	if o.DialOnce {
		o.Conns = 1
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	switch {
	case o.Conns < 0 || o.Conns > oncrpc.MaxConns:
		return fmt.Errorf("nfs: %d connections, at most %d allowed", o.Conns, oncrpc.MaxConns)
	case o.Host == "":
		return errors.New("nfs: no host")
	case o.Version != 0 && o.Version != 3:
		return fmt.Errorf("nfs: version %d: use version 3: %w", o.Version, errors.ErrUnsupported)
	}
	if err := o.checkExport(); err != nil {
		return err
	}
	return checkControl(o)
}

// dialTime bounds the first connection to a port: a call's patience, but at least minDial and at
// most maxDial.
func (o *Options) dialTime() time.Duration {
	try, tries := cmp.Or(o.Timeout, oncrpc.DefaultTimeout), max(cmp.Or(o.Retries, oncrpc.DefaultRetries), 0)+1
	if o.FS.Hard || tries > int(maxDial/try) {
		return maxDial
	}
	return max(try*time.Duration(tries), minDial)
}

// auth is the credential for MOUNT and NULL: that of the file system's caller.
func (o *Options) auth() (oncrpc.Auth, error) {
	a := oncrpc.AuthSys{Machine: o.FS.Machine, UID: o.FS.Caller.UID, GID: o.FS.Caller.GID}
	return a.Auth()
}
