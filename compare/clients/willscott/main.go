// Command willscott drives github.com/willscott/go-nfs-client, the usual NFS
// client in Go.
package main

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/nfsbox/nfsbox/compare/clients/drive"
	"github.com/willscott/go-nfs-client/nfs"
	"github.com/willscott/go-nfs-client/nfs/rpc"
)

type client struct {
	t    *nfs.Target
	name string
	h    []byte
	size int64
	file *nfs.File
}

func main() { drive.Main(dial) }

func dial(t *drive.Task) (drive.Client, error) {
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(u.Query().Get("nfsport"))
	if err != nil {
		return nil, fmt.Errorf("nfsport in the URL: %w", err)
	}
	conn, err := nfs.DialServiceAtPort(u.Hostname(), port) // NFS and MOUNT are on one port
	if err != nil {
		return nil, err
	}
	m := &nfs.Mount{Client: conn}
	w := &client{name: t.Name}
	if w.t, err = m.Mount(u.Path, rpc.NewAuthUnix("compare", 0, 0).Auth()); err != nil {
		return nil, err
	}
	if t.Op == "list" {
		return w, nil
	}
	info, h, err := w.t.Lookup(t.Name)
	if err != nil {
		return nil, err
	}
	w.h, w.size = h, info.Size()
	w.file, err = w.t.Open(t.Name)
	return w, err
}

func (w *client) Size() int64 { return max(w.size, drive.ReadSize) }

func (w *client) Getattr() error {
	_, err := w.t.GetAttr(w.h)
	return err
}

func (w *client) Read(p []byte, off int64) error {
	n, err := w.file.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	return fmt.Errorf("%d of %d bytes read: %w", n, len(p), err)
}

func (w *client) List() (int, error) {
	list, err := w.t.ReadDirPlus(w.name)
	return len(list), err
}

func (w *client) Close() error {
	w.t.Close()
	return nil
}
