package oncrpc_test

import (
	"os"
	"testing"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/oncrpc/replycache"
)

func TestMain(m *testing.M) {
	oncrpc.NewTestCache = func() oncrpc.TestCache { return replycache.New(replycache.Options{}) }
	os.Exit(m.Run())
}
