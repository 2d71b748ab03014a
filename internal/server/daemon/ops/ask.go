package ops

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/nfsserver"
)

// ErrNoClient says that the server knows no such client.
var ErrNoClient = nfsserver.ErrNoClient

// ErrNoServer says that no server, or not one alone, can be asked.
var ErrNoServer = errors.New("no server to ask")

// Control asks the server whose state lies in stateDir, or in a folder there; "" is
// the default state directory. do is one of the Control constants, client whom it is
// about, "" for all. It is ErrNoServer if no server runs there, or several do;
// the error names them. What the server refuses is an error of its words,
// and nfsserver.ErrNoClient if that is why.
func Control(ctx context.Context, stateDir, do, client string) (*ControlAnswer, error) {
	socket, err := findControl(ctx, stateDir)
	if err != nil {
		return nil, err
	}
	return askControl(ctx, socket, controlRequest{Version: controlVersion, Do: do, Client: client})
}

// findControl finds the socket of the only server that runs.
func findControl(ctx context.Context, stateDir string) (string, error) {
	if stateDir == "" {
		var err error
		if stateDir, err = config.DefaultStateDir(); err != nil {
			return "", fmt.Errorf("%w: %w", ErrNoServer, err)
		}
	}
	if _, err := os.ReadDir(stateDir); err != nil { // a pattern that matches nothing would not say why
		if errors.Is(err, fs.ErrPermission) {
			return "", fmt.Errorf("%w: %w: the server is another user's; ask as that one", ErrNoServer, err)
		}
		return "", fmt.Errorf("%w: %w: name the server's state directory with --state-dir", ErrNoServer, err)
	}
	there, err := filepath.Glob(filepath.Join(globbed(stateDir), "*", controlName))
	if err != nil {
		return "", err
	}
	there = append(there, filepath.Join(stateDir, controlName)) // a server's own folder
	var alive, who []string
	for _, socket := range there {
		a, err := askControl(ctx, socket, controlRequest{Version: controlVersion, Do: ControlServer})
		switch {
		case errors.Is(err, errNobody):
		case err != nil:
			return "", err
		case a.Server != nil:
			alive = append(alive, socket)
			who = append(who, fmt.Sprintf("%s (process %d): --state-dir %s", a.Server.URL, a.Server.PID, filepath.Dir(socket)))
		}
	}
	switch len(alive) {
	case 0:
		return "", fmt.Errorf("%w: none runs with the state directory %s; name another one with --state-dir", ErrNoServer, stateDir)
	case 1:
		return alive[0], nil
	}
	slices.Sort(who)
	return "", fmt.Errorf("%w alone: %d run with the state directory %s; name one: %s", ErrNoServer, len(alive), stateDir, strings.Join(who, "; "))
}

// globbed is a path as a pattern that matches it alone.
func globbed(path string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(path)
}

// errNobody says that there is no socket, or no process listens at it.
var errNobody = errors.New("nobody listens")

func askControl(ctx context.Context, socket string, q controlRequest) (a *ControlAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, controlTime)
	defer cancel()
	var nc net.Conn
	err = shortPath(socket, func(short string) (err error) {
		var d net.Dialer
		nc, err = d.DialContext(ctx, "unix", short)
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist) || isRefused(err):
		return nil, errNobody
	case err != nil:
		return nil, fmt.Errorf("%s: %w", socket, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer func() {
		if stop() {
			err = errors.Join(err, nc.Close())
		} else if err != nil {
			err = errors.Join(err, ctx.Err())
		}
	}()
	if err := json.NewEncoder(nc).Encode(q); err != nil {
		return nil, fmt.Errorf("%s: %w", socket, err)
	}
	limited := &io.LimitedReader{R: nc, N: maxControlAnswer}
	a = new(ControlAnswer)
	if err := json.NewDecoder(bufio.NewReader(limited)).Decode(a); err != nil {
		return nil, fmt.Errorf("%s: the server's answer: %w", socket, err)
	}
	switch {
	case a.NoSuch:
		return nil, fmt.Errorf("%w: %s", ErrNoClient, q.Client)
	case a.Error != "":
		return nil, fmt.Errorf("%s: the server says: %s", socket, a.Error)
	case a.Version != controlVersion:
		return nil, fmt.Errorf("%s: the answer has form %d, and this nfsbox understands %d: use the server's own", socket, a.Version, controlVersion)
	}
	return a, nil
}
