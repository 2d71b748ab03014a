package config

import (
	"reflect"
	"slices"
)

// API is the file API. Without an address to listen at there is none. Of its flags,
// --api-listen is also --api.
type API struct {
	Listen   []string `toml:"listen" aliases:"api" sep:"none" placeholder:"ADDRESS" help:"Or --api: serve the exports there over HTTP, too, as protobuf and JSON. May be repeated."`
	Callers  string   `toml:"callers" placeholder:"FILE" help:"Who may call: their tokens or certificates, and as whom. The file is closed to others (mode 0600); SIGHUP reads it again."`
	Loopback *User    `toml:"loopback,omitempty" placeholder:"UID:GID[,GROUP...]" help:"As whom programs of this host call that show neither. By default nobody; where a user who is not root serves DIR on loopback, without --config and --api-callers, that user's own programs and root's call as that user."`

	TLSCert     string `toml:"tls-cert" name:"tls-cert" placeholder:"FILE" help:"Speak TLS, with this certificate and what it depends on (PEM). SIGHUP reads it again."`
	TLSKey      string `toml:"tls-key" name:"tls-key" placeholder:"FILE" help:"The certificate's key (PEM), closed to everybody else (mode 0600, or 0640)."`
	TLSClientCA string `toml:"tls-client-ca" name:"tls-client-ca" placeholder:"FILE" help:"Whose certificates of clients are believed (PEM)."`
	Cleartext   bool   `toml:"cleartext" help:"Take tokens from other hosts without TLS: behind a proxy that has it."`

	Store string `toml:"store" placeholder:"DIR" help:"Keep files by their content (sha256:...) there; an empty directory becomes a store. Without it there are paths alone."`

	MaxCalls             int  `toml:"max-calls" default:"8192" help:"Calls under way, of which an upload keeps a file open: at most half of max-open-files. One more is refused."`
	MaxCallsPerCaller    int  `toml:"max-calls-per-caller" default:"4096" help:"Of them, those of one caller, which gets no more when it has as many as are free, either."`
	MaxMemory            Size `toml:"max-memory" default:"512MiB" help:"Memory of messages of calls under way. A call that needs more is refused."`
	MaxMemoryPerCaller   Size `toml:"max-memory-per-caller" default:"256MiB" help:"Of it, that of one caller, which gets no more when it has as much as is free, either."`
	MaxConnections       int  `toml:"max-connections" default:"16384" help:"Connections at once. One more takes the place of one of the client that has most, or is closed."`
	MaxFileSize          Size `toml:"max-file-size" default:"1TiB" help:"How large a file may become by a call."`
	Search               bool `toml:"search" default:"true" negatable:"" help:"Search files for those who can read them (Search), which costs processor time."`
	MaxSearches          int  `toml:"max-searches" default:"4" help:"Searches under way. One more is refused."`
	MaxSearchesPerCaller int  `toml:"max-searches-per-caller" default:"2" help:"Of them, those of one caller, which gets no more when it has as many as are free, either."`
	MaxSearchBytes       Size `toml:"max-search-bytes" default:"1TiB" help:"How much one search reads. There it ends, and says so."`
	MaxSearchEntries     int  `toml:"max-search-entries" default:"100000000" help:"How many names it lists. There it ends, and says so."`

	IdleTimeout Duration `toml:"idle-timeout" default:"30s" help:"How long a call waits for its client to send, or to take, a few KiB."`
	CallTimeout Duration `toml:"call-timeout" default:"1d" help:"How long a call may take in all."`
}

func defaultAPI() API {
	return API{
		MaxCalls: 8192, MaxCallsPerCaller: 4096, MaxMemory: 512 << 20, MaxMemoryPerCaller: 256 << 20,
		MaxConnections: 16384, MaxFileSize: 1 << 40,
		Search: true, MaxSearches: 4, MaxSearchesPerCaller: 2, MaxSearchBytes: 1 << 40, MaxSearchEntries: 100_000_000,
		IdleTimeout: Duration(defaultAPIIdle), CallTimeout: Duration(defaultAPICall),
	}
}

// On reports whether the file API is to be served.
func (a *API) On() bool { return len(a.Listen) > 0 }

// byHand says as which user programs of this host call if there is no configuration file and
// the command line names no caller: as u, the user who has started the server. Programs of
// other users are refused where the kernel reports users: see User.Only.
func (a *API) byHand(u *User) {
	if a.On() && a.Loopback == nil && a.Callers == "" && !slices.ContainsFunc(a.Listen, Elsewhere) {
		a.Loopback = u
	}
}

func (a *API) check(p *problems) {
	if !a.On() {
		blank := *a
		if blank.Listen = nil; !reflect.DeepEqual(blank, defaultAPI()) {
			p.add("api.listen", "no address to listen at: without one the rest of [api] means nothing")
		}
		return
	}
	p.addresses("api.listen", a.Listen)
	a.checkCallers(p)
	p.within("api.max-calls", int64(a.MaxCalls), 1, maxNumber)
	p.within("api.max-calls-per-caller", int64(a.MaxCallsPerCaller), 1, int64(max(a.MaxCalls, 1)))
	p.size("api.max-memory", a.MaxMemory, minAPIMemory, maxSize)
	p.size("api.max-memory-per-caller", a.MaxMemoryPerCaller, minAPIMemory, max(a.MaxMemory, minAPIMemory))
	p.within("api.max-connections", int64(a.MaxConnections), 1, maxNumber)
	p.size("api.max-file-size", a.MaxFileSize, 1, maxSize)
	p.within("api.max-searches", int64(a.MaxSearches), 1, maxNumber)
	p.within("api.max-searches-per-caller", int64(a.MaxSearchesPerCaller), 1, int64(max(a.MaxSearches, 1)))
	p.size("api.max-search-bytes", a.MaxSearchBytes, 1, maxSize)
	p.within("api.max-search-entries", int64(a.MaxSearchEntries), 1, maxEntries)
	p.positive("api.idle-timeout", a.IdleTimeout)
	p.positive("api.call-timeout", a.CallTimeout)
}

// checkCallers refuses an API without callers, and a certificate without its key.
func (a *API) checkCallers(p *problems) {
	if a.Loopback == nil && a.Callers == "" {
		p.add("api.listen", "it is not said who may call: name a file of callers and their tokens (--api-callers FILE; callers in [api]), or say as whom every program of this host calls (--api-loopback UID:GID; loopback in [api])")
	}
	switch {
	case a.TLSCert == "" && a.TLSKey != "":
		p.add("api.tls-key", "a key without a certificate (--api-tls-cert; tls-cert in [api])")
	case a.TLSCert != "" && a.TLSKey == "":
		p.add("api.tls-cert", "a certificate without its key (--api-tls-key; tls-key in [api])")
	case a.TLSClientCA != "" && a.TLSCert == "":
		p.add("api.tls-client-ca", "certificates of clients take TLS (--api-tls-cert, --api-tls-key; tls-cert, tls-key in [api])")
	case a.TLSClientCA != "" && a.Callers == "":
		p.add("api.tls-client-ca", "it is not said who the subjects of certificates are (--api-callers; callers in [api])")
	}
}
