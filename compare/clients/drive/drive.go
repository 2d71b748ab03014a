// Package drive is what the drivers of Go clients have in common: arguments, the
// loop, the clock, and the line that they print. The driver in C does the same.
//
//	driver URL OP DEPTH SECONDS COUNT NAME
//
// OP is getattr, read (1 MiB) or list; with SECONDS 0 it ends after COUNT
// operations. NAME is a file, or for list a directory, below the URL's.
package drive

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ReadSize is the size of one READ.
const ReadSize = 1 << 20

// maxSamples is how many latencies are kept, all callers together.
const maxSamples = 1 << 22

// Client is a client under test, connected, with its file open.
type Client interface {
	// Getattr asks for the file's attributes.
	Getattr() error
	// Read reads len(p) bytes of the file at off.
	Read(p []byte, off int64) error
	// List lists the directory and returns how many entries it has.
	List() (int, error)
	// Size is the file's size.
	Size() int64
	Close() error
}

// ErrNotOffered is the answer of a client that does not have the operation.
var ErrNotOffered = errors.New("this client does not offer it")

// Task is what is to be driven.
type Task struct {
	URL, Op, Name string
	Depth         int
	Seconds       float64
	Count         uint64
}

// Result is what is printed.
type Result struct {
	Ops     uint64  `json:"ops"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_us"` // microseconds of this process per operation
	P50     float64 `json:"p50_us"`
	P99     float64 `json:"p99_us"`
	Bytes   uint64  `json:"bytes"`
	Allocs  float64 `json:"allocs"` // per operation
}

// warmUp is how many seconds a client is driven for before it is measured. Ours needs 0.2
// to find out how many calls at once the server does well with.
const warmUp = 0.3

// Main drives the client that dial connects.
func Main(dial func(*Task) (Client, error)) {
	if err := run(dial); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dial func(*Task) (Client, error)) error {
	task, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	c, err := dial(task)
	if err != nil {
		return err
	}
	if task.Count == 0 && task.Op != "list" {
		warm := *task
		warm.Seconds = warmUp
		_, err = measure(c, &warm)
	}
	var result *Result
	if err == nil {
		result, err = measure(c, task)
	}
	if err = errors.Join(err, c.Close()); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

func parse(args []string) (*Task, error) {
	if len(args) != 6 {
		return nil, errors.New("usage: driver URL getattr|read|list DEPTH SECONDS COUNT NAME")
	}
	t := &Task{URL: args[0], Op: args[1], Name: args[5]}
	var errs [3]error
	t.Depth, errs[0] = strconv.Atoi(args[2])
	t.Seconds, errs[1] = strconv.ParseFloat(args[3], 64)
	t.Count, errs[2] = strconv.ParseUint(args[4], 10, 64)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if t.Depth < 1 || t.Depth > 1024 || (t.Seconds == 0 && t.Count == 0) {
		return nil, errors.New("DEPTH is 1 to 1024, and SECONDS or COUNT is more than 0")
	}
	return t, nil
}

// loop is a measurement under way.
type loop struct {
	c     Client
	task  *Task
	start time.Time
	left  atomic.Int64 // operations to be begun, if they are counted
	ops   atomic.Uint64
	bytes atomic.Uint64
}

func measure(c Client, task *Task) (*Result, error) {
	l := &loop{c: c, task: task}
	l.left.Store(int64(task.Count))
	samples := make([][]uint32, task.Depth)
	for i := range samples {
		samples[i] = make([]uint32, 0, maxSamples/task.Depth)
	}
	errs := make([]error, task.Depth)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	cpu := processor()
	l.start = time.Now()
	var wg sync.WaitGroup
	for i := range task.Depth {
		wg.Go(func() { samples[i], errs[i] = l.worker(i, samples[i]) })
	}
	wg.Wait()
	seconds, used := time.Since(l.start).Seconds(), processor()-cpu
	runtime.ReadMemStats(&after)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	ops := l.ops.Load()
	all := slices.Concat(samples...)
	slices.Sort(all)
	r := &Result{
		Ops: ops, Seconds: seconds, Bytes: l.bytes.Load(),
		CPU:    used.Seconds() * 1e6 / float64(ops),
		Allocs: float64(after.Mallocs-before.Mallocs) / float64(ops),
	}
	if n := len(all); n > 0 && task.Op != "list" {
		r.P50, r.P99 = float64(all[n/2])/1e3, float64(all[n-1-n/100])/1e3
	}
	return r, nil
}

func (l *loop) worker(i int, samples []uint32) ([]uint32, error) {
	buf := make([]byte, ReadSize)
	span := l.c.Size() - ReadSize + 1
	off := int64(i) * ReadSize
	for t := time.Now(); !l.enough(t); {
		n := uint64(1)
		var err error
		switch l.task.Op {
		case "getattr":
			err = l.c.Getattr()
		case "read":
			err = l.c.Read(buf, off%span)
			off += int64(l.task.Depth) * ReadSize
			l.bytes.Add(ReadSize)
		case "list":
			var entries int
			entries, err = l.c.List()
			n = uint64(entries)
		default:
			err = fmt.Errorf("no operation is called %q", l.task.Op)
		}
		if err != nil {
			return samples, err
		}
		l.ops.Add(n)
		now := time.Now()
		if len(samples) < cap(samples) {
			samples = append(samples, uint32(min(now.Sub(t), 1<<32-1)))
		}
		t = now
	}
	return samples, nil
}

// enough reports whether no further operation is to be begun.
func (l *loop) enough(now time.Time) bool {
	switch {
	case l.task.Seconds > 0:
		return now.Sub(l.start).Seconds() >= l.task.Seconds
	case l.task.Op == "list":
		return l.ops.Load() >= l.task.Count
	}
	return l.left.Add(-1) < 0
}

func processor() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // it has no way to fail
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
