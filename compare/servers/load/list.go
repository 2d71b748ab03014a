package load

import (
	"context"
	"errors"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

// page is the size of the pages that List asks for, as the Linux client does.
const page = 1 << 20

// List lists the directory Entries by READDIRPLUS, one page after the other, and
// returns how many entries it has.
func List(ctx context.Context, addr, url string) (r Result, err error) {
	client, err := nfsbox.Dial(ctx, url)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	root, _, err := client.FS().Root(ctx)
	if err != nil {
		return r, err
	}
	dir, _, _, err := client.FS().Lookup(ctx, root, Entries)
	if err != nil {
		return r, err
	}
	c, err := dial(addr)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.nc.Close()) }()
	start := time.Now()
	args := nfs3.READDIRPLUS3args{Dir: nfs3.NfsFh3{Data: dir.Bytes()}, Dircount: page, Maxcount: page}
	for eof := false; !eof; {
		if _, err := c.call(nfs3.NFSPROC3_READDIRPLUS, &args); err != nil {
			return r, err
		}
		if err := errors.Join(c.flush(), c.nc.SetReadDeadline(time.Now().Add(silence))); err != nil {
			return r, err
		}
		_, results, err := c.reply()
		if err != nil {
			return r, err
		}
		n := 0
		if n, eof, err = turn(results, &args); err != nil {
			return r, err
		}
		if n == 0 && !eof {
			return r, errors.New("a page without entries")
		}
		r.Ops += n
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// turn counts the entries of a page and makes args ask for the next one.
func turn(results []byte, args *nfs3.READDIRPLUS3args) (n int, eof bool, err error) {
	var d xdr.Decoder
	d.Reset(results)
	if s := d.Uint32(); s != 0 {
		return 0, false, nfs3.Nfsstat3(s).Err()
	}
	const attrs = 84
	optional := func(size int) {
		if d.Uint32() != 0 {
			d.Fixed(size)
		}
	}
	optional(attrs)
	copy(args.Cookieverf[:], d.Fixed(8))
	for d.Uint32() != 0 && d.Err() == nil {
		d.Fixed(8)
		d.Opaque("name", 1024)
		args.Cookie = d.Uint64()
		optional(attrs)
		if d.Uint32() != 0 {
			d.Opaque("handle", 64)
		}
		n++
	}
	eof = d.Uint32() != 0
	return n, eof, d.Err()
}
