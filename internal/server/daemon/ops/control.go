package ops

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/view"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
)

// controlName is the socket, in the server's own folder, by which its operator lists clients
// and drops them. It has mode 0600, in a folder that only the server's user may enter:
// a process that can open it may ask.
const controlName = "control"

// Of a connection to it there is one request, an object of JSON on a line, and one
// answer, an object of JSON. Both have the number of their form.
const controlVersion = 1

const (
	// maxControlRequest is the longest request, in bytes; a longer one is an error.
	maxControlRequest = 4 << 10
	// maxControlAnswer is the longest answer that is read; a longer one is an error.
	maxControlAnswer = 256 << 20
	// maxControls is how many connections there are at once; more wait.
	maxControls = 8
	// controlTime is how long a connection may last. Then it is cut off.
	controlTime = 10 * time.Second
)

// What can be asked for.
const (
	ControlServer  = "server"
	ControlClients = "clients"
	ControlLocks   = "locks"
	ControlDrop    = "drop"
	ControlStatus  = "status"
)

// controlRequest is what is asked: Do, about Client, or about all if that is "".
type controlRequest struct {
	Version int    `json:"version"`
	Do      string `json:"do"`
	Client  string `json:"client,omitempty"`
}

// ControlAnswer is what a server says of itself.
type ControlAnswer struct {
	Version int             `json:"version"`
	Error   string          `json:"error,omitempty"`
	NoSuch  bool            `json:"no_such,omitempty"` // the error: there is no such client
	Server  *ControlledBy   `json:"server,omitempty"`
	Clients []ControlClient `json:"clients,omitempty"`
	Locks   []ControlLock   `json:"locks,omitempty"`
	Status  *view.Frame     `json:"status,omitempty"` // without points
}

// ControlledBy is the server that answers.
type ControlledBy struct {
	PID     int    `json:"pid"`
	URL     string `json:"url"`
	Version string `json:"version"`
}

// maxControlNames is how many names of a client an answer has. A client may hold its
// locks under as many as it likes.
const maxControlNames = 32

// ControlClient is a client, as nfsserver.ClientInfo has it. Times are of RFC 3339.
type ControlClient struct {
	Client      string     `json:"client"`
	Names       []string   `json:"names,omitempty"`      // as many as maxControlNames
	MoreNames   int        `json:"more_names,omitempty"` // how many are left out
	Connections int        `json:"connections"`
	UnderWay    int        `json:"under_way"`
	Calls       uint64     `json:"calls"`
	BytesIn     uint64     `json:"bytes_in"`
	BytesOut    uint64     `json:"bytes_out"`
	Locks       int        `json:"locks"`
	Waits       int        `json:"waits"`
	Shares      int        `json:"shares"`
	Files       int        `json:"files"`
	Since       *time.Time `json:"since,omitempty"`
	Active      *time.Time `json:"active,omitempty"`
}

// ControlLock is a lock, as nfsserver.LockInfo has it. FileID is the number of the
// file's inode, 0 if it is not there any more.
type ControlLock struct {
	Client    string `json:"client"`
	Name      string `json:"name"`
	Process   int32  `json:"process"`
	Handle    string `json:"handle"` // in hexadecimal digits
	FileID    uint64 `json:"fileid,omitempty"`
	Offset    uint64 `json:"offset"`
	Length    uint64 `json:"length"` // 0: to the end of the file
	Exclusive bool   `json:"exclusive"`
	Waits     bool   `json:"waits"`
}

// controlled is what this needs of a server.
type controlled interface {
	Clients() []nfsserver.ClientInfo
	Locks(client string) []nfsserver.LockInfo
	Drop(ctx context.Context, client string) error
}

// ControlOptions are what [OpenControl] takes. All are required.
type ControlOptions struct {
	Server controlled   // an nfsserver.Server
	Of     ControlledBy // what the server says of itself
	Files  vfs.FS       // the program's own view of all exports
	Frame  func() *view.Frame
	Folder string // the server's own; it is private and locked
	Log    *slog.Logger
}

// Controls answers the operator at a socket in the server's folder.
type Controls struct {
	srv   controlled
	of    ControlledBy
	files vfs.FS
	frame func() *view.Frame
	log   *slog.Logger

	l     net.Listener // nil: it is not there
	path  string
	ended context.Context
	end   context.CancelFunc
	busy  sync.WaitGroup
}

// OpenControl makes the socket. A server that cannot have it serves without: the log says
// so, and the result is nil.
func OpenControl(o ControlOptions) *Controls {
	c := &Controls{srv: o.Server, log: o.Log, files: o.Files, frame: o.Frame, path: filepath.Join(o.Folder, controlName), of: o.Of}
	if err := c.open(); err != nil {
		o.Log.Warn("nfsbox ctl cannot reach this server", slog.Any("error", err))
		return nil
	}
	return c
}

