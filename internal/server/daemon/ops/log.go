package ops

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/reqlog"
	"github.com/nfsbox/nfsbox/internal/server/view"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// Logs are where the server writes what it has to say: its own log, slow calls, and the
// log of requests. The files are opened once: each costs a goroutine that never ends.
type Logs struct {
	now      func() time.Time
	log      *slog.Logger
	level    slog.LevelVar
	own      *lossy      // the file of the server's own log; nil: it has none
	slow     *slowLog    // nil before Open
	requests *reqlog.Log // calls of clients; nil: there is no such log
	calls    *reqlog.File
	name     Namer      // set before there are calls, as all below
	watched  bool       // there is to be a view
	view     *view.View // nil: there is none
}

// levelOf is the lowest level that is logged. config has checked it.
func levelOf(l *config.Log) (least slog.Level) {
	if err := least.UnmarshalText([]byte(l.Level)); err != nil {
		return slog.LevelInfo
	}
	return least
}

// handler writes records to out, from a level on.
func handler(l *config.Log, out io.Writer, from slog.Leveler) slog.Handler {
	o := &slog.HandlerOptions{Level: from, ReplaceAttr: told}
	if l.Format == "json" {
		return slog.NewJSONHandler(out, o)
	}
	return slog.NewTextHandler(out, o)
}

// told is how the log has an error, whoever logs it: its text, in which no cause stands twice,
// and beside it its code. An error with another key than these is said to be the cause of
// something, and has no code of its own.
func told(_ []string, a slog.Attr) slog.Attr {
	err, ok := a.Value.Any().(error)
	switch {
	case !ok:
		return a
	case a.Key != "error" && a.Key != "err":
		return slog.String(a.Key, fault.Text(err))
	}
	return slog.Group("", slog.String(a.Key, fault.Text(err)), slog.String("code", fault.Code(err)))
}

// at says how a file of log is kept.
func at(l *config.Log, path string, now func() time.Time) reqlog.FileOptions {
	size := int64(l.MaxSize)
	if size == 0 {
		size = reqlog.MaxSize // put aside by others long before
	}
	return reqlog.FileOptions{
		Path: path, Size: size, Keep: l.MaxFiles, Days: l.Days(), Compress: l.Compress, Now: now,
	}
}

// CheckFiles finds what is wrong with the places of the files of the log, and makes none. Its
// error joins a config.KeyError for each.
func CheckFiles(l *config.Log) (err error) {
	for _, key := range []string{"log.file", "log.requests"} {
		path := l.File
		if key == "log.requests" {
			path = l.Requests
		}
		if path == "" {
			continue
		}
		if e := at(l, path, nil).Check(); e != nil {
			err = errors.Join(err, &config.KeyError{Key: key, Err: e})
		}
	}
	own, e := os.Stat(l.File)
	requests, e2 := os.Stat(l.Requests)
	if e == nil && e2 == nil && os.SameFile(own, requests) {
		err = errors.Join(err, &config.KeyError{Key: "log.requests", Err: fmt.Errorf("%s and %s are one file", l.File, l.Requests)})
	}
	return err
}

// lossy is the file of the server's own log. What it does not take is lost, and
// counted: no call waits until a disk has room.
type lossy struct {
	*reqlog.File
	lost atomic.Uint64
	ill  bool        // the last line was lost; slog has one written at a time
	tell func(error) // is told of the first loss, and of the first after it has worked again
}

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

// NewLogs makes a log that is written to out. Nothing else is logged before [Logs.Open].
func NewLogs(c *config.Log, out io.Writer, now func() time.Time) *Logs {
	l := &Logs{now: now, name: func(vfs.Handle) (string, bool) { return "", false }}
	l.level.Set(levelOf(c))
	l.log = slog.New(handler(c, out, &l.level))
	return l
}

// Logger is the server's own log. It is another one after Open.
func (l *Logs) Logger() *slog.Logger { return l.log }

// Open goes over to the file of the server's own log, if it has one, and opens that of
// requests if there is to be one. Calls that take slow or longer are then logged; 0 is
// for none. After an error Close is still to be called.
func (l *Logs) Open(c *config.Log, slow time.Duration) error {
	stderr := l.log
	if err := CheckFiles(c); err != nil {
		return err
	}
	if c.File != "" {
		f, err := reqlog.OpenFile(at(c, c.File, l.now))
		if err != nil {
			return fmt.Errorf("log.file: %w", err)
		}
		l.own = &lossy{File: f, tell: func(err error) {
			stderr.Error("the log cannot be written, and loses lines", slog.Any("error", err))
		}}
		l.log = slog.New(handler(c, l.own, &l.level))
	}
	l.slow = newSlowLog(l.log, l.now, slow)
	if c.Requests == "" {
		return nil
	}
	var err error
	if l.calls, err = reqlog.OpenFile(at(c, c.Requests, l.now)); err != nil {
		return fmt.Errorf("log.requests: %w", err)
	}
	l.requests = reqlog.New(reqlog.Options{
		Handler: handler(c, l.calls, nil), Every: c.Sample, Now: l.now,
		Failed: func(err error) {
			l.log.Error("the log of requests cannot be written, and loses lines", slog.Any("error", err))
		},
	})
	return nil
}

