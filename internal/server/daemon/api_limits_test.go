package daemon

import (
	"os"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// TestAPILimits: calls of the file API are at most half of the descriptors that a directory may
// keep open, whatever the configuration says, and no caller has more than all.
func TestAPILimits(t *testing.T) {
	for _, tt := range []struct {
		files                           uint64 // that the process may open
		exports, open, calls, perCaller int    // as configured
		wantCalls, wantPerCaller        int
	}{
		{files: 1 << 20, exports: 1, open: 4096, calls: 8192, perCaller: 4096, wantCalls: 2048, wantPerCaller: 2048},
		{files: 1 << 20, exports: 1, open: 1 << 19, calls: 8192, perCaller: 4096, wantCalls: 8192, wantPerCaller: 4096},
		{files: 4096, exports: 1, open: 1 << 19, calls: 8192, perCaller: 4096, wantCalls: 1024, wantPerCaller: 1024},
		{files: 4096, exports: 4, open: 1 << 19, calls: 8192, perCaller: 100, wantCalls: 256, wantPerCaller: 100},
		{files: 4096, exports: 1, open: 1 << 19, calls: 10, perCaller: 100, wantCalls: 10, wantPerCaller: 10},
		{files: 1, exports: 1, open: 1 << 19, calls: 8192, perCaller: 4096, wantCalls: config.MinOpenFiles / 2, wantPerCaller: config.MinOpenFiles / 2},
	} {
		c := &config.Config{Exports: make([]config.Export, tt.exports), MaxOpenFiles: tt.open}
		c.API.MaxCalls, c.API.MaxCallsPerCaller = tt.calls, tt.perCaller
		if got := limitsOf(c, tt.files); got.Calls != tt.wantCalls || got.CallsPerClient != tt.wantPerCaller {
			t.Errorf("%+v: %d calls, %d of a caller", tt, got.Calls, got.CallsPerClient)
		}
	}
}

// TestLoopbackIsRoot: a server that runs as root, and takes every program of its host for root,
// or for one of root's group, says so.
func TestLoopbackIsRoot(t *testing.T) {
	for _, tt := range []struct {
		l    *config.User
		euid int
		want bool
	}{
		{nil, 0, false},
		{&config.User{UID: 0, GID: 5}, 0, true},
		{&config.User{UID: 5, GID: 0}, 0, true},
		{&config.User{UID: 5, GID: 5, Groups: []uint32{7, 0}}, 0, true},
		{&config.User{UID: 5, GID: 5, Groups: []uint32{7}}, 0, false},
		{&config.User{Only: true}, 0, false},
		{&config.User{}, 1000, false},
	} {
		if got := asRoot(tt.l, tt.euid); got != tt.want {
			t.Errorf("%+v at a server of user %d: %v", tt.l, tt.euid, got)
		}
	}
	_, log, stop := run(t, apiConfig(t.TempDir(), t.TempDir()))
	if err := stop(); err != nil {
		t.Error(err)
	}
	if said := strings.Contains(log.String(), "api.loopback is root"); said != (os.Geteuid() == 0) {
		t.Errorf("the server of user %d says so: %v\n%s", os.Geteuid(), said, log)
	}
}
