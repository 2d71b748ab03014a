package ops

import "testing"

func TestOurProcess(t *testing.T) {
	if p := ourProcess(); p.threads < 1 || p.threads > 1<<16 || p.cpu <= 0 || p.memory < 1<<20 || p.memory > 1<<40 {
		t.Errorf("%+v", p)
	}
}
