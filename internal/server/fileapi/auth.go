package fileapi

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/crowd"
	"github.com/nfsbox/nfsbox/vfs"
)

// loopbackName is the name of the caller without a proof, in counts and logs.
const loopbackName = "loopback"

// authenticate returns the identity of a request's caller, or an error.
//
// A token has precedence over a certificate: a proxy may have one certificate and
// many users. A wrong token is refused, even beside a good certificate.
func (s *Server) authenticate(r *http.Request, remote netip.AddrPort) (*identity, error) {
	if shown, ok := r.Header["Authorization"]; ok {
		return s.byToken(r, remote, shown)
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		if who := s.callers.Load().bySubject(r.TLS.PeerCertificates[0]); who != nil {
			return who, sameSite(r)
		}
		return nil, unauthenticated("no caller has this certificate's subject")
	}
	if s.loopback == nil || !remote.Addr().IsLoopback() {
		return nil, unauthenticated("a bearer token or a client certificate is needed")
	}
	if !fromThisHost(r) {
		return nil, unauthenticated("without a token, requests must be made to a loopback address, and not by a web page")
	}
	if may, _ := r.Context().Value(mayLoopback{}).(bool); !may && s.o.MayLoopback != nil {
		return nil, unauthenticated("without a token, only the user who runs the server may call, and root")
	}
	return s.loopback, nil
}

// connKey is the key of a connection in its context: without its TLS, whose Close may wait.
type connKey struct{}

// mayLoopback is the key of what MayLoopback has said, in the context of a connection.
type mayLoopback struct{}

// asked asks MayLoopback about a connection that may come from this host, and puts the
// answer into the connection's context, beside what crowd needs.
func (s *Server) asked(ctx context.Context, c net.Conn) context.Context {
	ctx = crowd.Context(ctx, c)
	if over, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = over.NetConn()
	}
	ctx = context.WithValue(ctx, connKey{}, c)
	from, ok := c.RemoteAddr().(*net.TCPAddr)
	if s.o.MayLoopback == nil || s.loopback == nil || !ok || !from.IP.IsLoopback() {
		return ctx
	}
	return context.WithValue(ctx, mayLoopback{}, s.o.MayLoopback(c))
}

func (s *Server) byToken(r *http.Request, remote netip.AddrPort, shown []string) (*identity, error) {
	if !s.takesTokens(r, remote) {
		return nil, unauthenticated("a token that came in clear over a network is not taken, and should be replaced")
	}
	scheme, token, ok := strings.Cut(shown[0], " ")
	_, password, basic := r.BasicAuth() // the user name says nothing
	if basic {
		token = password
	}
	if !ok || len(shown) != 1 || !basic && !strings.EqualFold(scheme, "Bearer") {
		return nil, unauthenticated("Authorization must be one bearer token, or Basic with it as the password")
	}
	if who := s.callers.Load().byToken(strings.TrimSpace(token)); who != nil {
		if basic {
			return who, sameSite(r)
		}
		return who, nil
	}
	return nil, unauthenticated("not a token of any caller")
}

// takesTokens reports whether a token may come over the request's connection.
func (s *Server) takesTokens(r *http.Request, remote netip.AddrPort) bool {
	return r.TLS != nil || remote.Addr().IsLoopback() || s.o.Cleartext
}

// sameSite refuses what a page of another site has a browser change. Browsers show
// passwords and certificates for any page; a bearer token they show for none.
func sameSite(r *http.Request) error {
	if err := new(http.CrossOriginProtection).Check(r); err != nil {
		return connect.NewError(connect.CodePermissionDenied, err)
	}
	return nil
}

// fromThisHost keeps out web pages in a browser on this host. A page from another site
// sends an Origin, or says so (Sec-Fetch-Site); a page whose name was pointed at 127.0.0.1
// (DNS rebinding) sends that name as Host. The browser's user may look around: by an
// address that was typed, and by this server's own pages, which change nothing.
func fromThisHost(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	looks := (site == "none" || site == "same-origin") && (r.Method == http.MethodGet || r.Method == http.MethodHead)
	if r.Header.Get("Origin") != "" || site != "" && !looks {
		return false
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// view is all exports as the identity may see them from remote. A vfs.Caller is
// always given: without one the view would be the program's own.
func (s *Server) view(who *identity, remote netip.AddrPort) *export.View {
	as := who.as
	as.Client = remote.Addr().Unmap().String()
	return s.o.Table.For(remote, &as)
}

func unauthenticated(text string) error {
	return connect.NewError(connect.CodeUnauthenticated, &denial{Unauthenticated, text})
}

// loopbackOf is the identity of callers without a proof, or nil.
func loopbackOf(c *vfs.Caller) *identity {
	if c == nil {
		return nil
	}
	return &identity{name: loopbackName, as: *c}
}
