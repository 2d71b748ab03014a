package fileapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"hash/maphash"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/server/crowd"
	"github.com/nfsbox/nfsbox/internal/server/object"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// Options are what a Server serves, to whom, and how much of it.
type Options struct {
	// Table is what is served by path.
	Table *export.Table
	// Store is what is served by content; nil: nothing, which is unimplemented.
	// Every caller may read and add to it, and none may delete from it.
	Store object.Store
	// Callers may call with a token or a client certificate; nil: there are none.
	Callers *Callers
	// Loopback is the user of calls from this host without either; nil: they are refused.
	Loopback *vfs.Caller
	// MayLoopback, if set, says of a connection from this host whether the program at
	// its far end may call as Loopback. It is asked when the connection is made, by
	// Serve alone, and must not read or write. nil: all may.
	MayLoopback func(net.Conn) bool
	// Whose, if set, names the client of a connection, for Limits.Conns. It is asked
	// when the connection is made, by Serve alone, and must not read or write. nil: the
	// address.
	Whose func(net.Conn) string
	// TLS, if not nil, is what Serve speaks. For client certificates it has ClientCAs
	// and, as ClientAuth, tls.VerifyClientCertIfGiven or tls.RequireAndVerifyClientCert.
	TLS *tls.Config
	// Cleartext takes tokens without TLS from other hosts too. For a server behind
	// a proxy on another host that ends TLS, on a network that nobody can listen to.
	Cleartext bool
	// NoSearch: searches are unimplemented.
	NoSearch bool
	Limits   Limits
	// Ledger is the file that remembers where uploads are under way, so that what a
	// crash leaves of them is swept at the next start; "": nothing is.
	Ledger string
	// Report receives errors for the operator that clients are not told. It must not
	// block. nil discards them.
	Report func(error)
	// Observe, if set, is called for each request that took Slow or longer, and for
	// those that Sample picks. The goroutine that has served the request calls it after
	// the answer is written. It must not wait. It is not called any more after Close and
	// Wait have returned.
	Observe func(Served)
	// Denied, if set, is told of each request that is denied before it is executed. It must
	// not wait.
	Denied func(Denied)
	// Slow: 0 is for no request.
	Slow time.Duration
	// Sample, if set, says once for each request whether Observe is called for it. Many
	// goroutines call it at once. It must be fast, and allocate nothing.
	Sample func() bool
	// Now is the clock. nil: time.Now.
	Now func() time.Time
	// Rand fills its argument with randomness, which nobody may foresee. Many goroutines
	// call it at once. nil: crypto/rand.
	Rand func([]byte)
}

// Server is the server of the file API. All methods may be called concurrently.
type Server struct {
	o        Options
	admit    admission
	callers  atomic.Pointer[Callers]
	loopback *identity
	temps    *temporaries
	counts   counts
	names    names
	buffers  bufpool.Pool
	handler  http.Handler // of the calls
	errors   *connect.ErrorWriter
	http     http.Server
	conns    *crowd.Crowd
}

// New makes a server. With a Ledger, it first sweeps the temporaries that uploads have
// left at a crash. What it cannot sweep it reports, and goes on.
func New(ctx context.Context, o Options) (*Server, error) {
	if o.Table == nil {
		return nil, errors.New("file API: there is nothing to serve: no exports")
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		// It never fails: it ends the program instead.
		o.Rand = func(p []byte) { _, _ = rand.Read(p) }
	}
	if o.Whose == nil {
		o.Whose = addressOf
	}
	o.Limits.fill()
	s := &Server{o: o, loopback: loopbackOf(o.Loopback)}
	s.conns = crowd.New(o.Limits.Conns, s.whose)
	s.names.seed = maphash.MakeSeed()
	s.admit = admission{limits: &s.o.Limits, buffers: &s.buffers, clients: make(map[string]*client)}
	s.SetCallers(o.Callers)
	var err error
	if s.temps, err = newTemporaries(ctx, &s.o); err != nil {
		return nil, err
	}
	options := []connect.HandlerOption{
		connect.WithReadMaxBytes(maxMessage),
		// Compressed requests cost the server far more than the client, and files that
		// are worth it are compressed already.
		connect.WithCompression("gzip", nil, nil),
		connect.WithInterceptors(&interceptor{s}),
	}
	for _, name := range jsonNames {
		options = append(options, connect.WithCodec(name))
	}
	_, s.handler = pb.NewFileServiceHandler(service{s}, options...)
	s.errors = connect.NewErrorWriter(options...)
	s.configure()
	return s, nil
}

// SetCallers replaces the callers that are admitted. Calls in progress go on.
func (s *Server) SetCallers(c *Callers) {
	if c == nil {
		c = &Callers{}
	}
	s.callers.Store(c)
}

// configure sets up what stands between the connections and ServeHTTP.
func (s *Server) configure() {
	s.http = http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       keepAlive,
		MaxHeaderBytes:    maxHeader,
		Protocols:         new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          streamsPerConn,
			MaxReceiveBufferPerStream:     streamWindow,
			MaxReceiveBufferPerConnection: connWindow,
			// A stream's own deadline does not end the wait of one whose client does not read
			// the socket: the frame that ends it waits for room as well.
			WriteByteTimeout: s.o.Limits.Idle,
		},
		// Errors of clients before a request are not worth a line each.
		ErrorLog: log.New(io.Discard, "", 0),
		// net/http's own answer to "OPTIONS *" reads a body, as slowly as it comes.
		DisableGeneralOptionsHandler: true,
		ConnState:                    s.count,
		ConnContext:                  s.asked,
		TLSConfig:                    s.o.TLS,
	}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetHTTP2(s.o.TLS != nil)
	s.http.Protocols.SetUnencryptedHTTP2(s.o.TLS == nil)
}

