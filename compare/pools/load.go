package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

const (
	files = 10 // of each client
	size  = 50 << 10

	// pause is how long a client waits that was told to come back later.
	pause = 500 * time.Millisecond
)

var content = func() (b [size]byte) {
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}()

func home(client int) string { return fmt.Sprintf("c%04d", client) }
func name(file int) string   { return fmt.Sprintf("f%02d", file) }

// added is the name of a file that was not there before.
func added(file int) string { return fmt.Sprintf("added%06d", file) }

// test is one table of the comparison.
type test struct {
	name string
	file func(ctx context.Context, c *client, name string) error
	once bool // each file once, none of which is in memory
	adds bool // files that were not there before
}

var tests = []test{
	{name: "Download: LOOKUP, READ; in memory", file: download},
	{name: "Download: LOOKUP, READ; not in memory, each file once", file: download, once: true},
	{name: "Upload: CREATE, WRITE unstable", file: upload, adds: true},
	{name: "Upload: CREATE, WRITE unstable, COMMIT", file: uploadCommit, adds: true},
}

// client is one connection and a directory of its own.
type client struct {
	rpc  *oncrpc.Client
	auth oncrpc.Auth
	dir  nfs3.NfsFh3
	data [size]byte

	uploads int // files added
	later   int // calls that the server was too busy for
}

// dial makes n clients that are connected.
func dial(ctx context.Context, u *url.URL, n int) (clients []*client, err error) {
	c, err := nfsbox.Dial(ctx, u.String())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	root, _, err := c.FS().Root(ctx)
	if err != nil {
		return nil, err
	}
	body, err := (&oncrpc.AuthSys{Machine: "pools", UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}).AppendXDR(nil)
	if err != nil {
		return nil, err
	}
	for i := range n {
		h, _, _, err := c.FS().Lookup(ctx, root, home(i))
		if err != nil {
			return clients, err
		}
		clients = append(clients, &client{
			rpc: oncrpc.NewClient(oncrpc.ClientOptions{
				Dial:     func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", u.Host) },
				FirstXID: rand.Uint32(),
			}),
			auth: oncrpc.Auth{Flavor: oncrpc.AuthSysFlavor, Body: body},
			dir:  nfs3.NfsFh3{Data: slices.Clone(h.Bytes())},
		})
		if _, err := clients[i].lookup(ctx, name(0)); err != nil { // connects
			return clients, err
		}
	}
	return clients, nil
}

func hangUp(clients []*client) (err error) {
	for _, c := range clients {
		err = errors.Join(err, c.rpc.Close())
	}
	return err
}

// result is what came of loading.
type result struct {
	took    []time.Duration // in order
	seconds float64
	later   int // calls that the server was too busy for
}

// quantile is in milliseconds.
func (r *result) quantile(percent int) float64 {
	if len(r.took) == 0 {
		return 0
	}
	return r.took[len(r.took)*percent/100].Seconds() * 1e3
}

// load has each client go through its files, until the time is over or, of files
// that are read once, there are no more.
func (t *test) load(ctx context.Context, clients []*client, limit time.Duration) (r result, err error) {
	took, errs := make([][]time.Duration, len(clients)), make([]error, len(clients))
	start := time.Now()
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			for j := 0; time.Since(start) < limit && !(t.once && j == files); j++ {
				file := name(j % files)
				if t.adds {
					file = added(c.uploads)
					c.uploads++
				}
				began := time.Now()
				if err := t.file(ctx, c, file); err != nil {
					errs[i] = err
					return
				}
				took[i] = append(took[i], time.Since(began))
			}
		})
	}
	wg.Wait()
	r.seconds = time.Since(start).Seconds()
	r.took = slices.Concat(took...)
	slices.Sort(r.took)
	for _, c := range clients {
		r.later += c.later
		c.later = 0
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) > 0 {
		return r, fmt.Errorf("%d of %d clients failed, the first: %w", len(errs), len(clients), errs[0])
	}
	return r, nil
}

func download(ctx context.Context, c *client, name string) error {
	fh, err := c.lookup(ctx, name)
	if err != nil {
		return err
	}
	var res nfs3.READ3res
	res.Resok.Data = c.data[:]
	return c.call(ctx, nfs3.NFSPROC3_READ, &nfs3.READ3args{File: fh, Count: size}, &res, func() error {
		if res.Status == nfs3.NFS3_OK && res.Resok.Count != size {
			return fmt.Errorf("%s: %d bytes of %d", name, res.Resok.Count, size)
		}
		return res.Status.Err()
	})
}

func upload(ctx context.Context, c *client, name string) error {
	_, err := c.upload(ctx, name)
	return err
}

func uploadCommit(ctx context.Context, c *client, name string) error {
	fh, err := c.upload(ctx, name)
	if err != nil {
		return err
	}
	var res nfs3.COMMIT3res
	return c.call(ctx, nfs3.NFSPROC3_COMMIT, &nfs3.COMMIT3args{File: fh}, &res, func() error { return res.Status.Err() })
}

func (c *client) lookup(ctx context.Context, name string) (fh nfs3.NfsFh3, err error) {
	args := nfs3.LOOKUP3args{What: nfs3.Diropargs3{Dir: c.dir, Name: []byte(name)}}
	var res nfs3.LOOKUP3res
	err = c.call(ctx, nfs3.NFSPROC3_LOOKUP, &args, &res, func() error {
		fh.Data = slices.Clone(res.Resok.Object.Data)
		return res.Status.Err()
	})
	return fh, err
}

// upload creates a file, and writes it.
func (c *client) upload(ctx context.Context, name string) (fh nfs3.NfsFh3, err error) {
	args := nfs3.CREATE3args{Where: nfs3.Diropargs3{Dir: c.dir, Name: []byte(name)}}
	args.How.Mode = nfs3.UNCHECKED
	var res nfs3.CREATE3res
	err = c.call(ctx, nfs3.NFSPROC3_CREATE, &args, &res, func() error {
		fh.Data = slices.Clone(res.Resok.Obj.Handle.Data)
		return res.Status.Err()
	})
	if err != nil {
		return fh, err
	}
	write := nfs3.WRITE3args{File: fh, Count: size, Stable: nfs3.UNSTABLE, Data: content[:]}
	var wrote nfs3.WRITE3res
	err = c.call(ctx, nfs3.NFSPROC3_WRITE, &write, &wrote, func() error {
		if wrote.Status == nfs3.NFS3_OK && wrote.Resok.Count != size {
			return fmt.Errorf("%s: %d bytes of %d written", name, wrote.Resok.Count, size)
		}
		return wrote.Status.Err()
	})
	return fh, err
}

// call calls, and judges the results while they are good. Where the server says to come
// back later, it does.
func (c *client) call(ctx context.Context, p *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler, judge func() error) error {
	for {
		reply, err := c.rpc.Call(ctx, p, c.auth, args, res)
		if err == nil {
			err = judge()
		}
		reply.Release()
		switch {
		case errors.Is(err, vfs.ErrBusy):
			c.later++
			time.Sleep(pause)
		case err != nil:
			return fmt.Errorf("%s: %w", p.Name, err)
		default:
			return nil
		}
	}
}
