package main

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/bench"
)

// benchCmd measures servers: a command for each verb.
type benchCmd struct {
	Null    benchNullCmd    `cmd:"" help:"Measure NULL: what the wire and RPC cost."`
	Getattr benchGetattrCmd `cmd:"" help:"Measure GETATTR of a file or directory."`
	Read    benchReadCmd    `cmd:"" help:"Measure READ."`
	Write   benchWriteCmd   `cmd:"" help:"Measure WRITE and COMMIT."`
	List    benchListCmd    `cmd:"" help:"Measure READDIRPLUS of a directory."`

	Upload   benchUploadCmd   `cmd:"" help:"Measure the storing of files, which stay."`
	Download benchDownloadCmd `cmd:"" help:"Measure the reading of files that upload has stored, and compare every byte."`
	Exist    benchExistCmd    `cmd:"" help:"Measure the looking for files that upload has stored."`
	Delete   benchDeleteCmd   `cmd:"" help:"Measure the removing of files that upload has stored."`
	Clean    benchCleanCmd    `cmd:"" help:"Remove what upload has left."`
	Echo     benchEchoCmd     `cmd:"" help:"Measure what the protocol alone costs."`
	Compare  benchCompareCmd  `cmd:"" help:"Measure two targets in turns, and print ratios."`
}

func (*benchCmd) Help() string {
	return `Measures any NFS server, and nfsbox's file API. -c is how many callers work at once, -n how many operations they
do, or --duration how long. A warm-up comes first, and does not count. The report has operations and bytes per
second, how long operations took (mean, median, 90, 99 and 99.9 %, the longest), and what they cost this
process in processor time and memory. What they cost the server is reported if it runs on this host
(--server-pid) or is an nfsbox (--server-metrics).

As many calls are under way as there are callers: without --max-load, or max-load= in the URL, the
client's own limit does not adapt. Connections are the client's choice unless --nconnect says more.

What is measured is the network. On the host of an nfsbox the verbs read, write, upload and download use local
I/O if --localio=auto, require or trusted says so; an operation of the first two is then one read or write of a
file. With --through read and write use it, too, as applications do. All other verbs call procedures, and have no use for it.

The verbs upload, download, exist, delete, clean and echo have the same meaning whatever URL is: of
NFS, or http://host:port/export/dir of a file API (https:// with --ca), in protobuf, JSON or by plain
HTTP (--encoding).
The others call procedures of NFS. bench compare measures two targets in turns.

An operation that fails is counted by what went wrong, and the others go on. The run ends when nothing succeeds
any more: after 16 failures of each caller, or one that has taken 30 seconds or more, as when the client
gives a silent server up (timeo= and retrans= in the URL; three minutes).

Files that are made have names that begin with "nfsbox-bench-" and are removed in the end, also
after an interruption, but for those of upload, which are for delete or clean. What a server that does
not answer keeps from being removed is named. Nothing else on the server is changed.

With --json the line of a second has "type":"progress", and since the start of the measurement
seconds, ops, errors, bytes and entries; of this second ops_per_second, bytes_per_second,
entries_per_second and latency, which has unit ("us"), mean, p50, p90, p99, p999 and max (of all time).
The last line has "type":"summary": verb, url, concurrency, size; complete (false if the run was cut
short), ops, errors, faults (kind, count and an example of each), warmup_ops, the same figures of the
whole, commits; cpu with client_us_per_op, client_user_seconds, client_system_seconds and, with
--server-pid, server_us_per_op and server_seconds; allocs_per_op, alloc_bytes_per_op; rpcs,
retransmits, timeouts, reconnects, wire_bytes_in, wire_bytes_out; client_calls, by procedure; and of
the end connections and load, the client's limits of metadata, reads and writes. Where the server's
process is seen, server_threads; with --server-metrics also server_ops, server_calls and counts_match:
the server has counted each of our calls, as many operations as ops and errors say, and nobody else's.
Without a measurement there is no summary. docs/bench.md says more.

With --csv the header names the columns: seconds, rates by the second, and times in microseconds (_us).

  nfsbox bench null -c 64 nfs://127.0.0.1:2049/
  nfsbox bench read -c 8 -n 10000 --size 64K nfs://filer/export/big.iso
  nfsbox bench write -c 4 --duration 30s --json nfs://filer/data | tail -n 1
  nfsbox bench getattr --server-pid "$(pidof ganesha.nfsd)" nfs://localhost/a`
}

// benchFlags are the flags of every verb.
type benchFlags struct {
	URL string `arg:"" place:"" name:"URL" help:"nfs://host[:port]/export/path, or http://host:port/export/path for verbs that the file API has."`
	benchCommon
}

