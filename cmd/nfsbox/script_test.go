package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nfsbox/nfsbox/internal/testkit/fakes3"
	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
	"github.com/nfsbox/nfsbox/internal/tools/fusefs"
)

// TestMain lets the scripts run the command as a process of its own.
func TestMain(m *testing.M) {
	testscript.Main(stateless{m}, map[string]func(){"nfsbox": main})
}

// stateless runs the tests with a state directory of their own.
type stateless struct{ m *testing.M }

func (s stateless) Run() int {
	dir, err := os.MkdirTemp("", "nfsbox-state-")
	if err == nil {
		err = os.Setenv("XDG_STATE_HOME", dir)
	}
	code := s.m.Run()
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// TestScripts runs testdata/*.txtar, a script for each command.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			env.Setenv("HOME", env.WorkDir)
			scripts, err := filepath.Abs("testdata")
			if err != nil {
				return err
			}
			env.Setenv("SCRIPTS", scripts) // files that were not made just now
			env.Defer(func() { unmountBelow(env.WorkDir) })
			env.Setenv("IDS", fmt.Sprintf("%d:%d", max(os.Geteuid(), 0), max(os.Getegid(), 0)))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": serveScript, "sparse": sparseScript, "status": statusScript, "replace": replaceScript,
			"post": postScript, "configure": configureScript, "waitfile": waitFileScript, "capture": captureScript,
			"bucket": bucketScript,
		},
		Condition: func(cond string) (bool, error) {
			if cond != "fuse" {
				return false, fmt.Errorf("no such condition: %s", cond)
			}
			return canMount(), nil
		},
	})
}

// serveScript serves a directory until the script ends:
//
//	serve VAR DIR|FILE.toml [FLAG...]
//
// VAR becomes the URL, with --http VAR_HTTP that of the live view, with --api VAR_API
// that of the file API, and with --metrics VAR_METRICS that of the metrics.
// Everything goes over the network unless a FLAG says more.
func serveScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: serve VAR DIR [FLAG...]")
	}
	ctx, stop := context.WithCancel(context.Background())
	r, w := io.Pipe()
	ended := make(chan int, 1)
	log := new(logbuf.Buffer)
	what := []string{"serve", ts.MkAbs(args[1])}
	switch {
	case strings.HasPrefix(args[1], "nfs://"):
		what[1] = args[1]
	case strings.HasSuffix(args[1], ".toml"):
		what = []string{"serve", "--config", ts.MkAbs(args[1])}
	}
	argv := append(what, "--listen", "127.0.0.1:0", "--state-dir", ts.MkAbs(".served-"+args[0]))
	argv = append(argv, args[2:]...)
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--localio") }) {
		argv = append(argv, "--localio", "off")
	}
	go func() {
		ended <- run(&env{
			ctx: ctx, stdout: w, stderr: log,
			rand: func(p []byte) { _, _ = rand.Read(p) }, // never fails
		}, argv)
		_ = w.Close() // an io.Pipe's never fails
	}()
	ts.Defer(func() {
		stop()
		if status := <-ended; status != exitOK {
			ts.Logf("serve ended with status %d", status)
		}
	})
	line, err := bufio.NewReader(r).ReadString('\n')
	ts.Check(err)
	ts.Setenv(args[0], strings.TrimSpace(line))
	for _, at := range regexp.MustCompile(`msg=(http|metrics) url=(\S+)`).FindAllStringSubmatch(log.String(), -1) {
		ts.Setenv(args[0]+"_"+strings.ToUpper(at[1]), at[2])
	}
	if at := regexp.MustCompile(`msg=listening network=tcp address=(\S+) serves="file API over HTTP"`).FindStringSubmatch(log.String()); at != nil {
		ts.Setenv(args[0]+"_API", "http://"+at[1])
	}
}

// bucketScript runs a fake of S3 until the script ends:
//
//	bucket VAR
//
// VAR becomes the URL of its bucket, and VAR_ARGS the arguments that it needs. Commands find its credentials.
func bucketScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: bucket VAR")
	}
	s, end := fakes3.Run(1, fakes3.Faults{})
	ts.Defer(end)
	for name, value := range fakes3.Environment(ts.MkAbs(".s3")) {
		ts.Setenv(name, value)
	}
	ts.Setenv(args[0], "s3://"+fakes3.Bucket)
	ts.Setenv(args[0]+"_ARGS", "endpoint="+s.URL)
}

// canMount reports whether this process can mount a file system of its own; need.Fuse says it where a test needs it.
func canMount() bool {
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	_ = f.Close() // nothing was written
	_, err = exec.LookPath("fusermount3")
	return os.Geteuid() == 0 || err == nil
}

// unmountBelow ends the mounts that a script has left behind. One that is in use is aborted.
func unmountBelow(dir string) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") {
			_ = fusefs.Unmount(f[4], true, true) // it may have ended meanwhile
		}
	}
}

// waitFileScript waits until a file is there:
//
//	waitfile FILE
func waitFileScript(ts *testscript.TestScript, _ bool, args []string) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s does not appear", args[0])
		}
	}
}

// sparseScript makes a file of 64 MiB with data at both ends and a hole between:
//
//	sparse FILE
func sparseScript(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = f.WriteString("start")
	ts.Check(err)
	_, err = f.WriteAt([]byte("end"), 64<<20)
	ts.Check(err)
	ts.Check(f.Close())
}

// statusScript runs a command that must end with this exit status:
//
//	status N COMMAND [ARG...]
func statusScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND [ARG...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	status := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		status = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("status %d, want %s", status, args[0])
	}
}

// captureScript sets VAR to what the group of a pattern matches in the last command's output:
//
//	capture VAR PATTERN
func captureScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture VAR PATTERN")
	}
	match := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(match) != 2 {
		ts.Fatalf("%s does not match one group", args[1])
	}
	ts.Setenv(args[0], match[1])
}

// postScript makes a call of the file API as curl would, and prints the answer. It
// fails if that is an error:
//
//	post URL PROCEDURE JSON [TOKEN]
func postScript(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: post URL PROCEDURE JSON [TOKEN]")
	}
	req, err := http.NewRequest(http.MethodPost, args[0]+"/nfsbox.fileapi.v1.FileService/"+args[1], strings.NewReader(args[2]))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	if len(args) == 4 {
		req.Header.Set("Authorization", "Bearer "+args[3])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	ts.Check(err)
	_, err = io.Copy(ts.Stdout(), res.Body)
	ts.Check(errors.Join(err, res.Body.Close()))
	if failed := res.StatusCode != http.StatusOK; failed != neg {
		ts.Fatalf("%s: %s", args[1], res.Status)
	}
}

// configureScript writes settings of the user, with an alias "box" for a URL.
func configureScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: configure URL")
	}
	text := fmt.Sprintf("[alias]\nbox = %q\n[flags.stat]\njson = true\n[server.\"*\"]\nmax-load = 8\n", args[0])
	ts.Check(os.WriteFile(ts.MkAbs(".config/nfsbox/nfsbox.toml"), []byte(text), 0o600))
}

// replaceScript sets VAR to TEXT with OLD replaced by NEW:
//
//	replace OLD NEW TEXT VAR
func replaceScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: replace OLD NEW TEXT VAR")
	}
	ts.Setenv(args[3], strings.ReplaceAll(args[2], args[0], args[1]))
}
