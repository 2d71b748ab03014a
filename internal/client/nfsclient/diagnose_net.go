package nfsclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

func (d *diagnosis) resolve(ctx context.Context, s *Step) error {
	if _, err := netip.ParseAddr(d.o.Host); err == nil || d.o.Dial != nil {
		d.addresses = []string{d.o.Host}
		s.Skipped, s.Detail = true, d.o.Host+" needs no name server"
		return nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", d.o.Host)
	if err != nil {
		s.Advice = "check how the host's name is written, and whether this machine's name server knows it; an address does as well"
		return err
	}
	for _, a := range found {
		d.addresses = append(d.addresses, a.Unmap().String())
	}
	slices.Sort(d.addresses)
	d.addresses = slices.Compact(d.addresses)
	s.Detail = d.o.Host + " is " + strings.Join(d.addresses, ", ")
	return nil
}

func (d *diagnosis) portmap(ctx context.Context) {
	if d.nfsPort() != 0 && cmp.Or(d.o.MountPort, d.o.Port) != 0 {
		d.report(Step{Name: "portmap", Skipped: true, Detail: "the ports are given"})
		return
	}
	_ = d.step(ctx, "portmap", d.ports) // later steps report what a failure prevents
}

// ports finds the ports of both services. A portmapper that does not answer is no error, because
// Mount goes on without. One that does not know the services is.
func (d *diagnosis) ports(ctx context.Context, s *Step) error {
	var found []string
	for _, service := range []*service{&nfsService, &mountService} {
		port, err := d.o.ask(ctx, service)
		switch {
		case errors.Is(err, errNotRegistered):
			s.Advice = fmt.Sprintf("start the service on the server; if it runs there, give its port in the URL: %s=", service.arg)
			return err
		case err != nil:
			s.Detail = err.Error()
			s.Advice = fmt.Sprintf("port %d is tried instead; if that does not do, or takes long, let port 111 of the server through, "+
				"or give in the URL %s", nfsPort, d.missingPorts())
			return nil
		}
		found = append(found, fmt.Sprintf("%s at port %d", service.name, port))
		if service == &nfsService {
			d.o.NFSPort = port
		}
	}
	s.Detail = strings.Join(found, ", ")
	return nil
}

// missingPorts says which arguments of the URL would replace the portmapper.
func (d *diagnosis) missingPorts() string {
	switch {
	case d.nfsPort() != 0:
		return mountService.arg + "="
	case d.o.MountPort != 0:
		return nfsService.arg + "="
	}
	return "the port that serves both, nfs://HOST:PORT/..., or nfsport= and mountport="
}

func (d *diagnosis) nfsPort() uint16 { return cmp.Or(d.o.NFSPort, d.o.Port) }

// connect tries every address of the host. It succeeds if one works.
func (d *diagnosis) connect(ctx context.Context, s *Step) error {
	tried := d.addresses[:min(len(d.addresses), maxAddresses)]
	port := cmp.Or(d.nfsPort(), nfsPort)
	var failed []error
	var lines []string
	for _, a := range tried {
		line, err := d.dialOne(ctx, a, port)
		if err != nil {
			failed = append(failed, err)
			line = err.Error()
		}
		lines = append(lines, line)
	}
	if len(failed) == len(tried) {
		return errors.Join(failed...) // these say everything
	}
	if n := len(d.addresses) - len(tried); n > 0 {
		lines = append(lines, fmt.Sprintf("%d further addresses were not tried", n))
	}
	s.Detail = strings.Join(lines, "\n")
	if len(failed) > 0 {
		s.Advice = "not all addresses of the host can be reached: each connection may begin with one that cannot, which takes time; " +
			"use an address instead of the name, or correct the name server"
	}
	return nil
}

func (d *diagnosis) dialOne(ctx context.Context, address string, port uint16) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	o := d.o
	o.Host = address
	start := time.Now()
	c, err := o.dialFirst(ctx, port)
	if err != nil {
		return "", err
	}
	took := time.Since(start)
	d.local = c.LocalAddr()
	line := fmt.Sprintf("%v in %v, from %v", c.RemoteAddr(), round(took), d.local)
	if p, ok := d.localPort(); ok && p > lastReserved {
		line += ", which is no privileged port"
	}
	return line, c.Close()
}

// localPort is the local port of a connection.
func (d *diagnosis) localPort() (int, bool) {
	a, ok := d.local.(*net.TCPAddr)
	if !ok {
		return 0, false
	}
	return a.Port, true
}

// mount reaches the MOUNT service and asks it for its exports.
func (d *diagnosis) mount(ctx context.Context, s *Step) error {
	o := d.o // connectMountd changes it
	m, err := connectMountd(ctx, &o, nil)
	if err != nil {
		return err
	}
	d.mountd = m
	left := new(ExportsError)
	if d.exports, err = m.exports(ctx); err != nil && !errors.As(err, &left) {
		s.Detail = "the MOUNT service answers, but does not list its exports: " + err.Error()
		return nil // some servers hide their exports; the path may still be right
	}
	s.Detail = "the server exports " + listExports(d.exports)
	if len(d.exports) == 0 {
		s.Detail, s.Advice = "the server exports nothing", fault.ExportIt
	}
	if err != nil {
		s.Detail, s.Advice = s.Detail+"\n"+left.Error(), "give these exports paths that can be mounted"
	}
	return nil
}

// mnt asks for the handle of the URL's directory, and looks the rest up.
func (d *diagnosis) mnt(ctx context.Context, s *Step) error {
	if err := d.conn.open(ctx, d.mountd); err != nil {
		return err
	}
	s.Detail = fmt.Sprintf("mounted %s", d.conn.mounted)
	if t := d.conn.target; t != "" {
		s.Detail += fmt.Sprintf(", in which the URL names %q", t)
	}
	return nil
}

// null measures the round trip of NULL calls to NFS.
func (d *diagnosis) null(ctx context.Context, s *Step) (err error) {
	if d.conn.rpc, _, err = d.o.connect(ctx, &nfsService); err != nil {
		return err
	}
	best, sum := time.Duration(1<<62), time.Duration(0)
	for range nullCalls {
		start := time.Now()
		reply, err := d.conn.rpc.Call(ctx, nfs3.NFSPROC3_NULL, oncrpc.Auth{}, xdr.Void{}, xdr.Void{})
		reply.Release()
		if err != nil {
			return err
		}
		took := time.Since(start)
		best, sum = min(best, took), sum+took
	}
	s.Detail = fmt.Sprintf("version 3 answers in %v at best, %v on average", round(best), round(sum/nullCalls))
	return nil
}

func round(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(10 * time.Microsecond)
}
