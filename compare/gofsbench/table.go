package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/nfsbox/nfsbox/compare/internal/serve"
)

// figure is what one measurement says.
type figure struct {
	Server  string  `json:"server"`
	Verb    string  `json:"verb"`
	PerS    float64 `json:"operations_per_second"`
	P50     float64 `json:"p50_ms,omitempty"` // 0: GoFsBench's client does not say
	P99     float64 `json:"p99_ms,omitempty"`
	CPU     float64 `json:"cpu_us"`        // of the server's process, an operation
	Client  float64 `json:"client_cpu_us"` // of the client's, which takes its part of the processors
	Threads float64 `json:"threads"`

	done int
}

// table is all of them.
type table struct {
	servers []contender
	runs    map[string][]figure // by verb and server
}

func (t *table) add(f figure) {
	key := f.Verb + " " + f.Server
	t.runs[key] = append(t.runs[key], f)
}

// print writes the table. Ratios are to GoFsBench's best: the least CPU, the most
// operations, whichever of its servers that was.
func (t *table) print(o *options, home string) error {
	if err := machine(o, home); err != nil {
		return err
	}
	for verb := range strings.SplitSeq(o.verbs, ",") {
		var peer figure
		for i := range t.servers {
			if f := t.median(verb, i); t.servers[i].peer {
				peer.PerS = max(peer.PerS, f.PerS)
				if peer.CPU == 0 || f.CPU < peer.CPU {
					peer.CPU = f.CPU
				}
			}
		}
		fmt.Printf("\n**%s**\n\n| server | operations/s | ratio | p50 ms | p99 ms | CPU us/operation | ratio | client's CPU us | threads |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n", verb)
		for i := range t.servers {
			if len(t.runs[verb+" "+t.servers[i].name]) == 0 {
				continue // it has no such call
			}
			f := t.median(verb, i)
			fmt.Printf("| %s | %.0f | %s | %s | %s | %.1f | %s | %.1f | %.0f |\n", t.servers[i].name,
				f.PerS, ratio(f.PerS, peer.PerS), known(f.P50), known(f.P99), f.CPU, ratio(f.CPU, peer.CPU), f.Client, f.Threads)
		}
	}
	return nil
}

func ratio(a, b float64) string {
	if b == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", a/b)
}

func known(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", v)
}

// median is the medians of a server's runs; of threads it is the most.
func (t *table) median(verb string, server int) (f figure) {
	runs := t.runs[verb+" "+t.servers[server].name]
	f.PerS = serve.Median(runs, func(f *figure) float64 { return f.PerS })
	f.P50 = serve.Median(runs, func(f *figure) float64 { return f.P50 })
	f.P99 = serve.Median(runs, func(f *figure) float64 { return f.P99 })
	f.CPU = serve.Median(runs, func(f *figure) float64 { return f.CPU })
	f.Client = serve.Median(runs, func(f *figure) float64 { return f.Client })
	for i := range runs {
		f.Threads = max(f.Threads, runs[i].Threads)
	}
	return f
}

func machine(o *options, home string) error {
	var u syscall.Utsname
	var fs syscall.Statfs_t
	if err := syscall.Uname(&u); err != nil {
		return err
	}
	if err := syscall.Statfs(home, &fs); err != nil {
		return err
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err
	}
	disk := fileSystem(int64(fs.Type))
	if o.fresh {
		disk = "ext4 newly made for every turn, in a file on " + disk
	}
	var release strings.Builder
	for _, c := range u.Release {
		if c == 0 {
			break
		}
		release.WriteByte(byte(c))
	}
	fmt.Printf("%s, %d processors, Linux %s, %s, %s; load at the end %s. ", processor(), runtime.NumCPU(), &release, disk, runtime.Version(), strings.Fields(string(load))[0])
	fmt.Printf("%s: %d clients, %d files of %d KiB, medians of %d rounds; %d I/O threads; checksum %s, sync %t, HTTP/2 %t; nfsbox serve %s.\n",
		time.Now().Format(time.DateOnly), o.clients, o.files, size>>10, o.rounds, o.threads, o.checksum, o.sync, o.http2, strings.Join(serveFlags(o), " "))
	return nil
}

func processor() string {
	b, _ := os.ReadFile("/proc/cpuinfo") // not everywhere, and not in the same words
	for line := range strings.Lines(string(b)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func fileSystem(magic int64) string {
	switch magic {
	case 0xef53:
		return "ext4"
	case 0x58465342:
		return "XFS"
	case 0x9123683e:
		return "btrfs"
	case 0x01021994:
		return "tmpfs, which is no disk"
	}
	return fmt.Sprintf("file system %#x", magic)
}
