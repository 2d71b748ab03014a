package jobs

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/wait"
)

const (
	orderFile    = "control.json"
	orderMagic   = "nfsbox-control"
	orderVersion = 1

	// askEvery is the time between two looks of a run for an order.
	askEvery = 500 * time.Millisecond
	// TakeTime is how long an order waits to be taken. Then it is withdrawn.
	TakeTime = 5 * time.Second
	// lookEvery is the time between two looks whether an order was taken, or a run has ended.
	lookEvery = 50 * time.Millisecond
)

// ErrNotTaken says that a run has not taken an order.
var ErrNotTaken = errors.New("the run has not taken it")

// Order is what a run is told by a file in its record's directory.
type Order struct {
	Magic   string `json:"magic"`
	Version int    `json:"version"`
	Cancel  bool   `json:"cancel,omitempty"` // it ends as by SIGINT
	Limits
}

// Send gives the run that has the record an order, and waits until it has taken it. If it has not
// in TakeTime, the error Is ErrNotTaken, and the order is withdrawn.
func (r *Record) Send(ctx context.Context, o Order) (err error) {
	dir, err := os.OpenRoot(r.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	o.Magic, o.Version = orderMagic, orderVersion
	text, err := json.Marshal(&o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, TakeTime)
	defer cancel()
	temp := "control." + rand.Text() + ".tmp"
	if err := dir.WriteFile(temp, append(text, '\n'), 0o600); err != nil {
		return errors.Join(err, dir.Remove(temp))
	}
	mine, err := place(ctx, dir, temp)
	if err = errors.Join(err, dir.Remove(temp)); err != nil {
		return err
	}
	for {
		now, err := dir.Lstat(orderFile)
		if err != nil || !os.SameFile(now, mine) {
			return nil // taken
		}
		if wait.For(ctx, lookEvery) != nil {
			return errors.Join(ErrNotTaken, dir.Remove(orderFile))
		}
	}
}

// place gives the file temp the name of an order, once that of another one has been taken: by a link,
// which replaces nothing.
func place(ctx context.Context, dir *os.Root, temp string) (fs.FileInfo, error) {
	mine, err := dir.Lstat(temp)
	if err != nil {
		return nil, err
	}
	for {
		err := dir.Link(temp, orderFile)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return mine, err
		}
		if wait.For(ctx, lookEvery) != nil {
			return nil, fmt.Errorf("%w: another order waits: %s", ErrNotTaken, filepath.Join(dir.Name(), orderFile))
		}
	}
}

// WaitEnd waits until no run has the record, or ctx has ended.
func (r *Record) WaitEnd(ctx context.Context) error {
	for {
		dir, err := os.OpenRoot(r.Dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it ended well, and has removed it
		}
		if err != nil {
			return err
		}
		_, held, err := r.held(dir)
		if err = errors.Join(err, dir.Close()); err != nil || !held {
			return err
		}
		if err := wait.For(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// orders takes orders from a record's directory.
type orders struct {
	dir  *os.Root
	told fs.FileInfo // what has been told to be wrong, and cannot be removed; nil: nothing
}

// Withdraw removes an order that was given to an earlier run. A run calls it first when it has locked the record in dir:
// what comes from then on is for this run, which is shown as running.
func Withdraw(dir *os.Root) {
	_ = dir.Remove(orderFile) // what stays is looked at, and told
}

// next takes the next order; ok is false if there is none. What is wrong with it is told once, also of one
// that cannot be removed.
func (o *orders) next() (order Order, ok bool, err error) {
	info, err := o.dir.Lstat(orderFile)
	if err != nil || o.told != nil && os.SameFile(info, o.told) && info.ModTime().Equal(o.told.ModTime()) {
		return order, false, nil
	}
	b, err := Read(o.dir, orderFile)
	if err == nil {
		order, err = decodeOrder(b)
	}
	if rerr := o.dir.Remove(orderFile); rerr != nil {
		o.told = info
		err = errors.Join(err, rerr)
	}
	if err != nil {
		return Order{}, false, fmt.Errorf("%s: %w; nothing is changed", filepath.Join(o.dir.Name(), orderFile), err)
	}
	return order, true, nil
}

// decodeOrder reads an order, of which nothing is believed.
func decodeOrder(b []byte) (o Order, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, fmt.Errorf("it is no order: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return o, errors.New("it is no order: more follows")
	}
	if o.Magic != orderMagic || o.Version != orderVersion {
		return o, fmt.Errorf("it is no order of this version: %q, %d", o.Magic, o.Version)
	}
	return o, o.Limits.check()
}
