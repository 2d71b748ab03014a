// Package objecttest is the suite that every object.Store passes. It checks a driver
// against the documentation of package object, call by call, and then compares it with
// the fake in memory over random calls.
package objecttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// Config says what is tested.
type Config struct {
	// New makes an empty store, which the suite closes. All else it cleans up by
	// t.Cleanup.
	New func(t *testing.T) object.Store

	// Reopen, if not nil, closes s and opens what it has stored anew.
	Reopen func(t *testing.T, s object.Store) object.Store

	// Corrupt, if not nil, changes a byte of the stored content of key behind the
	// store's back.
	Corrupt func(t *testing.T, s object.Store, key string)

	// Racers is how many goroutines do one thing at once; 0 is defaultRacers.
	Racers int
}

const (
	defaultRacers = 1000
	putters       = 16      // at once, where there is much to put
	large         = 300_000 // bytes: more than any driver should move at once
)

// env is what a test works with.
type env struct {
	*testing.T
	c Config
	s object.Store
}

type test struct {
	name string
	run  func(*env)
}

// Run runs the suite as subtests of t, each with a store of its own.
func Run(t *testing.T, c Config) {
	if c.Racers == 0 {
		c.Racers = defaultRacers
	}
	for _, group := range [][]test{putTests, getTests, listTests, deleteTests, keyTests, contentTests, concurrentTests, modelTests} {
		for _, test := range group {
			t.Run(test.name, func(t *testing.T) {
				e := &env{t, c, c.New(t)}
				test.run(e)
				if err := e.s.Close(); err != nil {
					t.Errorf("closing the store: %v", err)
				}
			})
		}
	}
}

func (e *env) ctx() context.Context { return e.Context() }

// wantErr wants err to be one of the contract, with what was tried.
func (e *env) wantErr(err, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Fatalf("the error is %v, want %v", err, want)
	}
	var typed *object.Error
	if !errors.As(err, &typed) {
		e.Errorf("the error %v is no *object.Error", err)
	}
}

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// anything stands for options that announce nothing.
var anything = object.PutOptions{Size: -1}

func (e *env) put(key string, content []byte) object.Info {
	e.Helper()
	info, err := e.s.Put(e.ctx(), key, bytes.NewReader(content), anything)
	e.ok(err)
	e.wantInfo(info, key, content)
	return info
}

func (e *env) wantInfo(info object.Info, key string, content []byte) {
	e.Helper()
	if info.Key != key || info.Size != int64(len(content)) || info.Sum != object.SumOf(content) || info.ModTime.IsZero() {
		e.Fatalf("what is said of %s is %+v; it has %d bytes of sum %v", key, info, len(content), object.SumOf(content))
	}
}

// get reads a part of an object, in pieces of an odd size.
func (e *env) get(key string, off, n int64) ([]byte, object.Info, error) {
	e.Helper()
	r, info, err := e.s.Get(e.ctx(), key, off, n)
	if err != nil {
		return nil, info, err
	}
	var all []byte
	for p := make([]byte, 70_001); ; {
		n, err := r.Read(p)
		all = append(all, p[:n]...)
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return all, info, errors.Join(err, r.Close())
	}
}

// want wants the object of key to be content, by Get, Stat and List.
func (e *env) want(key string, content []byte) {
	e.Helper()
	got, info, err := e.get(key, 0, -1)
	e.ok(err)
	e.wantInfo(info, key, content)
	if !bytes.Equal(got, content) {
		e.Fatalf("%s has %d bytes, which are not the %d that were put", key, len(got), len(content))
	}
	info, err = e.s.Stat(e.ctx(), key)
	e.ok(err)
	e.wantInfo(info, key, content)
	page, err := e.s.List(e.ctx(), key, "", 1)
	e.ok(err)
	if len(page.Objects) != 1 || page.Objects[0].Key != key || page.Objects[0].Size != int64(len(content)) {
		e.Fatalf("a listing from %s on is %+v", key, page)
	}
}

func (e *env) wantNone(key string) {
	e.Helper()
	_, err := e.s.Stat(e.ctx(), key)
	e.wantErr(err, object.ErrNotExist)
	_, _, err = e.s.Get(e.ctx(), key, 0, -1)
	e.wantErr(err, object.ErrNotExist)
	page, err := e.s.List(e.ctx(), key, "", 0)
	e.ok(err)
	for _, o := range page.Objects {
		if o.Key == key {
			e.Fatalf("%s is listed", key)
		}
	}
}

// random makes content that depends on the seed.
func random(seed uint64, n int) []byte {
	r := rand.NewPCG(seed, 1)
	b := make([]byte, 0, n+8)
	for len(b) < n {
		v := r.Uint64()
		b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24), byte(v>>32), byte(v>>40), byte(v>>48), byte(v>>56))
	}
	return b[:n]
}