// whose names the client of a connection for crowd, and is "" if no rule of an export admits its
// address. Where there is content, which no rule is about, there are no such clients.
func (s *Server) whose(c net.Conn) string {
	// An address that cannot be read is the zero AddrPort: a Unix socket's.
	remote, _ := netip.ParseAddrPort(c.RemoteAddr().String())
	if s.o.Store == nil && !s.o.Table.Gate(remote).Admits() {
		return ""
	}
	return cmp.Or(s.o.Whose(c), "unknown")
}

// count closes a connection at the bound. It is counted as denied before its client can
// notice.
func (s *Server) count(c net.Conn, state http.ConnState) {
	if out := s.conns.State(c, state); out != nil {
		s.counts.denied[TooMany].Add(1)
		_ = out.Close() // which it is, whatever that says
	}
}

func addressOf(c net.Conn) string {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.IP.String()
	}
	return ""
}

// Serve answers on the connections that l accepts, until Shutdown or Close, which
// it returns as http.ErrServerClosed. It closes l.
func (s *Server) Serve(l net.Listener) error {
	if s.o.TLS != nil {
		return s.http.ServeTLS(l, "", "")
	}
	return s.http.Serve(l)
}

// Shutdown closes the listeners, lets calls in progress end, and returns when they
// have or when ctx ends; then Close ends them. A call whose client makes no progress for
// three seconds (Limits.Idle) is deadline_exceeded. No call begins any more when it has
// returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.admit.hurry()
	ended := make(chan error, 1)
	go func() { ended <- s.http.Shutdown(ctx) }()
	err := s.drained(ended)
	s.admit.close()
	return errors.Join(err, s.temps.close())
}

// Close closes the listeners and all connections, and no call begins any more.
// Uploads in progress fail, and their temporaries are removed as their calls end,
// shortly after: Wait waits for that.
func (s *Server) Close() error {
	s.admit.close()
	return errors.Join(s.http.Close(), s.temps.close())
}

// Wait waits until no call is in progress, or returns the cause of ctx's end. After
// Close, or a Shutdown that has returned, no call begins any more: the file systems and
// the store are then not used, and Observe is not called.
func (s *Server) Wait(ctx context.Context) error { return s.admit.wait(ctx) }

// ServeHTTP answers one request. It is for another http.Server, which must then bound
// connections and headers as Serve does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// An address that cannot be read is the zero AddrPort: a Unix socket's.
	remote, _ := netip.ParseAddrPort(r.RemoteAddr)
	q := &request{start: s.o.Now(), procedure: procedureOf(r.Method, r.URL.Path), remote: remote}
	if err := s.enter(q, r); err != nil {
		s.deny(w, r, q, err)
		return
	}
	defer q.call.leave()
	defer s.conns.Serves(r.Context())()
	s.begins(q)
	defer s.ended(q)
	ctx, cancel := context.WithTimeout(r.Context(), s.o.Limits.Total)
	defer cancel()
	ctx = context.WithValue(ctx, requestKey{}, q)
	p := s.newPacer(w, r, q.call)
	q.pacer = p
	defer p.end()
	body, paced := &pacedBody{body: r.Body, p: p}, &pacedWriter{ResponseWriter: w, p: p}
	r = r.WithContext(ctx)
	r.Body = body
	if !isCall(r.URL.Path) {
		service{s}.files(ctx, paced, r)
		return
	}
	s.handler.ServeHTTP(paced, r)
	if !q.known {
		q.guess()
	}
}

// enter finds the identity of a request, and admits it.
func (s *Server) enter(q *request, r *http.Request) (err error) {
	if q.who, err = s.authenticate(r, q.remote); err != nil {
		return err
	}
	q.call, err = s.admit.enter(q.who.name)
	return err
}

// deny answers a request that is not admitted. The connection is closed, so the rest of
// the request need not be read.
func (s *Server) deny(w http.ResponseWriter, r *http.Request, q *request, err error) {
	_ = q.outcome(err) // which is answered here
	s.counts.denied[q.why].Add(1)
	if s.o.Denied != nil {
		s.o.Denied(Denied{Client: q.remote, Method: r.Method, Path: r.URL.Path, Err: err})
	}
	if q.why == Unauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
		// net/http reads some of what is left of the request, as slowly as it comes. A
		// connection without deadlines is a test's.
		_ = http.NewResponseController(w).SetReadDeadline(s.o.Now().Add(min(s.o.Limits.Idle, deniedTime)))
	}
	if isCall(r.URL.Path) {
		_ = s.errors.Write(w, r, err) // if this fails, the client is gone
	} else {
		if q.why == Unauthenticated && s.takesTokens(r, q.remote) {
			w.Header().Add("WWW-Authenticate", `Basic realm="nfsbox", charset="UTF-8"`)
		}
		s.refused(w, r, err)
	}
	s.admit.tell(func() { s.observe(q, s.o.Now().Sub(q.start)) })
}

// requestKey is the key of a call's request in its context.
type requestKey struct{}

func requestOf(ctx context.Context) *request { return ctx.Value(requestKey{}).(*request) }

// service has the procedures, so that they are not methods of Server.
type service struct{ *Server }
