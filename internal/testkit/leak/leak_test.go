package leak

import (
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

// stay is a goroutine that ends when it is told to.
func stay(began, end chan struct{}) {
	close(began)
	<-end
}

// TestBehind finds a goroutine that does not end, waits for one that does, and never
// finds the one that looks.
func TestBehind(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	go stay(began, end)
	<-began
	left := behind("leak.stay", 0)
	if len(left) != 1 || !strings.Contains(left[0], "leak.stay") {
		t.Errorf("%q", left)
	}
	close(end)
	if left := behind("leak.stay", time.Minute); len(left) != 0 {
		t.Errorf("%q", left)
	}
	if left := behind("leak.behind", 0); len(left) != 0 {
		t.Errorf("%q", left)
	}
}
