package fileapi

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/export"
	remote "github.com/nfsbox/nfsbox/fileapi"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

var netipLoopback = netip.MustParseAddrPort("127.0.0.1:700")

// slowly opens an upload that sends no more than its beginning.
func (r *rig) slowly(n int) []net.Conn {
	r.Helper()
	conns := make([]net.Conn, n)
	body := uploadBody(large)
	for i := range conns {
		c := r.conn()
		conns[i] = c
		_, err := fmt.Fprintf(c, "POST /%s/Upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/connect+proto\r\nContent-Length: %d\r\n\r\n%s",
			pb.FileServiceName, len(body), body[:1000])
		if err != nil {
			r.Fatal(err)
		}
	}
	return conns
}

// inProgress waits until the server has so many calls.
func (r *rig) inProgress(n int) {
	r.Helper()
	for range 20_000 {
		if r.s.Snapshot().InProgress == n {
			return
		}
		time.Sleep(time.Millisecond) // for other ends of connections
	}
	r.Fatalf("%d calls are in progress, want %d", r.s.Snapshot().InProgress, n)
}

// TestSlowClients has many clients that send next to nothing, and one that is as fast
// as ever.
func TestSlowClients(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 200
	}
	r := newRig(t, nil, nil)
	r.make("/dir", aDir, "")
	slow := r.slowly(n)
	r.inProgress(n)
	s := r.s.Snapshot()
	if s.Memory > int64(n)*portion {
		t.Errorf("%d slow clients hold %d bytes", n, s.Memory)
	}
	start := time.Now()
	for i := range 200 {
		if _, err := r.client["protobuf"].Put(t.Context(), &pb.PutRequest{File: &pb.PutRequest_Path{Path: "/dir/fast"}, Data: large[:50<<10]}); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	t.Logf("%d slow clients, %d bytes held; 200 calls of a fast one took %v", n, s.Memory, time.Since(start))
	for _, c := range slow {
		_ = c.Close()
	}
	r.gone()
	if tree := r.tree(); strings.Contains(tree, tempPrefix) || strings.Contains(tree, `"/dir/file"`) {
		t.Error("something of the slow uploads is left")
	}
}

// TestIdle cuts off those who neither send nor take.
func TestIdle(t *testing.T) {
	timed(t, func(o *Options) { o.Limits.Idle = 100 * time.Millisecond }, testIdle)
}

func testIdle(r *rig) {
	r.make("/dir", aDir, "")
	r.make("/large", aFile, string(random(24<<20)))
	before := r.tree()
	slow := r.slowly(20)
	for range 20 { // clients that ask for a large file, and take nothing
		c := r.conn()
		slow = append(slow, c)
		q := prefixed(`{"path":"/large"}`)
		if _, err := fmt.Fprintf(c, "POST /%s/Download HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/connect+json\r\nContent-Length: %d\r\n\r\n%s",
			pb.FileServiceName, len(q), q); err != nil {
			r.Fatal(err)
		}
	}
	for i := 0; r.s.Snapshot().Calls["Upload"].Errors+r.s.Snapshot().Calls["Download"].Errors < 40; i++ {
		if i == 20_000 {
			r.Fatalf("not all slow calls were cut off: %+v", r.s.Snapshot())
		}
		time.Sleep(time.Millisecond) // for the server's clock
	}
	answer := make([]byte, 512)
	k, err := slow[0].Read(answer)
	if err != nil || !bytes.Contains(answer[:k], []byte("200 OK")) {
		r.Errorf("a slow upload is answered with %q, %v", answer[:k], err)
	}
	for _, c := range slow {
		_ = c.Close()
	}
	r.gone()
	if r.tree() != before {
		r.Error("the tree has changed")
	}
	if n := r.s.Snapshot().Slow; n != 40 {
		r.Errorf("%d calls count as slow, want 40", n)
	}
	r.denied(0, 0)
	// A client that pauses between calls is not slow: the connection is good for another one.
	for range 3 {
		if _, err := r.client["protobuf"].Echo(r.Context(), &pb.EchoRequest{}); err != nil {
			r.Fatal(err)
		}
		time.Sleep(150 * time.Millisecond) // longer than Idle: what the test is about
	}
}

