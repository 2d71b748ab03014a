package mounted

import (
	"bufio"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/port"
)

// enough is how many calls a tree may cost, of each that it must: a page of a listing, a READ, and for each open, of a
// directory too, a GETATTR and an ACCESS.
const enough = 1.2

// TestCalls counts what the server is asked for a listing of a tree with all attributes, and for an archive of it.
func TestCalls(t *testing.T) {
	bin := command(t)
	program(t, "tar")
	at := home(t)
	srv := filepath.Join(at, "srv")
	tree := source()
	tool(t, "/", "cp", "-r", tree, srv)
	dirs, files := count(t, srv)
	address, err := port.Free("127.0.0.1")
	check(t, err)
	url, _ := serve(t, bin, srv, "--localio=off", "--squash=none", "--metrics", address)
	for _, one := range []struct {
		name    string
		opens   int
		options string
		args    []string
	}{
		// Lists (acl(5)) are asked for, file by file, by ls -l alone: nothing in NFSv3 says which file has none.
		{"ls -lR", dirs, "localio=off,noacl", []string{"ls", "-lR", "."}},
		{"tar c", dirs + files, "localio=off", []string{"tar", "-cf", filepath.Join(at, "tar"), "."}},
	} {
		t.Run(one.name, func(t *testing.T) {
			m := mountAt(t, bin, url.String(), makeDir(t, at, one.name), one.options)
			before := calls(t, address)
			tool(t, m.dir, one.args[0], one.args[1:]...)
			all, by := 0.0, ""
			after := calls(t, address)
			for name, n := range after {
				if n -= before[name]; n > 0 {
					all, by = all+n, by+fmt.Sprintf(" %s %g", name, n)
				}
			}
			did := func(name string) float64 { return after[name] - before[name] }
			must := did("READDIRPLUS") + did("READDIR") + did("READ") + 2*float64(one.opens)
			t.Logf("%d directories, %d files: %g calls, %.2fx of %g:%s", dirs, files, all, all/must, must, by)
			if all > enough*must {
				t.Errorf("%g calls are more than %gx of %g", all, enough, must)
			}
		})
	}
}

// count is how many directories and files there are.
func count(t *testing.T, dir string) (dirs, files int) {
	t.Helper()
	check(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs++
		} else {
			files++
		}
		return err
	}))
	return dirs, files
}

var line = regexp.MustCompile(`^nfsbox_rpc_calls_total\{.*procedure="(?:NFSPROC3_|ACLPROC3_)?([^"]+)".*\} ([0-9.e+]+)$`)

// calls is how often each procedure was called, as the server counts it (/metrics).
func calls(t *testing.T, address string) map[string]float64 {
	t.Helper()
	r, err := http.Get("http://" + address + "/metrics")
	check(t, err)
	defer func() { _ = r.Body.Close() }() // it was read
	n := make(map[string]float64)
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		if m := line.FindStringSubmatch(lines.Text()); m != nil {
			v, err := strconv.ParseFloat(m[2], 64)
			check(t, err)
			n[m[1]] += v
		}
	}
	if len(n) == 0 {
		t.Fatal("/metrics counts no calls")
	}
	return n
}
