// Command grep holds one search that is repeated to what it must not become: slower, larger, or different from GNU grep.
//
//	cd compare && go run ./grep [-rounds 20] [-workers 8] [-files 256] [-size 262144]
//
// Files of -size bytes, of random words in lines of 10 to 200 bytes, some of which are not UTF-8, lie in the page cache. Each of
// four patterns is searched for -rounds times by each engine of nfsbox grep, with one compiled expression for
// all rounds and workers. Printed are the median and the 99th percentile of the times of single files, in the first five
// rounds and in the last five, by how much memory has grown, how many lines RE2 and Go's regexp were asked about, and whether the
// count is GNU grep's in the locale C. Each pattern and engine has a process of its own. The exit
// status is 1 if a count differs, if a percentile of the last rounds is more than 1.1 times that of the first, or if memory
// has grown by more than the budget and 2 MiB a worker.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/lines"
	"github.com/nfsbox/nfsbox/internal/tools/search"
)

type options struct {
	rounds, workers, files, size int
	dir, one                     string
}

// what is searched for, and with which budget of RE2.
var patterns = []struct {
	name, pattern string
	mem           int
}{
	{"literal", "ridgeway", search.DefaultMaxMem},
	{"email", `[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}`, search.DefaultMaxMem},
	{"14", `[ab][^x]{14}z`, search.DefaultMaxMem},
	{"20, 256 KiB", `[ab][^x]{20}[yz][^a]{10}q`, 256 << 10},
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 20, "how often each search is repeated")
	flag.IntVar(&o.workers, "workers", 8, "files at once")
	flag.IntVar(&o.files, "files", 256, "files")
	flag.IntVar(&o.size, "size", 256<<10, "bytes of each")
	flag.StringVar(&o.dir, "dir", "", "where the files are (of a child)")
	flag.StringVar(&o.one, "one", "", "the search of a child")
	flag.Parse()
	err := all(&o)
	if o.one != "" {
		err = child(&o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "grep:", err)
		os.Exit(1)
	}
}

// result is what a child prints.
type result struct {
	First, Last [2]time.Duration // of files: median, 99th percentile
	CPU         [2]time.Duration // of a round: median of the first, of the last
	Grown       uint64           // bytes
	Lines       uint64
	RE2, Go     uint64
	Why         string
}

func all(o *options) (err error) {
	if o.one != "" {
		return nil
	}
	if o.dir, err = os.MkdirTemp("", "compare-grep-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	if err := write(o); err != nil {
		return err
	}
	fmt.Printf("%d files of %d bytes, %d workers, %d rounds\n", o.files, o.size, o.workers, o.rounds)
	fmt.Println("| pattern | engine | CPU, first 5 | last 5 | | median, first 5 | last 5 | | p99, first 5 | last 5 | | grown by | lines asked of RE2, Go | GNU's count |\n|-|-|-|-|-|-|-|-|-|-|-|-|-|-|")
	bad := 0
	for i := range patterns {
		want, err := gnu(o, patterns[i].pattern)
		if err != nil {
			return err
		}
		for _, engine := range []string{"go", "re2"} {
			r, err := run(o, fmt.Sprintf("%d,%s", i, engine))
			if err != nil {
				return err
			}
			bad += r.print(o, i, engine, want)
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d bounds are not kept", bad)
	}
	return nil
}

// print prints a row, and returns how many bounds are not kept.
func (r *result) print(o *options, i int, engine string, want uint64) (bad int) {
	ratio := func(first, last time.Duration) string {
		x := float64(last) / float64(first)
		if x > 1.1 {
			bad++
		}
		return fmt.Sprintf("%.2f", x)
	}
	same := "the same"
	if r.Lines != want {
		same = fmt.Sprintf("%d, not %d", want, r.Lines)
		bad++
	}
	budget := uint64(o.workers) * (2 << 20)
	if engine == "re2" {
		budget += uint64(patterns[i].mem)
	}
	if r.Grown > budget {
		bad++
	}
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + " ms" }
	us := func(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) + " µs" }
	fmt.Printf("| `%s` | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %.1f MiB | %d, %d%s | %s |\n", patterns[i].pattern, engine,
		ms(r.CPU[0]), ms(r.CPU[1]), ratio(r.CPU[0], r.CPU[1]), us(r.First[0]), us(r.Last[0]), ratio(r.First[0], r.Last[0]),
		us(r.First[1]), us(r.Last[1]), ratio(r.First[1], r.Last[1]), float64(r.Grown)/(1<<20), r.RE2, r.Go, strings.TrimRight(" "+r.Why, " "), same)
	return bad
}

