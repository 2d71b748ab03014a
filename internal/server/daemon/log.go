package daemon

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/reqlog"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
)

// Log says what is written of the server's life, how and where, and which calls of
// clients are.
type Log struct {
	Level    string   `toml:"level" default:"info" help:"What is logged: debug, info, warn, error."`
	Format   string   `toml:"format" default:"text" help:"How lines look: text, json; those of the log of requests, too."`
	File     string   `toml:"file" placeholder:"FILE" help:"Where the log goes, in the configuration by its absolute path; without it, to stderr."`
	Requests string   `toml:"requests" placeholder:"FILE" help:"Write calls of clients to this file, in the configuration by its absolute path, a line each: who, what, how long, how much."`
	Sample   int      `toml:"sample" default:"100" help:"Of so many of them, one, by chance; 1 is for all."`
	MaxSize  Size     `toml:"max-size" default:"100MiB" help:"Put a file of log aside when it is so large, in whole MiB; 0 leaves it to others, who then send SIGHUP."`
	MaxAge   Duration `toml:"max-age" placeholder:"TIME" help:"And when it is a day old; remove what was put aside so long ago, in whole days (7d); 0 does neither."`
	MaxFiles int      `toml:"max-files" default:"10" help:"How many to keep of those put aside; 0 keeps all."`
	Compress bool     `toml:"compress" help:"Compress those put aside, with gzip."`
}

func defaultLog() Log {
	return Log{Level: "info", Format: "text", Sample: defaultSample, MaxSize: defaultLogSize, MaxFiles: defaultLogFiles}
}

func (l *Log) check(p *problems) {
	p.oneOf("log.level", l.Level, "debug", "info", "warn", "error")
	p.oneOf("log.format", l.Format, "text", "json")
	p.within("log.sample", int64(l.Sample), 1, maxSample)
	p.within("log.max-files", int64(l.MaxFiles), 0, reqlog.MaxKeep)
	if l.MaxSize != 0 && (l.MaxSize < logUnit || l.MaxSize > reqlog.MaxSize || l.MaxSize%logUnit != 0) {
		p.add("log.max-size", "%v is neither 0 nor whole MiB, up to %v", l.MaxSize, Size(reqlog.MaxSize))
	}
	if time.Duration(l.MaxAge)%day != 0 {
		p.add("log.max-age", "%v is not whole days, such as 7d", l.MaxAge)
	}
	for _, x := range []struct{ key, path string }{{"log.file", l.File}, {"log.requests", l.Requests}} {
		if x.path != "" && !filepath.IsAbs(x.path) {
			p.add(x.key, "%q is not an absolute path", x.path)
		}
	}
	if l.Requests != "" && filepath.Clean(l.Requests) == filepath.Clean(l.File) {
		p.add("log.requests", "%s is the file of the server's own log already", l.Requests)
	}
}

// absolute makes paths of the files that the command line has given, relative to where it
// was given. Those of a configuration have to be absolute, wherever the service is started.
func (l *Log) absolute(given map[string]bool) (err error) {
	for flag, path := range map[string]*string{"log-file": &l.File, "log-requests": &l.Requests} {
		if !given[flag] || *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
	}
	return nil
}

// level is the least that is logged; check has seen it.
func (l *Log) level() (least slog.Level) {
	if err := least.UnmarshalText([]byte(l.Level)); err != nil {
		return slog.LevelInfo
	}
	return least
}

// handler writes records to out, from a level on.
func (l *Log) handler(out io.Writer, from slog.Leveler) slog.Handler {
	o := &slog.HandlerOptions{Level: from}
	if l.Format == "json" {
		return slog.NewJSONHandler(out, o)
	}
	return slog.NewTextHandler(out, o)
}

// at says how a file of log is kept.
func (l *Log) at(path string, now func() time.Time) reqlog.FileOptions {
	size := int64(l.MaxSize)
	if size == 0 {
		size = reqlog.MaxSize // put aside by others long before
	}
	return reqlog.FileOptions{
		Path: path, Size: size, Keep: l.MaxFiles, Days: int(time.Duration(l.MaxAge) / day), Compress: l.Compress, Now: now,
	}
}

// checkFiles finds what is wrong with the places of the files, and makes none.
func (l *Log) checkFiles() (err error) {
	for key, path := range map[string]string{"log.file": l.File, "log.requests": l.Requests} {
		if path == "" {
			continue
		}
		if e := l.at(path, nil).Check(); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", key, e))
		}
	}
	own, e := os.Stat(l.File)
	requests, e2 := os.Stat(l.Requests)
	if e == nil && e2 == nil && os.SameFile(own, requests) {
		err = errors.Join(err, fmt.Errorf("log.requests: %s and %s are one file", l.File, l.Requests))
	}
	return err
}

// logs are where the server writes what it has to say. The files are opened once:
// each costs a goroutine that never ends.
type logs struct {
	level    slog.LevelVar
	own      *lossy      // the server's own; nil: World.Log
	requests *reqlog.Log // calls of clients; nil: nobody wants to know
	calls    *reqlog.File
}

