package serve

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/nfsbox/nfsbox/internal/testkit/ganesha"
)

// exports are ganesha's.
const exports = `EXPORT { Export_Id = 1; Path = %s; Pseudo = /export; Access_Type = RW;
	MaxRead = 1048576; MaxWrite = 1048576; FSAL { Name = VFS; } }`

// Ganesha starts nfs-ganesha over the directory export, with its files in a new directory in home.
func Ganesha(ctx context.Context, home, export string) (*Process, *ganesha.Server, error) {
	dir, err := os.MkdirTemp(home, "ganesha")
	if err != nil {
		return nil, nil, err
	}
	g, err := ganesha.New(dir, fmt.Sprintf(exports, export))
	if err != nil {
		return nil, nil, err
	}
	p, err := Peer(g.Command(ctx), g.Serves)
	if err != nil {
		return nil, nil, err
	}
	pid, err := g.PID()
	if err != nil {
		return nil, nil, errors.Join(err, p.Stop())
	}
	p.Look(pid)
	return p, g, nil
}
