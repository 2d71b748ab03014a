package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// oddTree makes a tree of what trees are made of: odd names, links of both kinds, holes, empty directories, old and
// new files. It returns its path.
func oddTree(t *testing.T) string {
	t.Helper()
	top := filepath.Join(t.TempDir(), "odd")
	write := func(name string, size int64, age time.Duration) {
		path := filepath.Join(top, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(strings.Repeat("x", int(min(size, 100_000)))), 0o644)
		}
		if err == nil {
			err = os.Truncate(path, size)
		}
		if err == nil {
			err = os.Chtimes(path, time.Now().Add(-age), time.Now().Add(-age))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, size := range []int64{0, 1, 511, 512, 513, 1024, 4096, 1 << 20, 1<<20 + 1, 30 << 20} {
		write(fmt.Sprintf("sizes/%d.bin", size), size, time.Duration(i)*24*time.Hour+time.Hour)
	}
	for _, name := range []string{
		"names/new\nline", "names/a b", "names/.hidden", "names/*?[x]", `names/back\slash`, "names/ümläut", "names/\x1b[31mred", "names/%41",
		"names/-name", "names/Upper.TMP", "names/upper.tmp", "names/not\xffutf8", "names/q?a=b#c", "names/" + strings.Repeat("n", 255),
	} {
		write(name, 10, time.Hour)
	}
	write("deep/"+strings.Repeat("d/", 40)+"end", 5000, time.Hour)
	for _, err := range []error{
		os.MkdirAll(filepath.Join(top, "empty", "inner"), 0o755), os.Mkdir(filepath.Join(top, "links"), 0o755),
		os.Link(filepath.Join(top, "sizes/4096.bin"), filepath.Join(top, "links/hard")),
		os.Link(filepath.Join(top, "sizes/4096.bin"), filepath.Join(top, "names/hard")),
		os.Symlink("../sizes", filepath.Join(top, "links/dir")), os.Symlink("nowhere", filepath.Join(top, "links/dangling")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// sortedRecords are the records of an output, which end with a NUL each.
func sortedRecords(out string) []string {
	records := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	slices.Sort(records)
	return records
}

// asLocal turns the URLs at the end of records into paths below top.
func asLocal(t *testing.T, records []string, server, top string) []string {
	t.Helper()
	for i, r := range records {
		at := strings.Index(r, server)
		if at < 0 {
			t.Fatalf("%q names nothing of %s", r, server)
		}
		path, err := url.PathUnescape(r[at+len(server):])
		if err != nil {
			t.Fatal(err)
		}
		records[i] = strings.TrimSuffix(r[:at]+top+path, "/")
	}
	slices.Sort(records)
	return records
}

// treeServer serves a directory, and returns the URL without the slash at its end.
func treeServer(t *testing.T, dir string) string {
	t.Helper()
	at, _ := exitServer(t, dir, t.TempDir())
	return strings.TrimSuffix(at, "/")
}

// TestFindIsFind: the same files as find(1) finds, by each test, of a local tree and of the same one served.
func TestFindIsFind(t *testing.T) {
	program := need.Tool(t, "find", "find")
	top := oddTree(t)
	server := treeServer(t, filepath.Dir(top)) + "/odd"
	stamp := filepath.Join(top, "sizes/512.bin")
	for _, tests := range [][]string{
		{}, {"-type", "f"}, {"-type", "d"}, {"-type", "f,l"}, {"-name", "*.bin"}, {"-name", "*"}, {"-name", "?hidden"}, {"-name", "-name"},
		{"-name", "[!a-z]*"}, {"-name", `\*\?\[x]`}, {"-name", "*\n*"}, {"-iname", "UPPER.*"}, {"-iname", "ÜML*"}, {"-name", "odd"},
		{"-path", "*/sizes/*"}, {"-path", "*deep*/end"}, {"-ipath", "*/NAMES/u*"}, {"-wholename", "*hard"},
		{"-size", "0"}, {"-size", "1"}, {"-size", "+1"}, {"-size", "-2"}, {"-size", "-1M"}, {"-size", "1M"}, {"-size", "+1M"}, {"-size", "513c"}, {"-size", "2k"}, {"-size", "-3w"},
		{"-mtime", "0"}, {"-mtime", "+3"}, {"-mtime", "-3"}, {"-mtime", "4", "-type", "f"}, {"-newer", stamp}, {"-empty"}, {"-empty", "-type", "d"}, {"-empty", "-maxdepth", "1"},
		{"-maxdepth", "0"}, {"-maxdepth", "1"}, {"-maxdepth", "2", "-mindepth", "2"}, {"-mindepth", "30"}, {"-maxdepth", "3", "-type", "f"},
		{"-uid", strconv.Itoa(max(os.Getuid(), 0))}, {"-user", strconv.Itoa(max(os.Getuid(), 0) + 1)}, {"-gid", "54321"}, {"-xdev", "-type", "l"},
	} {
		theirs := append([]string{top}, tests...)
		if slices.Contains(tests, "-maxdepth") || slices.Contains(tests, "-mindepth") {
			theirs = []string{top}
			for i := 0; i < len(tests); i++ { // which find(1) wants first
				if strings.HasSuffix(tests[i], "depth") {
					theirs = append(theirs, tests[i], tests[i+1])
				}
			}
			theirs = append(theirs, tests...)
		}
		cmd := exec.Command(program, append(theirs, "-print0")...)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("find %q: %v", theirs, err)
		}
		want := sortedRecords(string(out))
		status, got, stderr := command(t, append(append([]string{"find", top}, tests...), "-print0")...)
		if mine := sortedRecords(got); status != exitOK || !slices.Equal(mine, want) {
			t.Errorf("%q: status %d, %s\nfound %q\nwant  %q", tests, status, stderr, mine, want)
		}
		status, got, stderr = command(t, append(append([]string{"find", server}, tests...), "-print0")...)
		if got == "" && len(want) == 1 && want[0] == "" {
			continue
		}
		if mine := asLocal(t, sortedRecords(got), server, top); status != exitOK || !slices.Equal(mine, want) {
			t.Errorf("%q of the server: status %d, %s\nfound %q\nwant  %q", tests, status, stderr, mine, want)
		}
	}
}

// TestPlacesSpelled: a URL that names a file comes out escaped, whatever bytes it was typed with, but of ls, for people;
// nothing is printed that could steer a terminal. The
// target of a link that is not UTF-8 has its bytes beside it.
func TestPlacesSpelled(t *testing.T) {
	top := oddTree(t)
	if err := os.Symlink("to\xff", filepath.Join(top, "link")); err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	server := treeServer(t, filepath.Dir(top)) + "/odd"
	for _, name := range []string{"new\nline", "\x1b[31mred", "not\xffutf8"} {
		typed := server + "/names/" + strings.ReplaceAll(name, "[", "%5B") // [ would be a pattern
		for _, verb := range [][]string{{"find"}, {"find", "--json"}, {"du"}, {"du", "--json"}, {"ls"}, {"ls", "-l"}, {"ls", "--json"}, {"stat"}, {"stat", "--json"}, {"df", "--json"}, {"touch", "--json"}} {
			want := server + (&url.URL{Path: "/names/" + name}).EscapedPath()
			if verb[0] == "ls" && !slices.Contains(verb, "--json") {
				want = progress.Clean(typed)
			}
			status, out, stderr := command(t, append(verb, typed)...)
			if status != exitOK || !strings.Contains(out, want) || strings.Contains(out, "\x1b") || !utf8.ValidString(out) {
				t.Errorf("%v of %q: status %d, %s\nprinted %q\nwant %q", verb, name, status, stderr, out, want)
			}
		}
	}
	for _, verb := range []string{"stat", "ls -d"} {
		if status, out, stderr := command(t, append(strings.Fields(verb), "--json", server+"/link")...); status != exitOK || !strings.Contains(out, `"target_base64":"dG//"`) {
			t.Errorf("%s of a link: status %d, %s\n%s", verb, status, stderr, out)
		}
	}
}

// TestDuIsDu: the same sums as du(1), of a local tree and of the same one served.
func TestDuIsDu(t *testing.T) {
	program := need.Tool(t, "du", "du")
	top := oddTree(t)
	server := treeServer(t, filepath.Dir(top)) + "/odd"
	for _, flags := range []string{"-0", "-0a", "-0s", "-0l", "-0 -d 2", "-0a -d 1", "-0x", "-0h", "-0sh"} {
		args := strings.Fields(flags)
		out, err := exec.Command(program, append(args, top)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		want := sortedRecords(string(out))
		sameUsage(t, args, top, top, want)
		sameUsage(t, args, server, top, want)
	}
	// Newer ones of GNU count the bytes of files and links alone; older ones those of directories, too.
	var sum int64
	out, err := exec.Command("find", top, "-type", "f,l", "-printf", "%i %s\n").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		_, size, _ := strings.Cut(line, " ")
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	for _, at := range []string{top, server} {
		if status, out, _ := command(t, "du", "-bs", at); status != exitOK || out != fmt.Sprintf("%d\t%s\n", sum, at) {
			t.Errorf("du -bs: status %d, %swant %d", status, out, sum)
		}
	}
}

// sameUsage compares sums. Of objects with several names it depends on the order which one counts: such are left out.
func sameUsage(t *testing.T, args []string, at, top string, want []string) {
	t.Helper()
	status, out, stderr := command(t, append(append([]string{"du"}, args...), at)...)
	got := sortedRecords(out)
	if at != top {
		got = asLocal(t, got, at, top)
	}
	chance := func(record string) bool {
		return regexp.MustCompile(`hard$|/(sizes|links|names)(/4096.bin)?$`).MatchString(record)
	}
	want = slices.DeleteFunc(slices.Clone(want), chance)
	if got = slices.DeleteFunc(got, chance); status != exitOK || !slices.Equal(got, want) {
		t.Errorf("du %q %s: status %d, %s\n%q, want\n%q", args, at, status, stderr, got, want)
	}
}

// TestTreeCalls: nothing is asked for a single object, and a directory costs the pages of its listing.
func TestTreeCalls(t *testing.T) {
	top := t.TempDir()
	const dirs, files = 40, 50
	for i := range dirs * files {
		dir := filepath.Join(top, fmt.Sprint("d", i/files))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	server := treeServer(t, top)
	for _, args := range []string{"find --stats -type f -size 0 -newer-than 1d", "find --stats -path */d1/* -ls", "du --stats -a", "scan --stats --no-progress"} {
		status, out, stderr := command(t, append(strings.Fields(args), server)...)
		if status != exitOK || out == "" {
			t.Fatalf("%s: status %d, %s", args, status, stderr)
		}
		calls := make(map[string]int)
		for _, m := range regexp.MustCompile(`(?m)^ *([A-Z]+) +([0-9,]+) `).FindAllStringSubmatch(stderr, -1) {
			n, err := strconv.Atoi(strings.ReplaceAll(m[2], ",", ""))
			if err != nil {
				t.Fatal(err)
			}
			calls[m[1]] = n
		}
		if n := calls["READDIRPLUS"]; n < dirs+1 || n > dirs+3 {
			t.Errorf("%s: %d READDIRPLUS of %d directories\n%s", args, n, dirs+1, stderr)
		}
		if n := calls["GETATTR"] + calls["LOOKUP"] + calls["READLINK"] + calls["READDIR"]; n > 2 {
			t.Errorf("%s: further calls: %v", args, calls)
		}
	}
}

// TestTreeFaults: a directory that cannot be listed is named and counted, the others follow, and the status is 2. Of
// failures alike three are shown.
func TestTreeFaults(t *testing.T) {
	top := t.TempDir()
	for i := range 5 {
		if err := os.MkdirAll(filepath.Join(top, fmt.Sprint("closed", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "open"), []byte("1234567"), 0o644); err != nil {
		t.Fatal(err)
	}
	server := treeServer(t, top) + "?uid=12345&gid=12345"
	if os.Geteuid() != 0 {
		for i := range 5 {
			dir := filepath.Join(top, fmt.Sprint("closed", i))
			if err := os.Chmod(dir, 0); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
		}
		server = top
	}
	if err := os.Chmod(top, 0o755); err != nil {
		t.Fatal(err)
	}
	all := filepath.Join(t.TempDir(), "errors")
	for _, verb := range []string{"find", "du -ab"} {
		status, out, stderr := command(t, append(strings.Fields(verb), "--errors-to", all, server)...)
		if status != exitIncomplete || !strings.Contains(out, "open") || strings.Count(out, "closed") != 5 {
			t.Errorf("%s: status %d\n%s", verb, status, out)
		}
		if strings.Count(stderr, "/closed") != 3 || !strings.Contains(stderr, "2 more like these") {
			t.Errorf("%s told:\n%s", verb, stderr)
		}
		text, err := os.ReadFile(all)
		if err != nil || strings.Count(string(text), `"type":"error"`) != 5 {
			t.Errorf("%s: %v\n%s", verb, err, text)
		}
		status, out, _ = command(t, append(strings.Fields(verb), "--json", server)...)
		if status != exitIncomplete || strings.Count(out, `"type":"error"`) != 5 || strings.Count(out, `"type":"summary"`) != 1 {
			t.Errorf("%s --json: status %d\n%s", verb, status, out)
		}
	}
	page := filepath.Join(t.TempDir(), "page")
	status, out, stderr := command(t, "scan", "--no-progress", "--report", page, server)
	text, err := os.ReadFile(page)
	if status != exitIncomplete || !strings.Contains(out, "at least") || strings.Count(stderr, "/closed") != 3 || err != nil || !strings.Contains(string(text), "5 items could not be looked at") {
		t.Errorf("scan: status %d, %v\n%s%s", status, err, out, stderr)
	}
	var sum usageEvent
	_, out, _ = command(t, "du", "-s", "--json", server)
	first := ""
	for line := range strings.Lines(out) {
		if strings.Contains(line, `"type":"usage"`) {
			first = line
		}
	}
	if err := json.Unmarshal([]byte(first), &sum); err != nil || sum.Complete || sum.Size != 7 || sum.Entries != 7 {
		t.Errorf("%v: %s", err, out)
	}
}

// TestFindArgs: a test is known with one dash and with two, and its value may begin with one.
func TestFindArgs(t *testing.T) {
	for args, want := range map[string]string{
		"a -name -x":            "a --name=-x",
		"a --name x -size -10k": "a --name=x --size=-10k",
		"-maxdepth 1 -xdev a":   "--max-depth=1 --one-file-system a",
		"a -print0 -a -ls":      "a --print0 --ls",
		"-x -- -name x":         "-x -- -name x",
		"a -uid 5 -name":        "a --user=5 --name",
		"name size":             "name size",
		"a -o -exec":            "a -o -exec",
		"--name=x a":            "--name=x a",
	} {
		if got := findArgs(strings.Fields(args)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s is %q, want %s", args, got, want)
		}
	}
}