// open listens. What is left of a server that has ended is removed: the folder is
// locked, so that no other one is alive.
func (c *Controls) open() error {
	switch info, err := os.Lstat(c.path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s is there, and no socket", c.path)
	default:
		if err := os.Remove(c.path); err != nil {
			return err
		}
	}
	err := shortPath(c.path, func(short string) (err error) {
		c.l, err = net.Listen("unix", short)
		return err
	})
	if err != nil {
		return err
	}
	if u, ok := c.l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // the short path leads nowhere by then
	}
	if err := os.Chmod(c.path, 0o600); err != nil {
		return errors.Join(err, c.l.Close(), os.Remove(c.path))
	}
	c.ended, c.end = context.WithCancel(context.Background())
	c.busy.Go(c.serve)
	return nil
}

// Close ends all that is under way and removes the socket. A nil Controls has none.
func (c *Controls) Close() error {
	if c == nil {
		return nil
	}
	c.end()
	err := errors.Join(c.l.Close(), os.Remove(c.path))
	c.busy.Wait()
	return err
}

func (c *Controls) serve() {
	places := make(chan struct{}, maxControls)
	for {
		places <- struct{}{}
		nc, err := c.l.Accept()
		if err != nil {
			if c.ended.Err() == nil {
				c.log.Error("nfsbox ctl cannot reach this server any more", slog.Any("error", err))
			}
			return
		}
		c.busy.Go(func() {
			defer func() { <-places }()
			if err := c.talk(nc); err != nil {
				c.log.Debug("control", slog.Any("error", err))
			}
		})
	}
}

func (c *Controls) talk(nc net.Conn) (err error) {
	ctx, cancel := context.WithTimeout(c.ended, controlTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() }) // cut off; what it says is said already
	defer func() {
		if stop() {
			err = errors.Join(err, nc.Close())
		}
	}()
	line, err := bufio.NewReader(io.LimitReader(nc, maxControlRequest)).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("a request that does not end, or has more than %d bytes: %w", maxControlRequest, err)
	}
	out := bufio.NewWriter(nc)
	if err := json.NewEncoder(out).Encode(c.answer(ctx, line)); err != nil {
		return err
	}
	return out.Flush()
}

func (c *Controls) answer(ctx context.Context, line []byte) *ControlAnswer {
	a := &ControlAnswer{Version: controlVersion}
	var q controlRequest
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		a.Error = fmt.Sprintf("not a request: %v", err)
		return a
	}
	switch {
	case q.Version != controlVersion:
		a.Error = fmt.Sprintf("the request has form %d, and this server understands %d: use its own nfsbox", q.Version, controlVersion)
	case q.Do == ControlServer:
		a.Server = &c.of
	case q.Do == ControlClients:
		a.Clients = c.clients(q.Client)
	case q.Do == ControlLocks:
		a.Locks = c.locks(ctx, q.Client)
	case q.Do == ControlStatus:
		a.Status = c.frame()
	case q.Do == ControlDrop:
		c.drop(ctx, q.Client, a)
	default:
		a.Error = fmt.Sprintf("%.40q: no such request", q.Do)
	}
	return a
}

func (c *Controls) drop(ctx context.Context, client string, a *ControlAnswer) {
	if client == "" {
		a.Error = "whom?"
		return
	}
	if err := c.srv.Drop(ctx, client); err != nil {
		a.Error, a.NoSuch = err.Error(), errors.Is(err, nfsserver.ErrNoClient)
		return
	}
	c.log.Info("a client was dropped by the operator", slog.String("client", client))
}

func (c *Controls) clients(only string) []ControlClient {
	var out []ControlClient
	for _, x := range c.srv.Clients() {
		if only != "" && x.Client != only {
			continue
		}
		named := min(len(x.Names), maxControlNames)
		out = append(out, ControlClient{
			Client: x.Client, Names: x.Names[:named], MoreNames: len(x.Names) - named, Connections: x.Conns, UnderWay: x.UnderWay, Calls: x.Calls,
			BytesIn: x.BytesIn, BytesOut: x.BytesOut, Locks: x.Locks, Waits: x.Waits, Shares: x.Shares, Files: x.Files,
			Since: known(x.Since), Active: known(x.Active),
		})
	}
	return out
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (c *Controls) locks(ctx context.Context, client string) []ControlLock {
	var out []ControlLock
	for _, l := range c.srv.Locks(client) {
		x := ControlLock{
			Client: l.Client, Name: l.Name, Process: l.Process, Handle: hex.EncodeToString(l.File.Bytes()),
			Offset: l.Off, Length: l.Len, Exclusive: l.Exclusive, Waits: l.Waits,
		}
		// Without its number a lock is still one.
		if attr, err := c.files.GetAttr(ctx, l.File, vfs.MaskV3); err == nil {
			x.FileID = attr.FileID
		}
		out = append(out, x)
	}
	return out
}
