package fileapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/server/object"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestCodes holds the table in docs/file-api.md against the one in the code.
func TestCodes(t *testing.T) {
	page, err := os.ReadFile("../../../docs/file-api.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]string)
	_, table, _ := strings.Cut(string(page), "| code | HTTP | status | meaning |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		if cells := strings.Split(row, "|"); len(cells) == 6 && strings.Contains(cells[1], "`") {
			for name := range strings.SplitSeq(cells[3], ",") {
				documented[strings.TrimSpace(name)] = strings.Trim(cells[1], " `")
			}
		}
	}
	for status, code := range codes {
		if got := documented[status.Name()]; got != code.String() {
			t.Errorf("%s is %v, and %q on the page", status.Name(), code, got)
		}
	}
	if len(documented) < len(codes) {
		t.Errorf("the page has %d statuses, and there are %d", len(documented), len(codes))
	}
}

// TestWire makes errors of all kinds into the client's, and tells the operator of
// those that are the server's fault, and of no others.
func TestWire(t *testing.T) {
	for _, c := range []struct {
		err      error
		code     connect.Code
		reported bool
	}{
		{vfs.ErrNoEnt, connect.CodeNotFound, false},
		{fmt.Errorf("x: %w", vfs.ErrROFS), connect.CodePermissionDenied, false},
		{syscall.ENOSPC, connect.CodeResourceExhausted, false},
		{syscall.ELOOP, connect.CodeInvalidArgument, false},
		{vfs.ErrBusy, connect.CodeUnavailable, false},
		{vfs.ErrIO, connect.CodeInternal, true},
		{vfs.ErrServerFault, connect.CodeInternal, true},
		{errors.New("a secret of the server's"), connect.CodeInternal, true},
		{context.Canceled, connect.CodeCanceled, false},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), connect.CodeDeadlineExceeded, false},
		{fmt.Errorf("%w: %w", vfs.ErrUnknownOutcome, context.Canceled), connect.CodeUnknown, false},
		{object.Fail("get", "k", object.ErrNotExist), connect.CodeNotFound, false},
		{object.Fail("get", "k", object.ErrCorrupted), connect.CodeDataLoss, false},
		{object.Fail("get", "k", object.ErrClosed), connect.CodeInternal, true},
		{errChanged, connect.CodeAborted, false},
	} {
		var reported error
		s := &Server{o: Options{Report: func(err error) { reported = err }}}
		err := s.wire(c.err)
		if connect.CodeOf(err) != c.code || (reported != nil) != c.reported {
			t.Errorf("%v: %v, reported: %v; want %v, %t", c.err, err, reported, c.code, c.reported)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("a client is told %v", err)
		}
	}
	if (&Server{}).wire(nil) != nil {
		t.Error("no error is one")
	}
}

// TestErrorsOfHTTP: an answer with an error says what is wrong, its code, and what to do, in
// text and in JSON. A name in it cannot steer a terminal.
func TestErrorsOfHTTP(t *testing.T) {
	r := newRig(t, nil, func(o *Options) { o.Limits.FileSize = 10 })
	r.make("/dir", aDir, "")
	r.make("/dir/f", aFile, "")
	for _, tt := range []struct {
		method, path, body string
		status             int
		code, errno        string
		text, advice       string // parts
	}{
		{"GET", "/none", "", 404, "not_found", "ENOENT", "no such file or directory", "as it is on the server"},
		{"GET", "/%1b%5b31m%E2%80%AE/f", "", 404, "not_found", "ENOENT", `\x1b[31m\u202e: no such`, "as it is on the server"},
		{"PUT", "/none/f", "x", 409, "not_found", "ENOENT", "no such file or directory", ""},
		{"PUT", "/dir", "x", 409, "failed_precondition", "EISDIR", "is a directory", ""},
		{"DELETE", "/dir/", "", 409, "failed_precondition", "ENOTEMPTY", "directory not empty", ""},
		{"PUT", "/f", "longer than it may be", 413, "out_of_range", "EFBIG", "larger than this server takes", ""},
		{"GET", "/a/../b", "", 400, "invalid_argument", "EOTHER", `the path holds a ".."`, ""},
		{"TRACE", "/dir/f", "", 405, "unimplemented", "EOTHER", "files have the methods", ""},
	} {
		text := r.expect(tt.status, tt.method, tt.path, tt.body)
		first, second, _ := strings.Cut(text.body, "\n")
		coded := strings.HasSuffix(first, " ("+tt.errno+")")
		if !strings.Contains(first, tt.text) || coded != (tt.errno != "EOTHER") || !strings.Contains(second, tt.advice) || strings.ContainsFunc(text.body, control) {
			t.Errorf("%s %s: %q", tt.method, tt.path, text.body)
		}
		var got struct {
			Code, Message string
			Error         struct{ Code, Message, Advice string }
		}
		answer := r.expect(tt.status, tt.method, tt.path, tt.body, "Accept", "application/json")
		if err := json.Unmarshal([]byte(answer.body), &got); err != nil {
			t.Fatal(err)
		}
		if got.Code != tt.code || got.Error.Code != tt.errno || got.Message != got.Error.Message ||
			!strings.Contains(got.Message, tt.text) || !strings.Contains(got.Error.Advice, tt.advice) || strings.ContainsFunc(got.Message, control) {
			t.Errorf("%s %s: %s", tt.method, tt.path, answer.body)
		}
	}
}

// TestErrorsOfCalls: a name in the error of a call cannot steer a terminal, by whatever protocol it
// came, and the error's detail and cause are there.
func TestErrorsOfCalls(t *testing.T) {
	r := newRig(t, nil, nil)
	for _, encoding := range encodings {
		_, err := r.client[encoding].Stat(t.Context(), &pb.StatRequest{File: &pb.StatRequest_Path{Path: "/a\u009b31m\x1b/f"}})
		e, ok := errors.AsType[*connect.Error](err)
		if !ok || e.Code() != connect.CodeNotFound || e.Message() != `resolve a\u009b31m\x1b: no such file or directory` || len(e.Details()) != 1 {
			t.Errorf("%s: %q", encoding, err)
		}
		_, _, err = download(t.Context(), r.client[encoding], &pb.DownloadRequest{File: &pb.DownloadRequest_Path{Path: "/\u009b/f"}})
		if e, ok := errors.AsType[*connect.Error](err); !ok || strings.ContainsFunc(e.Message(), control) {
			t.Errorf("%s, a stream: %q", encoding, err)
		}
	}
}

// control reports whether a rune could steer a terminal.
func control(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
