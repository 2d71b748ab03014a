package way

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWayOfLinks ends where links lead in a circle.
func TestWayOfLinks(t *testing.T) {
	circle := filepath.Join(t.TempDir(), "circle")
	if err := os.Symlink("circle/on", circle); err != nil {
		t.Fatal(err)
	}
	if steps, err := Of(circle); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("%d steps, %v", len(steps), err)
	}
}
