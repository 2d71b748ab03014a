package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/compare/internal/serve"
	"github.com/nfsbox/nfsbox/fileapi"
)

// verbs are what is measured, in an order in which it can be.
var verbs = []string{"upload", "download", "exist", "delete", "echo"}

// folder holds the files, all of them, as GoFsBench's does.
const folder = "/stroges"

func name(i int) string { return fmt.Sprintf("%s/bench_mark_file_%d", folder, i) }

// content is that of every file.
var content = func() (b [size]byte) {
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}()

// calls has the clients do a verb by the calls of the file API.
func calls(ctx context.Context, o *options, base string, asJSON bool, verb string, n int) (figure, error) {
	c, err := fileapi.New(base, fileapi.Options{JSON: asJSON, HTTP2: o.http2, MaxConns: o.clients})
	if err != nil {
		return figure{}, err
	}
	defer c.Close()
	do, err := doing(o, c, verb)
	if err != nil {
		return figure{}, err
	}
	return load(ctx, o, n, func(ctx context.Context, _, i int) error { return do(ctx, i) })
}

// load has the clients do something n times between them. do is told which client it is,
// and which time. As in GoFsBench's client, the time that connecting takes is part of it.
func load(ctx context.Context, o *options, n int, do func(ctx context.Context, client, i int) error) (figure, error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	took := make([]time.Duration, n)
	errs := make([]error, o.clients)
	start, used := time.Now(), serve.CPU(0)
	for i := range errs {
		wg.Go(func() {
			for errs[i] == nil {
				at := int(next.Add(1)) - 1
				if at >= n || ctx.Err() != nil {
					return
				}
				begun := time.Now()
				errs[i] = do(ctx, i, at)
				took[at] = time.Since(begun)
			}
		})
	}
	wg.Wait()
	seconds := time.Since(start).Seconds()
	if err := errors.Join(ctx.Err(), errors.Join(errs...)); err != nil {
		return figure{}, err
	}
	client := float64(serve.CPU(0)-used) / float64(n) / 1e3
	slices.Sort(took)
	return figure{PerS: float64(n) / seconds, P50: milliseconds(took[n/2]), P99: milliseconds(took[n*99/100]), Client: client, done: n}, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }

// doing is one operation of a verb, which says as well whether it did what it should.
func doing(o *options, c *fileapi.Client, verb string) (func(context.Context, int) error, error) {
	message := content[:echo]
	switch verb {
	case "upload":
		return func(ctx context.Context, i int) error {
			_, err := c.Put(ctx, name(i), content[:], fileapi.UploadOptions{Checksum: o.checksum, NoSync: !o.sync, Mode: 0o644, Chmod: true})
			return err
		}, nil
	case "download":
		return func(ctx context.Context, i int) error {
			data, _, err := c.Get(ctx, name(i), fileapi.Range{Checksum: o.checksum})
			if err == nil && len(data) != size {
				err = fmt.Errorf("%d bytes have come", len(data))
			}
			return err
		}, nil
	case "exist":
		return func(ctx context.Context, i int) error {
			ok, err := c.Exist(ctx, name(i))
			if err == nil && !ok {
				err = errors.New("a file has gone")
			}
			return err
		}, nil
	case "delete":
		return func(ctx context.Context, i int) error { return c.Delete(ctx, name(i)) }, nil
	case "echo":
		return func(ctx context.Context, _ int) error {
			data, err := c.Echo(ctx, message)
			if err == nil && len(data) != echo {
				err = fmt.Errorf("%d bytes have come back", len(data))
			}
			return err
		}, nil
	}
	return nil, fmt.Errorf("%q is no verb", verb)
}