// lossy is the file of the server's own log. What it does not take is lost, and
// counted: nobody waits until a disk has room.
type lossy struct {
	*reqlog.File
	lost atomic.Uint64
	ill  bool        // the last line was lost; slog has one written at a time
	tell func(error) // is told of the first loss, and of the first after it has worked again
}

// Write implements io.Writer.
func (l *lossy) Write(p []byte) (int, error) {
	n, err := l.File.Write(p)
	if err != nil {
		l.lost.Add(1)
		if !l.ill {
			l.tell(err)
		}
	}
	l.ill = err != nil
	return n, err
}

// startLog has the log written to World.Log.
func (d *daemon) startLog() {
	d.logs.level.Set(d.c.Log.level())
	d.log = slog.New(d.c.Log.handler(d.w.Log, &d.logs.level))
}

// openLogs goes over to the file of the server's own log, if it has one, and opens
// that of requests if there is to be one.
func (d *daemon) openLogs() error {
	c, l, stderr := &d.c.Log, &d.logs, d.log
	if err := c.checkFiles(); err != nil {
		return err
	}
	if c.File != "" {
		f, err := reqlog.OpenFile(c.at(c.File, d.w.Now))
		if err != nil {
			return fmt.Errorf("log.file: %w", err)
		}
		l.own = &lossy{File: f, tell: func(err error) {
			stderr.Error("the log cannot be written, and loses lines", slog.Any("error", err))
		}}
		d.log = slog.New(c.handler(l.own, &l.level))
	}
	if c.Requests == "" {
		return nil
	}
	var err error
	if l.calls, err = reqlog.OpenFile(c.at(c.Requests, d.w.Now)); err != nil {
		return fmt.Errorf("log.requests: %w", err)
	}
	l.requests = reqlog.New(reqlog.Options{
		Handler: c.handler(l.calls, nil), Every: c.Sample, Now: d.w.Now,
		Failed: func(err error) {
			d.log.Error("the log of requests cannot be written, and loses lines", slog.Any("error", err))
		},
	})
	return nil
}

// sample is asked of each call whether the log of requests wants it; nil is for
// none.
func (l *logs) sample() func() bool {
	if l.requests == nil {
		return nil
	}
	return l.requests.Wants
}

// observe is told of calls that were slow, and of those that the log of requests
// has picked. It never waits.
func (d *daemon) observe(c oncrpc.Served) {
	r := requestOf(&c)
	if c.Took >= slowFloor {
		d.slow.observe(r)
	}
	if c.Sampled {
		d.logs.requests.Put(r)
	}
}

// requestOf is a call in the words of the log of requests.
func requestOf(c *oncrpc.Served) reqlog.Call {
	r := reqlog.Call{
		Client: c.Client, UID: c.UID, HasUID: c.HasUID, XID: c.XID, HasXID: true, Took: c.Took, Waited: c.Waited,
		BytesIn: int64(c.BytesIn), BytesOut: int64(c.BytesOut), Status: nfsserver.StatusOf(c), Failed: c.Failed,
	}
	if c.Proc != nil {
		r.Procedure = c.Proc
	}
	return r
}

// observeAPI is observe for the file API. How long many bytes take is for the line of
// their client to say: calls that moved more than maxSlowBytes are not slow.
func (d *daemon) observeAPI(c fileapi.Served) {
	r := requestOfAPI(&c)
	if c.Took >= slowFloor && c.BytesIn+c.BytesOut <= maxSlowBytes {
		d.slow.observe(r)
	}
	if c.Sampled {
		d.logs.requests.Put(r)
	}
}

// requestOfAPI is a call of the file API in the words of the log of requests.
func requestOfAPI(c *fileapi.Served) reqlog.Call {
	r := reqlog.Call{
		Procedure: c.Procedure, User: c.Name, UID: c.UID, HasUID: c.HasUID, Took: c.Took,
		BytesIn: int64(c.BytesIn), BytesOut: int64(c.BytesOut), Status: c.Code,
	}
	if c.Client.IsValid() {
		r.Client = c.Client
	}
	return r
}

// reopen has the files opened anew, which others may have put aside.
func (l *logs) reopen() (err error) {
	if l.own != nil {
		err = l.own.Close()
	}
	if l.calls != nil {
		err = errors.Join(err, l.calls.Close())
	}
	return err
}

// close writes what waits, and closes the files. Nothing may be observed any more;
// what is logged later opens the server's own again.
func (l *logs) close() error {
	if l.requests != nil {
		l.requests.Close()
	}
	return l.reopen()
}

// logLosses are how many lines each log has lost.
type logLosses struct{ own, requests uint64 }

func (l *logs) losses() (n logLosses) {
	if l.own != nil {
		n.own = l.own.lost.Load()
	}
	if l.requests != nil {
		s := l.requests.Stats()
		n.requests = s.LeftOut + s.Failed
	}
	return n
}

// logs are the metrics of the logs.
func (w writer) logs(lost logLosses) {
	const name, help = "log_dropped_total", "Lines that a log has lost: its file could not be written, or they were too many."
	w.send(name, help, prometheus.CounterValue, float64(lost.own), []string{"log"}, "server")
	w.send(name, help, prometheus.CounterValue, float64(lost.requests), []string{"log"}, "requests")
}