// SetNamer says by what handles are named; without, they are told as handles. It is called
// before there are calls.
func (l *Logs) SetNamer(name Namer) { l.name = name }

// Watch says that there is to be a view, for which calls are sampled, too. It is called before
// Sample.
func (l *Logs) Watch() { l.watched = true }

// Sample says, for each call, whether the log of requests or the view wants it; nil is for
// none.
func (l *Logs) Sample() func() bool {
	switch {
	case l.watched:
		return func() bool { return rand.Uint64() <= l.share() }
	case l.requests != nil:
		return l.requests.Wants
	}
	return nil
}

// share is that of the calls which the log of requests or the view wants.
func (l *Logs) share() uint64 { return max(l.requests.Share(), l.viewed()) }

func (l *Logs) viewed() uint64 {
	if l.view == nil {
		return 0
	}
	return l.view.Share()
}

// among says whether a call that was picked by the larger of two shares is picked by this one.
func among(share, larger uint64) bool {
	return share >= larger || rand.Float64()*float64(larger) <= float64(share)
}

// picked passes a sampled call on to whom it is for.
func (l *Logs) picked(r reqlog.Call, of func() view.Call) {
	larger := l.share()
	if l.requests != nil && among(l.requests.Share(), larger) {
		l.requests.Put(r)
	}
	if l.view != nil && among(l.view.Share(), larger) {
		l.view.Count(of())
	}
}

// Observe is told of calls that were slow, and of those that the log of requests
// has picked. It never waits.
func (l *Logs) Observe(c oncrpc.Served) {
	r, about := requestOf(&c), nfsserver.ObjectOf(&c)
	if !about.IsZero() {
		r.Object = &object{about, l.name}
	}
	if c.Took >= config.SlowFloor {
		l.slow.observe(r)
	}
	if c.Sampled {
		l.picked(r, func() view.Call { return viewCall(&c, about.Handle) })
	}
}

// requestOf is a call as the log of requests has it.
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

// ObserveAPI is Observe for the file API. How long many bytes take is for the line of
// their client to say: calls that moved more than maxSlowBytes are not slow.
func (l *Logs) ObserveAPI(c fileapi.Served) {
	r := requestOfAPI(&c)
	if c.Took >= config.SlowFloor && c.BytesIn+c.BytesOut <= maxSlowBytes {
		l.slow.observe(r)
	}
	if c.Sampled {
		l.picked(r, func() view.Call { return viewCallOfAPI(&c) })
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
	if c.Path != "" {
		r.Object = &object{Object: nfsserver.Object{Path: c.Path}}
	}
	return r
}

// Reopen has the files opened anew, which others may have put aside.
func (l *Logs) Reopen() (err error) {
	if l.own != nil {
		err = l.own.Close()
	}
	if l.calls != nil {
		err = errors.Join(err, l.calls.Close())
	}
	return err
}

// Close writes what waits, and closes the files. Calls that end later are not logged, and
// what is logged later opens the server's own file again. A nil Logs has no files.
func (l *Logs) Close() error {
	if l == nil {
		return nil
	}
	if l.slow != nil {
		l.slow.close()
	}
	l.EndCalls()
	return l.Reopen()
}

// EndCalls writes the lines of calls that wait. Later ones are not logged. It is for the end, while the exports still know the paths
// of what was called for.
func (l *Logs) EndCalls() {
	if l != nil && l.requests != nil {
		l.requests.Close()
	}
}

// Reload changes what a reload may: the level, and the threshold for slow calls.
func (l *Logs) Reload(c *config.Log, slow time.Duration) {
	l.level.Set(levelOf(c))
	l.slow.set(slow)
}

// logLosses are how many lines each log has lost.
type logLosses struct{ own, requests uint64 }

func (l *Logs) losses() (n logLosses) {
	if l.own != nil {
		n.own = l.own.lost.Load()
	}
	if l.requests != nil {
		s := l.requests.Stats()
		n.requests = s.LeftOut + s.Failed
	}
	return n
}
