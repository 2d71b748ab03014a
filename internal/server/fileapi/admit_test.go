package fileapi

import (
	"errors"
	"fmt"
	"testing"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// TestAdmission takes all calls and all memory that one may, of everybody and of one
// client: one more is refused, and leaving gives back all, that of the refused call too.
func TestAdmission(t *testing.T) {
	a := &admission{
		limits:  &Limits{Calls: 3, CallsPerClient: 2, Memory: 4 * portion, MemoryPerClient: 2 * portion},
		buffers: new(bufpool.Pool), clients: make(map[string]*client),
	}
	enter := func(who string) *call {
		c, err := a.enter(who)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	exhausted := func(what string, err error) {
		t.Helper()
		d, _ := errors.AsType[*denial](err)
		if connect.CodeOf(err) != connect.CodeResourceExhausted || d == nil || d.why != TooMany {
			t.Errorf("%s: %v", what, err)
		}
	}
	one, two := enter("a"), enter("a")
	_, err := a.enter("a")
	exhausted("a client's third call", err)
	three := enter("b")
	_, err = a.enter("b")
	exhausted("the fourth call", err)

	if err := errors.Join(one.hold(portion), two.hold(1), two.hold(portion-1), three.hold(1)); err != nil {
		t.Fatal(err)
	}
	exhausted("more than a client's memory", one.hold(1))
	one.letGo()
	if err := one.hold(portion); err != nil {
		t.Error(err)
	}
	exhausted("more than is free", three.hold(portion))
	if calls, _, memory := a.inProgress(); calls != 3 || memory != 4*portion { // the refused one's, until it leaves
		t.Errorf("%d calls hold %d bytes", calls, memory)
	}
	for _, c := range []*call{one, two, three} {
		c.leave()
	}
	if calls, _, memory := a.inProgress(); calls != 0 || memory != 0 || len(a.clients) != 0 {
		t.Errorf("%d calls of %d clients hold %d bytes, and all have left", calls, len(a.clients), memory)
	}
	a.close()
	if _, err := a.enter("a"); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("after close: %v", err)
	}
}

// TestAdmissionManyGreedy: callers that take all that they can, one after the other,
// leave a call and memory to the next caller.
func TestAdmissionManyGreedy(t *testing.T) {
	const most = 64
	a := &admission{
		limits:  &Limits{Calls: most, CallsPerClient: most, Memory: most * portion, MemoryPerClient: most * portion},
		buffers: new(bufpool.Pool), clients: make(map[string]*client),
	}
	var all []*call
	for who, want := range []int{32, 16, 8, 4, 2} {
		var mine []*call
		for c, err := a.enter(fmt.Sprint(who)); err == nil; c, err = a.enter(fmt.Sprint(who)) {
			mine = append(mine, c)
		}
		for i, c := range mine {
			if err := c.hold(portion); err != nil {
				t.Errorf("caller %d: memory of call %d: %v", who, i, err)
			}
		}
		if len(mine) != want || mine[0].hold(portion) == nil {
			t.Fatalf("caller %d has %d calls, want %d, or more memory than that", who, len(mine), want)
		}
		mine[0].leave() // what was refused is given back
		again, err := a.enter(fmt.Sprint(who))
		if err == nil {
			err = again.hold(portion)
		}
		if err != nil {
			t.Fatalf("caller %d: when there is room again: %v", who, err)
		}
		all = append(append(all, again), mine[1:]...)
	}
	honest, err := a.enter("honest")
	if err != nil {
		t.Fatal(err)
	}
	if err := honest.hold(portion); err != nil {
		t.Error(err)
	}
	for _, c := range append(all, honest) {
		c.leave()
	}
	if calls, _, memory := a.inProgress(); calls != 0 || memory != 0 {
		t.Errorf("%d calls hold %d bytes, and all have left", calls, memory)
	}
}

// TestMaxPage asks for pages larger than any is.
func TestMaxPage(t *testing.T) {
	r := newRig(t, nil, nil)
	r.make("/dir", aDir, "")
	for i := range maxPage + 1 {
		r.make(fmt.Sprintf("/dir/%d", i), aFile, "")
	}
	for _, size := range []uint32{0, maxPage, maxPage + 1, 1<<32 - 1} {
		q := &pb.ListRequest{File: &pb.ListRequest_Path{Path: "/dir"}, PageSize: size}
		first, err := r.client["protobuf"].List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		q.PageToken = first.GetNextPageToken()
		second, err := r.client["protobuf"].List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(first.GetEntries()) != maxPage || len(second.GetEntries()) != 1 || second.GetNextPageToken() != "" {
			t.Errorf("of size %d: %d entries, then %d, %q", size, len(first.GetEntries()), len(second.GetEntries()), second.GetNextPageToken())
		}
	}
}