// benchCommon are the flags that a comparison has, too.
type benchCommon struct {
	Concurrency   int           `short:"c" default:"1" placeholder:"N" help:"Callers at once, each with one operation under way (default: 1)."`
	Count         *uint64       `short:"n" placeholder:"COUNT" help:"Operations to measure (default: as described for the verb; with --duration no limit)."`
	Duration      time.Duration `placeholder:"TIME" help:"How long to measure, such as 30s; with -n, too, the measurement ends at whichever comes first."`
	WarmUp        time.Duration `name:"warmup" default:"1s" placeholder:"TIME" help:"The longest warm-up; it is a tenth of COUNT if that is shorter. 0 leaves it out (default: 1s)."`
	ServerPID     *int          `name:"server-pid" placeholder:"PID" help:"Report processor time and threads of this process as the server's (Linux)."`
	ServerMetrics string        `name:"server-metrics" placeholder:"URL" help:"Read an nfsbox server's processor time, threads and counts there (its --metrics), and hold its counts against those of this run."`
	HTML          string        `name:"html" placeholder:"FILE" type:"path" help:"Write a page for a browser into FILE as well: the figures and, of one run, the operations of each second."`
	JSON          bool          `xor:"form" help:"Print a line of JSON a second, then a summary; nfsbox bench --help has the fields."`
	CSV           bool          `name:"csv" xor:"form" help:"Print a header and one line of comma-separated values."`
	NoProgress    bool          `help:"Report the end, and nothing in between."`
	loadFlags
}

// dataFlags are the flags of verbs that move bytes.
type dataFlags struct {
	Size     *byteSize `placeholder:"BYTES" help:"Bytes of one operation, such as 4096, 64K or 1M (default: 1M)."`
	FileSize *byteSize `placeholder:"BYTES" help:"Bytes of each file that is made (default: as many as keep all files together below 256M)."`
	Through  bool      `help:"Measure what an application gets, with the client's read-ahead and write-behind; without it each operation is one call."`
	Seed     uint64    `default:"1" help:"Number from which random places and data are made; the same number gives the same run (default: 1)."`
}

func (f *benchCommon) options(e *env, verb, url string) (bench.Options, error) {
	o := bench.Options{
		Verb: verb, URL: url, ServerMetrics: f.ServerMetrics, Concurrency: f.Concurrency, Duration: f.Duration, WarmUp: f.WarmUp, Rand: e.rand,
	}
	switch {
	case f.Concurrency < 1:
		return o, fmt.Errorf("-c %d: at least one caller is needed", f.Concurrency)
	case f.Count != nil && *f.Count == 0:
		return o, errors.New("-n 0: nothing to measure")
	case f.Duration < 0 || f.WarmUp < 0:
		return o, errors.New("a time cannot be negative")
	case f.ServerPID != nil && *f.ServerPID <= 0:
		return o, fmt.Errorf("--server-pid %d: a process number is positive", *f.ServerPID)
	}
	if f.Count != nil {
		o.Count = *f.Count
	}
	if f.ServerPID != nil {
		o.ServerPID = *f.ServerPID
	}
	if f.WarmUp == 0 {
		o.WarmUp = -1
	}
	var err error
	o.Dial, err = f.loadFlags.options()
	o.LocalIO = f.loadFlags.LocalIO != "" && f.loadFlags.LocalIO != nfsbox.LocalIOOff.String()
	return o, err
}

func (f *dataFlags) data(o *bench.Options) {
	if f.Size != nil {
		o.Size = f.Size.int()
	}
	if f.FileSize != nil {
		o.FileSize = int64(*f.FileSize)
	}
	o.Through, o.Seed = f.Through, f.Seed
}

// byteSize is a number of bytes, at least one: "4096", "64K", "1M", "2GiB".
type byteSize int64

// UnmarshalText parses digits and a binary unit.
func (s *byteSize) UnmarshalText(text []byte) error {
	unit := strings.TrimLeft(string(text), "0123456789")
	digits := string(text[:len(text)-len(unit)])
	power, ok := map[string]int{
		"": 0, "B": 0, "K": 10, "KB": 10, "KIB": 10, "M": 20, "MB": 20, "MIB": 20, "G": 30, "GB": 30, "GIB": 30, "T": 40, "TB": 40, "TIB": 40,
	}[strings.ToUpper(unit)]
	n, err := strconv.ParseUint(digits, 10, 63)
	if !ok || err != nil || n == 0 || bits.Len64(n)+power > 63 {
		return fmt.Errorf("%q is no number of bytes; write one such as 4096, 64K or 1M", text)
	}
	*s = byteSize(n << power)
	return nil
}