// TestSlowDisk has calls whose clients wait for the disk, and pause while it works, for
// longer than they may be idle. On a busy machine they are also late by themselves: then
// all takes longer, in the same proportion, and is tried again.
func TestSlowDisk(t *testing.T) {
	for idle := 400 * time.Millisecond; ; idle *= 2 {
		err := slowDisk(t, idle)
		if err == nil {
			return
		}
		if idle > 5*time.Second {
			t.Fatal(err)
		}
		t.Logf("%v may pass: %v", idle, err)
	}
}

func slowDisk(t *testing.T, idle time.Duration) error {
	disk, pause := idle*3/2, idle*5/4
	fs := memfs.New(memfs.Options{Fault: func(ctx context.Context, op string, _ vfs.Handle) error {
		if op == "read" || op == "write" || op == "rename" {
			select {
			case <-time.After(disk):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}})
	r := newRig(t, fs, func(o *Options) { o.Limits.Idle = idle })
	errs := make([]error, len(encodings))
	var all sync.WaitGroup
	for i, encoding := range encodings {
		all.Go(func() {
			if err := slowly(t.Context(), r.client[encoding], fmt.Sprint("/f", i), pause); err != nil {
				errs[i] = fmt.Errorf("%s: %w", encoding, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// slowly stores a file, with a pause before its end, and reads it.
func slowly(ctx context.Context, c pb.FileServiceClient, path string, pause time.Duration) error {
	stream, err := c.Upload(ctx)
	if err != nil {
		return err
	}
	err = errors.Join(
		stream.Send(&pb.UploadRequest{Part: &pb.UploadRequest_Header{Header: &pb.UploadHeader{File: &pb.UploadHeader_Path{Path: path}}}}),
		stream.Send(&pb.UploadRequest{Part: &pb.UploadRequest_Data{Data: small}}),
	)
	time.Sleep(pause) // the server does not wait for us: it writes
	err = errors.Join(err, stream.Send(&pb.UploadRequest{Part: &pb.UploadRequest_Trailer{Trailer: &pb.UploadTrailer{Size: uint64(len(small))}}}))
	if _, done := stream.CloseAndReceive(); errors.Join(err, done) != nil {
		return fmt.Errorf("upload: %w", errors.Join(err, done))
	}
	data, _, err := download(ctx, c, &pb.DownloadRequest{File: &pb.DownloadRequest_Path{Path: path}})
	if err == nil && !bytes.Equal(data, small) {
		err = fmt.Errorf("it is %q", data)
	}
	if err != nil {
		return fmt.Errorf("download: %w", err)
	}
	return nil
}

// denied expects that n requests were denied for that reason, and none for another; 0 is
// for none at all.
func (r *rig) denied(why Reason, n uint64) {
	r.Helper()
	want := map[string]uint64{"unauthenticated": 0, "too_many": 0, "too_large": 0, "closing": 0}
	if why != 0 {
		want[why.String()] = n
	}
	if got := r.s.Snapshot().Denied; !maps.Equal(got, want) {
		r.Errorf("denied were %v, want %v", got, want)
	}
}

// TestBounds reaches every bound, and sees what is beyond it refused.
func TestBounds(t *testing.T) {
	t.Run("calls", func(t *testing.T) {
		r := newRig(t, nil, func(o *Options) {
			o.Limits.Calls, o.Limits.CallsPerClient = 5, 3
			o.Callers = callersOf(t, "a 0:0 token:"+token+"\nb 0:0 token:"+other)
		})
		r.make("/dir", aDir, "")
		slow := r.slowly(3)
		r.inProgress(3)
		_, err := r.client["protobuf"].Echo(t.Context(), &pb.EchoRequest{})
		if connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Errorf("one call more of a client: %v", err)
		}
		c, err := remote.New("http://"+r.addr, remote.Options{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Echo(t.Context(), small); err != nil {
			t.Errorf("another client: %v", err)
		}
		for _, c := range slow {
			_ = c.Close()
		}
		r.inProgress(0)
		if _, err := r.client["protobuf"].Echo(t.Context(), &pb.EchoRequest{}); err != nil {
			t.Errorf("when there is room again: %v", err)
		}
		r.denied(TooMany, 1)
	})
	t.Run("memory", func(t *testing.T) {
		r := newRig(t, nil, func(o *Options) { o.Limits.MemoryPerClient = 300 << 10 })
		put := func(n int) error {
			_, err := r.client["protobuf"].Put(t.Context(), &pb.PutRequest{File: &pb.PutRequest_Path{Path: "/f"}, Data: large[:n]})
			return err
		}
		if err := put(90 << 10); err != nil {
			t.Errorf("what fits: %v", err)
		}
		if err := put(250 << 10); connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Errorf("what does not fit: %v", err)
		}
		if _, err := upload(t.Context(), r.client["grpc"], &pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/f"}}, large, 50_000, &pb.UploadTrailer{Size: uint64(len(large))}); err != nil {
			t.Errorf("parts that fit: %v", err)
		}
		r.denied(TooMany, 1)
	})
	t.Run("size", func(t *testing.T) {
		r := newRig(t, nil, func(o *Options) { o.Limits.FileSize = 100_000 })
		before := r.tree()
		_, err := upload(t.Context(), r.client["grpc"], &pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/f"}}, large, 40_000, &pb.UploadTrailer{Size: uint64(len(large))})
		if connect.CodeOf(err) != connect.CodeOutOfRange {
			t.Errorf("a file that is too large: %v", err)
		}
		if r.tree() != before {
			t.Error("something of it is there")
		}
		r.denied(TooLarge, 1)
	})
	t.Run("total", func(t *testing.T) {
		limits := func(o *Options) { o.Limits.Total = 50 * time.Millisecond; o.Limits.Idle = 200 * time.Millisecond }
		timed(t, limits, func(r *rig) {
			r.make("/dir", aDir, "")
			slow := r.slowly(3)
			for _, c := range slow {
				answer, _ := io.ReadAll(c)
				if !bytes.Contains(answer, []byte("deadline_exceeded")) {
					r.Errorf("a call that takes too long is answered with %q", answer)
				}
				_ = c.Close()
			}
		})
	})
	t.Run("connections", func(t *testing.T) {
		r := newRig(t, nil, func(o *Options) { o.Limits.Conns = 3 })
		r.make("/dir", aDir, "")
		slow := r.slowly(3)
		r.inProgress(3)
		if _, err := r.client["json"].Echo(t.Context(), &pb.EchoRequest{}); err == nil {
			t.Error("one connection more is answered")
		}
		r.denied(TooMany, 1)
		for _, c := range slow {
			_ = c.Close()
		}
		r.inProgress(0)
	})
}

// TestConfinement has links and exports that could lead out.
func TestConfinement(t *testing.T) {
	outer, inner := newMemory(t), newMemory(t)
	r := newRig(t, outer, func(o *Options) {
		table, err := export.NewTable(export.Key{1}, export.Export{Path: "/", FS: outer}, export.Export{Path: "/in", FS: inner},
			export.Export{Path: "/ro", FS: inner, ReadOnly: true}, export.Export{Path: "/not", FS: inner, Clients: []export.Rule{{Match: "192.0.2.1"}}})
		if err != nil {
			t.Fatal(err)
		}
		o.Table = table
	})
	r.make("/secret", aFile, "outer")
	r.make("/in", aDir, "")
	r.make("/in/secret", aFile, "hidden below the other export")
	in := &rig{TB: t, fs: inner}
	in.make("/up", aLink("../secret"), "")
	in.make("/abs", aLink("/secret"), "")
	in.make("/far", aLink("../../../../../../secret"), "")
	in.make("/dir", aDir, "")
	in.make("/dir/secret", aFile, "inner")
	in.make("/dir/link", aLink("/dir"), "")
	get := func(path string) string {
		m, err := r.client["json"].Get(t.Context(), &pb.GetRequest{File: &pb.GetRequest_Path{Path: path}})
		if err != nil {
			return connect.CodeOf(err).String()
		}
		return string(m.GetData())
	}
	for path, want := range map[string]string{
		"/secret": "outer", "/in/up": "not_found", "/in/abs": "not_found", "/in/far": "not_found", "/in/secret": "not_found",
		"/in/dir/secret": "inner", "/in/dir/link/link/secret": "inner", "/ro/dir/secret": "inner", "/not/dir/secret": "permission_denied",
		"/inn": "not_found", "/in/../secret": "invalid_argument",
	} {
		if got := get(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if _, err := r.client["json"].Put(t.Context(), &pb.PutRequest{File: &pb.PutRequest_Path{Path: "/ro/dir/new"}}); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a read-only export: %v", err)
	}
	// What an upload replaces is the name, not what a link leads to.
	in.make("/dir/alias", aLink("secret"), "")
	if _, err := r.client["json"].Put(t.Context(), &pb.PutRequest{File: &pb.PutRequest_Path{Path: "/in/dir/alias"}, Data: []byte("new")}); err != nil {
		t.Fatal(err)
	}
	if a, b := get("/in/dir/alias"), get("/in/dir/secret"); a != "new" || b != "inner" {
		t.Errorf("the link's name is %q now, and what it led to %q", a, b)
	}
}

// TestPages lists a large directory while it changes, and hides what is the server's.
func TestPages(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		r := newRig(t, fs, nil)
		r.make("/d", aDir, "")
		for i := range 500 {
			r.make(fmt.Sprintf("/d/stays%d", i), aFile, "")
			if i%10 == 0 {
				r.make(fmt.Sprintf("/d/%s0-%d", tempPrefix, i), aFile, "")
				r.make(fmt.Sprintf("/d/goes%d", i), aFile, "")
			}
		}
		seen := make(map[string]int)
		q := &pb.ListRequest{File: &pb.ListRequest_Path{Path: "/d"}, PageSize: 7}
		for pages := 0; ; pages++ {
			m, err := r.client["protobuf"].List(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.GetEntries()) > 7 {
				t.Fatalf("a page of %d entries", len(m.GetEntries()))
			}
			for _, e := range m.GetEntries() {
				seen[e.GetName()]++
			}
			if pages < 50 {
				if _, err := r.client["protobuf"].Delete(t.Context(), &pb.DeleteRequest{File: &pb.DeleteRequest_Path{Path: fmt.Sprintf("/d/goes%d", pages*10)}}); err != nil {
					t.Fatal(err)
				}
			}
			if q.PageToken = m.GetNextPageToken(); q.PageToken == "" {
				break
			}
		}
		for i := range 500 {
			if n := seen[fmt.Sprintf("stays%d", i)]; n != 1 {
				t.Errorf("stays%d is listed %d times", i, n)
			}
		}
		for name, n := range seen {
			if n != 1 || reserved(name) {
				t.Errorf("%s is listed %d times", name, n)
			}
		}
	})
}

// TestChanging downloads a file that is written to meanwhile.
func TestChanging(t *testing.T) {
	r := newRig(t, nil, nil)
	h := r.make("/f", aFile, string(random(32<<20)))
	stream, err := r.client["protobuf"].Download(t.Context(), &pb.DownloadRequest{File: &pb.DownloadRequest_Path{Path: "/f"}})
	if err != nil || !stream.Receive() {
		t.Fatal(err, stream.Err())
	}
	// The rest does not fit between the two: the server is still reading.
	f, _, err := r.fs.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		t.Fatal(err)
	}
	var w vfs.Written
	_, err = f.WriteAt(t.Context(), []byte("x"), 1, vfs.FileSync, &w)
	if err := errors.Join(err, f.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	for stream.Receive() {
		if stream.Msg().GetTrailer() != nil {
			t.Error("a trailer says that all is well")
		}
	}
	if err := stream.Err(); connect.CodeOf(err) != connect.CodeAborted {
		t.Errorf("%v, want aborted", err)
	}
	_ = stream.Close() // its error is the stream's
}

// TestTLS comes with client certificates, over HTTP/2 and HTTP/1.1.
func TestTLS(t *testing.T) {
	server, pool := certificate(t, "server")
	client, clients := certificate(t, "laptop")
	stranger, _ := certificate(t, "laptop")
	r := newRig(t, nil, func(o *Options) {
		o.Loopback = nil
		o.Callers = callersOf(t, "laptop 0:0 subject:CN=laptop")
		o.TLS = &tls.Config{Certificates: []tls.Certificate{server}, ClientCAs: clients, ClientAuth: tls.VerifyClientCertIfGiven}
	})
	for _, http2 := range []bool{false, true} {
		try := func(certs ...tls.Certificate) error {
			c, err := remote.New("https://"+r.addr, remote.Options{HTTP2: http2, TLS: &tls.Config{RootCAs: pool, Certificates: certs}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.Stat(t.Context(), "/")
			return err
		}
		if err := try(client); err != nil {
			t.Errorf("HTTP/2 %t: with a certificate: %v", http2, err)
		}
		if err := try(); connect.CodeOf(err) != connect.CodeUnauthenticated {
			t.Errorf("HTTP/2 %t: without one: %v", http2, err)
		}
		if err := try(stranger); err == nil {
			t.Errorf("HTTP/2 %t: one of another authority's is believed", http2)
		}
	}
}

// certificate is one that is its own authority.
func certificate(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}
