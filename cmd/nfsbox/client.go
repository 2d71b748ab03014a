package main

import (
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/place"
	"github.com/nfsbox/nfsbox/internal/progress"
)

// loadFlags say how hard servers are used. They stand for all URLs of a command,
// and above what those say.
type loadFlags struct {
	MaxLoad  string `placeholder:"auto|N" help:"Calls under way at once, of each of metadata, reads and writes; auto finds out what is best for the server."`
	NConnect string `name:"nconnect" placeholder:"N" help:"The most connections to a server, 1 to 16; they are made when needed."`
}

// options are what the flags, as they stand, ask of a client.
func (f *loadFlags) options() ([]nfsbox.Option, error) {
	var opts []nfsbox.Option
	for _, flag := range [...]struct {
		name, value string
		option      func(u *nfsbox.URL) nfsbox.Option
	}{
		{"max-load", f.MaxLoad, func(u *nfsbox.URL) nfsbox.Option { return nfsbox.WithMaxLoad(u.MaxLoad) }},
		{"nconnect", f.NConnect, func(u *nfsbox.URL) nfsbox.Option { return nfsbox.WithConnections(u.Connections) }},
	} {
		if flag.value == "" {
			continue
		}
		// They mean what they mean in a URL.
		u, err := nfsbox.ParseURL("nfs://host/?" + flag.name + "=" + url.QueryEscape(flag.value))
		if err != nil {
			return nil, &exitError{status: exitUsage, err: fmt.Errorf("--%s: %w", flag.name, err)}
		}
		opts = append(opts, flag.option(u))
	}
	return opts, nil
}

// clientFlags are those of commands that use servers.
type clientFlags struct {
	loadFlags
	Stats bool `help:"Print in the end, to stderr, what the client has counted: calls, errors, bytes and times of each procedure."`
	table string
}

// place is how such a command opens its places.
func (f *clientFlags) place(e *env, follow bool) (place.Options, error) {
	opts, err := f.options()
	return place.Options{Rand: e.rand, Follow: follow, Dial: opts}, err
}

// count takes over what a place has counted, before it is closed.
func (f *clientFlags) count(p *place.Place) {
	if !f.Stats {
		return
	}
	if s, ok := p.Stats(); ok {
		f.table += statsText(p.Text, &s)
	}
}

// print prints what has been counted. A table that cannot be written has nowhere
// else to go.
func (f *clientFlags) print(e *env) { _, _ = io.WriteString(e.stderr, f.table) }

// statsText is a client's counters as a table.
func statsText(name string, s *nfsbox.Stats) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s RPCs, %s sent again, %s timed out, %s reconnects, %s sent, %s received\n", progress.Clean(name),
		progress.Count(s.RPCs), progress.Count(s.Retransmits), progress.Count(s.Timeouts), progress.Count(s.Reconnects),
		progress.Size(s.BytesOut), progress.Size(s.BytesIn))
	// Errors of a strings.Builder do not exist.
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "procedure\tcalls\tfailed\tsent again\tsent\treceived\twait\t50%\t99%\tlongest\t ")
	for i := range s.Procs {
		_, _ = fmt.Fprintln(w, procText(&s.Procs[i]))
	}
	_ = w.Flush()
	for _, l := range s.Load {
		fmt.Fprintf(&b, "%11s: in the end at most %d calls at once; %s had to wait; the server was too busy or silent %s times\n",
			l.Class, l.Limit, progress.Count(l.Waits), progress.Count(l.BackOffs))
	}
	return b.String()
}

// procText is a procedure's row.
func procText(p *nfsbox.ProcStats) string {
	failed, kinds := p.Errors, ""
	for _, status := range slices.Sorted(maps.Keys(p.Statuses)) {
		failed += p.Statuses[status]
		kinds += fmt.Sprintf(" %s: %d", status, p.Statuses[status])
	}
	queued, latency := nfsbox.Distribute(p.Queued), nfsbox.Distribute(p.Latency)
	return strings.Join([]string{
		p.Name, progress.Count(p.Calls), progress.Count(failed), progress.Count(p.Retransmits),
		progress.Size(p.BytesOut), progress.Size(p.BytesIn), took(queued.P50), took(latency.P50), took(latency.P99), took(latency.Max), kinds,
	}, "\t")
}

// took writes a duration in a unit that suits it.
func took(d time.Duration) string { return micros(float64(d) / float64(time.Microsecond)) }
