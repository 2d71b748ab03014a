package store

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
)

const (
	childEnv   = "NFSBOX_TEST_CACHE" // the directory, in the process that is killed
	childFiles = 30
)

func childSize(n int) int { return 1 + n*MinGranule/7 }

// TestKilledChild is the process that TestKilled kills: it fills a store, and says so line by line.
func TestKilledChild(t *testing.T) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		t.Skip("it is for TestKilled to start")
	}
	s := start(t, Options{Dir: dir, Size: 40 * MinGranule})
	rnd := rand.New(rand.NewPCG(rand.Uint64(), 6))
	for range 1_000_000 {
		n := rnd.IntN(childFiles)
		fill(t, s, n, bytesOf(n, childSize(n)))
		check(t, s, n, bytesOf(n, childSize(n)))
		if _, err := fmt.Println("filled"); err != nil {
			t.Fatal(err) // its reader has gone
		}
	}
}

// TestKilled kills a process with a store at random moments: the next one has it at once, and no wrong byte.
func TestKilled(t *testing.T) {
	kills := 10
	if os.Getenv("NFSBOX_SOAK") != "" {
		kills = 200
	}
	if testing.Short() {
		kills = 2
	}
	dir, rnd := home(t), rand.New(rand.NewPCG(7, 7))
	for range kills {
		killed(t, dir, rnd.IntN(60))
		s := start(t, Options{Dir: dir, Size: 40 * MinGranule})
		there := 0
		for n := range childFiles {
			there += check(t, s, n, bytesOf(n, childSize(n)))
		}
		st := s.Stats()
		if took := taken(t, s.dir); took > 40*MinGranule || there == 0 || st.State != "on" {
			t.Errorf("%d bytes are there, the files take %d; %+v", there, took, st)
		}
		stop(t, s)
	}
}

// killed starts the child, and kills it when it has filled so many files.
func killed(t *testing.T, dir string, files int) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestKilledChild$", "-test.v") //nolint:gosec // The test itself.
	c.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	seen := 0
	for seen <= files && lines.Scan() {
		if lines.Text() == "filled" {
			seen++
		}
	}
	_ = c.Process.Kill() // it may have ended by itself: seen says so
	_ = c.Wait()
	if seen <= files {
		t.Fatalf("the child ended after %d files", seen)
	}
}
