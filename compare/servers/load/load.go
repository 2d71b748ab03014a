package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// Names and sizes of what the served directory must hold.
const (
	File     = "read.dat"  // FileSize bytes
	Scratch  = "write.dat" // FileSize bytes
	FileSize = 256 << 20
	Small    = "small" // a directory of SmallFiles files of SmallSize, named by Name
	// SmallFiles is a file for each of the clients of "mix".
	SmallFiles = 500
	SmallSize  = 50 << 10
	Entries    = "entries" // a directory to list
	WriteSize  = 4 << 10   // of each WRITE to Scratch
)

// Name is what the n-th small file is called.
func Name(n int) string { return fmt.Sprintf("f%04d", n) }

// Load is what to do.
type Load struct {
	Addr  string // host and port of NFS
	URL   string // where the objects are found, for nfsbox.Dial
	Op    string // null getattr lookup read write bigread mix
	Depth int    // calls in flight on each connection
	Conns int
	For   time.Duration
}

// Result is what came of it.
type Result struct {
	Ops      int
	Seconds  float64
	P50, P99 float64 // microseconds
}

// Run loads the server.
func (l *Load) Run(ctx context.Context) (Result, error) {
	hs, err := l.handles(ctx)
	if err != nil {
		return Result{}, err
	}
	workers := make([]*worker, l.Conns)
	defer func() {
		for _, w := range workers {
			if w != nil {
				_ = w.c.nc.Close() // it has served
			}
		}
	}()
	for i := range workers {
		c, err := dial(l.Addr)
		if err != nil {
			return Result{}, err
		}
		workers[i] = &worker{c: c, l: l, h: hs[i%len(hs)], rand: rand.New(rand.NewPCG(1, uint64(i)))}
	}
	start := time.Now()
	errs := make([]error, len(workers))
	var wg sync.WaitGroup
	for i, w := range workers {
		wg.Go(func() { errs[i] = w.run(start.Add(l.For)) })
	}
	wg.Wait()
	r := Result{Seconds: time.Since(start).Seconds()}
	var took []time.Duration
	for _, w := range workers {
		r.Ops += w.done
		took = append(took, w.took...)
	}
	slices.Sort(took)
	if len(took) > 0 {
		r.P50 = float64(took[len(took)/2].Nanoseconds()) / 1e3
		r.P99 = float64(took[len(took)*99/100].Nanoseconds()) / 1e3
	}
	return r, errors.Join(errs...)
}

func (l *Load) handles(ctx context.Context) (hs [][]byte, err error) {
	c, err := nfsbox.Dial(ctx, l.URL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	root, _, err := c.FS().Root(ctx)
	if err != nil {
		return nil, err
	}
	find := func(dir vfs.Handle, name string) {
		h, _, _, e := c.FS().Lookup(ctx, dir, name)
		err = errors.Join(err, e)
		hs = append(hs, append([]byte(nil), h.Bytes()...))
	}
	switch l.Op {
	case "null", "lookup":
		return [][]byte{root.Bytes()}, nil
	case "write":
		find(root, Scratch)
	case "mix":
		dir, _, _, e := c.FS().Lookup(ctx, root, Small)
		if e != nil {
			return nil, e
		}
		for i := range SmallFiles {
			find(dir, Name(i))
		}
	default:
		find(root, File)
	}
	return hs, err
}

// worker is one connection and its calls.
type worker struct {
	c    *conn
	l    *Load
	h    []byte
	rand *rand.Rand
	at   uint64 // of sequential reads
	sent map[uint32]time.Time
	took []time.Duration
	done int
}

// run keeps Depth calls in flight until then, and waits for the last.
func (w *worker) run(until time.Time) error {
	w.sent = make(map[uint32]time.Time, w.l.Depth)
	for range w.l.Depth {
		if err := w.next(); err != nil {
			return err
		}
	}
	for len(w.sent) > 0 {
		if !w.c.buffered() {
			if err := errors.Join(w.c.flush(), w.c.nc.SetReadDeadline(time.Now().Add(silence))); err != nil {
				return err
			}
		}
		xid, results, err := w.c.reply()
		if err != nil {
			return err
		}
		now := time.Now()
		start, ok := w.sent[xid]
		if !ok {
			return fmt.Errorf("a reply to the call %d, which is not in flight", xid)
		}
		delete(w.sent, xid)
		if w.l.Op != "null" && (len(results) < 4 || binary.BigEndian.Uint32(results) != 0) {
			return fmt.Errorf("%s: status % x", w.l.Op, results[:min(4, len(results))])
		}
		w.done++
		w.took = append(w.took, now.Sub(start))
		if now.Before(until) {
			if err := w.next(); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	block4K  = make([]byte, WriteSize)
	block50K = make([]byte, SmallSize)
)

func (w *worker) next() error {
	fh := nfs3.NfsFh3{Data: w.h}
	var p *xdr.Proc
	var args xdr.Appender
	switch w.l.Op {
	case "null":
		p, args = nfs3.NFSPROC3_NULL, xdr.Void{}
	case "getattr":
		p, args = nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: fh}
	case "lookup":
		p, args = nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: nfs3.Diropargs3{Dir: fh, Name: []byte(File)}}
	case "read":
		p, args = nfs3.NFSPROC3_READ, &nfs3.READ3args{File: fh, Offset: w.anywhere(), Count: 4 << 10}
	case "write":
		p, args = nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{File: fh, Offset: w.anywhere(), Count: WriteSize, Data: block4K}
	case "bigread":
		w.at = (w.at + 1<<20) % FileSize
		p, args = nfs3.NFSPROC3_READ, &nfs3.READ3args{File: fh, Offset: w.at, Count: 1 << 20}
	case "mix":
		p, args = nfs3.NFSPROC3_READ, &nfs3.READ3args{File: fh, Count: SmallSize}
		if w.rand.IntN(2) == 0 {
			p, args = nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{File: fh, Count: SmallSize, Data: block50K}
		}
	default:
		return fmt.Errorf("no operation %q", w.l.Op)
	}
	xid, err := w.c.call(p, args)
	w.sent[xid] = time.Now()
	return err
}

func (w *worker) anywhere() uint64 { return uint64(w.rand.IntN(FileSize/4096)) * 4096 }
