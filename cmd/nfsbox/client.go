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
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/silence"
)

// loadFlags say how hard servers are used. They stand for all URLs of a command,
// and above what those say.
type loadFlags struct {
	MaxLoad  string `placeholder:"auto|N" help:"Calls under way at once, of each of metadata, reads and writes; auto finds out what is best for the server."`
	NConnect string `name:"nconnect" placeholder:"N" help:"The most connections to a server, 1 to 16; they are made when needed."`
	localFlags
	cacheFlags
}

// localFlags say whether the network is left out where a server is on this host.
type localFlags struct {
	LocalIO    string `name:"localio" placeholder:"auto|off|require|trusted" help:"Whether files of a server on this host are read and written without the network: if it can be done (auto), never, or else fail; trusted hands them to other programs, too."`
	LocalIODir string `name:"localio-dir" placeholder:"DIR" type:"path" help:"Where the socket of a server on this host is looked for (default: /run/nfsbox and $XDG_RUNTIME_DIR/nfsbox)."`
}

// cacheFlags say how a cache is configured that a URL asks for.
type cacheFlags struct {
	CacheConfig string `name:"cache-config" placeholder:"FILE" type:"path" help:"The configuration of the cache that a URL asks for (fsc, cache=DIR), as cachefilesd.conf(5) has it (default for root: /etc/cachefilesd.conf)."`
}

func (f *cacheFlags) options() []nfsbox.Option {
	if f.CacheConfig == "" {
		return nil
	}
	return []nfsbox.Option{nfsbox.WithCacheConfig(f.CacheConfig)}
}

// clientFlag is a flag that means what it means in a URL.
type clientFlag struct {
	name, value string
	option      func(u *nfsbox.URL) nfsbox.Option
}

func (f *loadFlags) options() ([]nfsbox.Option, error) {
	local, err := f.localFlags.options()
	if err != nil {
		return nil, err
	}
	load, err := clientOptions(
		clientFlag{"max-load", f.MaxLoad, func(u *nfsbox.URL) nfsbox.Option { return nfsbox.WithMaxLoad(u.MaxLoad) }},
		clientFlag{"nconnect", f.NConnect, func(u *nfsbox.URL) nfsbox.Option { return nfsbox.WithConnections(u.Connections) }},
	)
	return slices.Concat(load, local, f.cacheFlags.options()), err
}

func (f *localFlags) options() ([]nfsbox.Option, error) {
	return clientOptions(
		clientFlag{"localio", f.LocalIO, func(u *nfsbox.URL) nfsbox.Option { return nfsbox.WithLocalIO(u.LocalIO) }},
		clientFlag{"localio-dir", f.LocalIODir, func(u *nfsbox.URL) nfsbox.Option { return nfsbox.WithLocalIODir(u.LocalIODir) }},
	)
}

func clientOptions(flags ...clientFlag) (opts []nfsbox.Option, err error) {
	for _, flag := range flags {
		if flag.value == "" {
			continue
		}
		u, err := nfsbox.ParseURL("nfs://host/?" + flag.name + "=" + escapeArg(flag.value))
		if err != nil {
			return nil, &exitError{status: exitUsage, err: fmt.Errorf("--%s: %w", flag.name, err)}
		}
		opts = append(opts, flag.option(u))
	}
	return opts, nil
}

// escapeArg writes a value as an argument of a URL has it, where '+' is a plus.
func escapeArg(v string) string { return strings.ReplaceAll(url.QueryEscape(v), "+", "%20") }

// clientFlags are those of commands that use servers.
type clientFlags struct {
	loadFlags
	Stats   bool `help:"Print in the end, to stderr, what the client has counted: calls, errors, bytes and times of each procedure."`
	table   string
	watched []nfsbox.Option // of the command
	silent  silence.Watch   // the same
}

// reportSilence has all places tell w of silence.
func (f *clientFlags) reportSilence(e *env, w silence.Watch) { f.watched, f.silent = watched(e, w), w }

func (f *clientFlags) place(follow bool) (place.Options, error) {
	opts, err := f.options()
	return place.Options{Follow: follow, Dial: append(opts, f.watched...), Silent: f.silent.Bucket}, err
}

// mountFlags are those of commands that go down into trees.
type mountFlags struct {
	OneFileSystem bool `name:"one-file-system" short:"x" help:"Take directories that are on another file system than SOURCE, or that something of this host is mounted on, for empty ones, and count them."`
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
	b.WriteString(localText(&s.LocalIO))
	if s.Cache.State != "off" {
		b.WriteString(cacheText(&s.Cache))
	}
	if a := &s.Attrs; a.Hits+a.Misses > 0 {
		fmt.Fprintf(&b, "%11s: %s questions were answered from what is kept, %s by the server\n", "attributes", progress.Count(a.Hits), progress.Count(a.Misses))
	}
	return b.String()
}

// localText says what has left the network out, or why nothing has.
func localText(s *nfsbox.LocalIOStats) string {
	text := fmt.Sprintf("%11s: %s", "local I/O", s.State)
	switch {
	case s.State == "remote" && s.Why == "": // it ended before that
		text += " (not found out yet)"
	case s.Why != "":
		text += " (" + progress.Clean(s.Why) + ")"
	}
	if s.Handshakes > 0 {
		text += fmt.Sprintf("; %s reads of %s, %s writes of %s, %s commits by %s descriptors; %s calls over the network; %s descriptors taken back",
			progress.Count(s.Reads), progress.Size(s.BytesRead), progress.Count(s.Writes), progress.Size(s.BytesWritten), progress.Count(s.Commits),
			progress.Count(s.Opens), progress.Count(s.Fallbacks), progress.Count(s.Revoked))
	}
	return text + "\n"
}

// cacheText says what the cache has done, in all its runs.
func cacheText(s *nfsbox.CacheStats) string {
	state := fmt.Sprintf("%11s: %s", "cache", s.State)
	if s.Why != "" {
		state += " (" + progress.Clean(s.Why) + ")"
	}
	return state + fmt.Sprintf("; %s of %s; in all runs: %s hits of %s, %s misses, %s kept, %s stale, %s bad checksums\n",
		filesText(s.Entries), progress.Size(uint64(s.Bytes)), progress.Count(s.Hits), progress.Size(s.BytesHit),
		progress.Count(s.Misses), progress.Size(s.BytesFilled), progress.Count(s.Stale), progress.Count(s.BadChecksums))
}

// filesText is how many files a cache has.
func filesText(n int) string {
	if n == 1 {
		return "1 file"
	}
	return progress.Count(uint64(n)) + " files"
}

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

func took(d time.Duration) string { return progress.Micros(float64(d) / float64(time.Microsecond)) }

// watched are the options of all commands that dial: what tells w of silent servers, what the cache has to say, and that the
// command's end stops the client.
func watched(e *env, w silence.Watch) []nfsbox.Option {
	return []nfsbox.Option{w.Dial, nfsbox.WithStop(e.ctx), nfsbox.WithCacheNotes(func(note string) {
		// There is nowhere to report an error of stderr.
		_, _ = io.WriteString(e.stderr, "nfsbox: "+progress.Clean(note)+"\n")
	})}
}
