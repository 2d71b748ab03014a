package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// plain has the clients do a verb by HTTP's own methods. Each has a connection, on which
// it writes a request and reads the answer with net/http: as GoFsBench's client, without
// goroutines for it, and as curl without a checksum.
func plain(ctx context.Context, o *options, addr, verb string, n int) (figure, error) {
	how, ok := map[string]method{
		"upload": {http.MethodPut, http.StatusCreated}, "download": {http.MethodGet, http.StatusOK},
		"exist": {http.MethodHead, http.StatusOK}, "delete": {http.MethodDelete, http.StatusNoContent},
	}[verb]
	if !ok {
		return figure{}, fmt.Errorf("%q is no verb", verb)
	}
	clients := make([]*client, o.clients)
	defer func() {
		for _, c := range clients {
			if c != nil {
				_ = c.conn.Close() // it was answered, or has failed
			}
		}
	}()
	return load(ctx, o, n, func(ctx context.Context, who, i int) (err error) {
		if clients[who] == nil {
			if clients[who], err = connect(ctx, addr, !o.sync); err != nil {
				return err
			}
		}
		return clients[who].do(how, name(i))
	})
}

// method is a request's, and the status that is to come of it.
type method struct {
	name   string
	status int
}

// client is a connection, and what it needs.
type client struct {
	conn   net.Conn
	r      *bufio.Reader
	w      *bufio.Writer
	addr   string
	header http.Header // of a PUT
	buf    []byte
}

func connect(ctx context.Context, addr string, async bool) (*client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &client{conn: conn, r: bufio.NewReader(conn), w: bufio.NewWriterSize(conn, 64<<10), addr: addr, buf: make([]byte, size+1)}
	c.header = http.Header{"Nfsbox-Mode": {"0644"}, "Nfsbox-Sync": {fmt.Sprint(!async)}}
	return c, nil
}

func (c *client) do(how method, path string) error {
	q := &http.Request{Method: how.name, URL: &url.URL{Scheme: "http", Host: c.addr, Path: path}, ProtoMajor: 1, ProtoMinor: 1}
	if how.name == http.MethodPut {
		q.Header, q.Body, q.ContentLength = c.header, io.NopCloser(bytes.NewReader(content[:])), size
	}
	if err := q.Write(c.w); err != nil {
		return err
	}
	if err := c.w.Flush(); err != nil {
		return err
	}
	answer, err := http.ReadResponse(c.r, q)
	if err != nil {
		return err
	}
	got, err := io.ReadFull(answer.Body, c.buf)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	switch {
	case err != nil:
		return err
	case answer.StatusCode != how.status:
		return fmt.Errorf("%s %s: %s: %s", how.name, path, answer.Status, c.buf[:got])
	case how.name == http.MethodGet && got != size:
		return fmt.Errorf("%d bytes have come", got)
	}
	return nil
}