// int is s, or the largest int if s is larger, which bench refuses.
func (s byteSize) int() int { return int(min(int64(s), math.MaxInt)) }

// batchFlags are the flags of verbs that make many calls together.
type batchFlags struct {
	Batch int `default:"1" placeholder:"N" help:"Calls that each caller makes together and waits for. Each is an operation, and took as long as all of them; COUNT is rounded up to whole batches (default: 1)."`
}

func (f *batchFlags) set(o *bench.Options) error {
	if f.Batch < 1 {
		return fmt.Errorf("--batch %d: at least one call is needed", f.Batch)
	}
	o.Batch = f.Batch
	return nil
}

type benchNullCmd struct {
	benchFlags
	batchFlags
}

func (*benchNullCmd) Help() string {
	return `Calls procedure 0, which does nothing: the result is what TCP, record marking and RPC cost, on
both sides, without any work on files. The default is 100,000 operations.

With --batch N each caller has N calls under way.

  nfsbox bench null nfs://filer/export
  nfsbox bench null --batch 64 nfs://filer/export
  nfsbox bench null -c 64 --duration 10s nfs://filer/export`
}

func (c *benchNullCmd) Run(e *env) error { return c.measure(e, "null", c.batchFlags.set) }

type benchGetattrCmd struct {
	benchFlags
	batchFlags
}

func (*benchGetattrCmd) Help() string {
	return `Asks for the attributes of what URL names, again and again: of a file, a directory, or the
export itself. The default is 100,000 operations. With --batch each caller has so many calls under
way, as C libraries with an event loop do.

  nfsbox bench getattr -c 64 nfs://filer/export/home`
}

func (c *benchGetattrCmd) Run(e *env) error { return c.measure(e, "getattr", c.batchFlags.set) }

type benchReadCmd struct {
	benchFlags
	dataFlags
	Random bool `help:"Read at random places instead of one behind the other."`
}

func (*benchReadCmd) Help() string {
	return `Reads the file that URL names. If it names a directory, a file is made there, read, and removed in
the end; making it is not measured. All callers read one stream: each takes the next block, and at
the end of the file begins again. The default is 4096 operations of 1 MiB.

Where --size is more than the server gives at once, an operation takes several READs.

  nfsbox bench read -c 8 nfs://filer/export/big.iso
  nfsbox bench read -c 32 --size 4096 --random nfs://filer/export/scratch`
}

func (c *benchReadCmd) Run(e *env) error {
	return c.measure(e, "read", func(o *bench.Options) error { c.data(o); o.Random = c.Random; return nil })
}

type benchWriteCmd struct {
	benchFlags
	dataFlags
	Stable   bool `xor:"stability" help:"Write FILE_SYNC, each operation safe on the disk, instead of UNSTABLE with a COMMIT at the end of each file."`
	NoCommit bool `xor:"stability" help:"Write UNSTABLE and leave COMMIT out: the speed of the server's memory."`
}

func (*benchWriteCmd) Help() string {
	return `Makes a file for each caller in the directory that URL names, writes them from beginning to end,
again and again, and removes them. A COMMIT follows the last WRITE of a file, within the time of that
operation, and what is written when the measurement ends is committed in its time, too. A COMMIT
with another verifier than the WRITEs had is a failure: the server has restarted and lost data. The
default is 1024 operations of 1 MiB.

  nfsbox bench write -c 4 nfs://filer/export/scratch
  nfsbox bench write -c 32 --size 4096 --stable nfs://filer/export/scratch`
}

func (c *benchWriteCmd) Run(e *env) error {
	return c.measure(e, "write", func(o *bench.Options) error {
		c.data(o)
		o.Stable, o.NoCommit = c.Stable, c.NoCommit
		return nil
	})
}

type benchListCmd struct {
	benchFlags
	Size  *byteSize `placeholder:"BYTES" help:"Bytes of one page (default: 128K)."`
	Names bool      `help:"List names alone, by READDIR."`
}

func (*benchListCmd) Help() string {
	return `Lists the directory that URL names, with handles and attributes. An operation is one READDIRPLUS,
a page of the listing; a caller that has come to the end begins again. Entries per second are
reported as well. The default is 1000 operations.

  nfsbox bench list nfs://filer/export/maildir
  nfsbox bench list -c 4 --size 1M --duration 10s nfs://filer/export/maildir`
}

func (c *benchListCmd) Run(e *env) error {
	return c.measure(e, "list", func(o *bench.Options) error {
		o.Names = c.Names
		if c.Size != nil {
			o.Size = c.Size.int()
		}
		return nil
	})
}
