package mounted

import (
	"bufio"
	"go/build"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/internal/testkit/port"
)

// enough is how many calls a tree may cost, of each that it must: a page of a listing, a READ, and for each open, of a
// directory too, a GETATTR and an ACCESS.
const enough = 1.2

// TestCalls counts what the server is asked for a listing of a tree with all attributes, for a second one in the same mount, and
// for an archive: of a part of Go's sources, and in a soak of all that Go is made of.
func TestCalls(t *testing.T) {
	bin := command(t)
	program(t, "tar")
	at := home(t)
	srv := filepath.Join(at, "srv")
	tree := source()
	if soak() {
		tree = build.Default.GOROOT
	}
	tool(t, "/", "cp", "-r", tree, srv)
	dirs, files := count(t, srv)
	address, err := port.Free("127.0.0.1")
	expect.OK(t, err)
	url, _ := serve(t, bin, srv, "--localio=off", "--squash=none", "--metrics", address)
	for _, one := range []struct {
		name    string
		opens   int
		options string
		args    []string
		lists   bool // it asks for access control lists (acl(5)): the first time object by object, as nothing in NFSv3 says which has none
		runs    int
	}{
		{"ls -lR", dirs, "localio=off", []string{"ls", "-lR", "."}, true, 2},
		{"ls -lR, noacl", dirs, "localio=off,noacl", []string{"ls", "-lR", "."}, false, 1},
		{"tar c", dirs + files, "localio=off", []string{"tar", "-cf", filepath.Join(at, "tar"), "."}, false, 1},
		{"tar c, noacl", dirs + files, "localio=off,noacl", []string{"tar", "-cf", filepath.Join(at, "tar"), "."}, false, 1},
	} {
		t.Run(one.name, func(t *testing.T) {
			// On a slow machine the time of entries is over before they are used, and they are asked for again.
			for range 10 {
				m := mountAt(t, bin, url.String(), makeDir(t, at, one.name), one.options)
				good := true
				for run := range one.runs {
					before := calls(t, address)
					tool(t, m.dir, one.args[0], one.args[1:]...)
					spent := calls(t, address).since(before)
					must := spent["READDIRPLUS"] + spent["READDIR"] + spent["READ"] + 2*float64(one.opens)
					lists := 0
					if one.lists && run == 0 {
						lists = dirs + files
					}
					t.Logf("%d directories, %d files: %g calls, %.2fx of %g: %v", dirs, files, spent.all(), spent.all()/must, must, spent)
					good = good && spent["GETACL"] <= float64(lists) && spent.all()-spent["GETACL"] <= enough*must
				}
				if !m.end() {
					t.Fatal("the mount does not end")
				}
				if good {
					return
				}
			}
			t.Errorf("the calls are always more than %gx", enough)
		})
	}
}

// count is how many directories and files there are.
func count(t *testing.T, dir string) (dirs, files int) {
	t.Helper()
	expect.OK(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
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

// counts are calls by procedure.
type counts map[string]float64

func (c counts) since(before counts) counts {
	spent := make(counts)
	for name, n := range c {
		if n -= before[name]; n > 0 {
			spent[name] = n
		}
	}
	return spent
}

func (c counts) all() (n float64) {
	for _, x := range c {
		n += x
	}
	return n
}

// calls is how often each procedure was called, as the server counts it (/metrics).
func calls(t *testing.T, address string) counts {
	t.Helper()
	r, err := http.Get("http://" + address + "/metrics")
	expect.OK(t, err)
	defer func() { _ = r.Body.Close() }() // it was read
	n := make(counts)
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		if m := line.FindStringSubmatch(lines.Text()); m != nil {
			v, err := strconv.ParseFloat(m[2], 64)
			expect.OK(t, err)
			n[m[1]] += v
		}
	}
	if len(n) == 0 {
		t.Fatal("/metrics counts no calls")
	}
	return n
}
