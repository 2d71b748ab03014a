package fileapi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/server/object"
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