// write makes the files.
func write(o *options) error {
	words := strings.Fields("the quick brown fox ridge way jumps over lazy dogs zebra yak quartz abbot bazaar x axe q ann@example.org caf\xe9 naïve error timeout 1024")
	for i := range o.files {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		var b bytes.Buffer
		for b.Len() < o.size {
			for end := b.Len() + 10 + r.IntN(190); b.Len() < end; {
				word := words[r.IntN(len(words))]
				if word[0] == 'a' && r.IntN(4) > 0 || r.IntN(1000) == 0 {
					word = "ridgeway"[:r.IntN(9)]
				}
				b.WriteString(word + " ")
			}
			b.WriteByte('\n')
		}
		if err := os.WriteFile(filepath.Join(o.dir, fmt.Sprint(i)), b.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// gnu is GNU grep's count.
func gnu(o *options, pattern string) (n uint64, err error) {
	cmd := exec.Command("grep", "-rchaE", "-e", pattern, o.dir)
	cmd.Env = []string{"LC_ALL=C"}
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil
	}
	for _, one := range strings.Fields(string(out)) {
		k, cerr := strconv.ParseUint(one, 10, 64)
		n, err = n+k, errors.Join(err, cerr)
	}
	return n, err
}

// run runs a search in a process of its own.
func run(o *options, one string) (r result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	cmd := exec.Command(self, "-one", one, "-dir", o.dir, "-rounds", fmt.Sprint(o.rounds), "-workers", fmt.Sprint(o.workers), "-files", fmt.Sprint(o.files))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}

// child searches, and prints what came out.
func child(o *options) error {
	number, engine, _ := strings.Cut(o.one, ",")
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= len(patterns) {
		return fmt.Errorf("no such search: %s", o.one)
	}
	before, err := peak(true)
	if err != nil {
		return err
	}
	p, err := lines.Compile([]string{patterns[i].pattern}, lines.Options{})
	if err != nil {
		return err
	}
	var r result
	s := &searcher{o: o, options: search.Options{Pattern: p, Workers: o.workers, Search: lines.Search{Quiet: true, Text: true}}}
	var re2 *search.RE2
	if engine == "re2" {
		re2 = search.NewRE2(p, patterns[i].mem)
		s.options.Match = re2.Match
	}
	var first, last, cpu []time.Duration
	for round := range o.rounds {
		began := used()
		n, took, err := s.round()
		if err != nil {
			return err
		}
		cpu = append(cpu, used()-began)
		r.Lines = n
		switch {
		case round < 5:
			first = append(first, took...)
		case round >= o.rounds-5:
			last = append(last, took...)
		}
	}
	after, err := peak(false)
	if err != nil {
		return err
	}
	r.First, r.Last, r.Grown = percentiles(first), percentiles(last), after-min(after, before)
	r.CPU = [2]time.Duration{percentiles(cpu[:min(5, len(cpu))])[0], percentiles(cpu[max(0, len(cpu)-5):])[0]}
	if re2 != nil {
		r.RE2, r.Go, r.Why = re2.Used()
	}
	return json.NewEncoder(os.Stdout).Encode(&r)
}

func percentiles(all []time.Duration) [2]time.Duration {
	slices.Sort(all)
	return [2]time.Duration{all[len(all)/2], all[len(all)*99/100]}
}

// searcher repeats a search.
type searcher struct {
	o       *options
	options search.Options
}

// timed is a file that notes when it was first read, and is opened then.
type timed struct {
	path  string
	file  *os.File
	began time.Time
}

func (t *timed) Read(p []byte) (n int, err error) {
	if t.file == nil {
		t.began = time.Now()
		if t.file, err = os.Open(t.path); err != nil {
			return 0, err
		}
	}
	return t.file.Read(p)
}

// round searches all files once.
func (s *searcher) round() (selected uint64, took []time.Duration, err error) {
	var n atomic.Uint64
	var mu sync.Mutex
	o := s.options
	o.Done = func(_ *search.Output, f *search.File, r *lines.Result, err error) error {
		n.Add(r.Selected)
		mu.Lock()
		defer mu.Unlock()
		t := f.Read.(*timed)
		took = append(took, time.Since(t.began))
		return errors.Join(err, t.file.Close())
	}
	g := search.NewGroup(context.Background(), &o, search.NewPrinter(context.Background(), io.Discard, ""))
	for i := range s.o.files {
		name := fmt.Sprint(i)
		if err := g.Add(search.File{Name: name, Read: &timed{path: filepath.Join(s.o.dir, name)}}); err != nil {
			return 0, nil, errors.Join(err, g.Wait())
		}
	}
	err = g.Wait()
	return n.Load(), took, err
}

// used is the processor time that the process has taken.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // of oneself it never fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak is the most memory that the process had, after it was set to what it has, if reset.
func peak(reset bool) (uint64, error) {
	if reset {
		if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
			return 0, err
		}
	}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmHWM:" {
			n, err := strconv.ParseUint(f[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, errors.New("/proc/self/status has no VmHWM")
}
