package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/daemon/ops"
	"github.com/nfsbox/nfsbox/internal/server/daemon/paths"
)

// lockName is the file whose lock says that a server runs with the folder. It holds the
// server's process number and its stage, for another one that finds it locked.
const lockName = "lock"

// The stages of a server, as it writes them behind its process number. Earlier versions wrote none.
const (
	stageServing = "serving" // it has begun, and has not been told to end
	stageEnding  = "ending"  // it lets calls finish, and leaves its replies
)

// maxHolder is how much of the lock's file is read, in bytes. A longer text has no number or stage for us.
const maxHolder = 32

// holdState locks the server's folder for as long as it runs. If another server has it,
// holdState says so, and waits: for as long as that one may take to end, if it is ending, as it may have
// yet to leave its replies; else for endingTime, since it may just have been told to end.
func (d *daemon) holdState(ctx context.Context) (err error) {
	if d.held, err = os.OpenFile(filepath.Join(d.own, lockName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	tick := time.NewTicker(handoverTick)
	defer tick.Stop()
	begun, told := time.Now(), time.Duration(0)
	for {
		free, err := paths.Hold(d.held)
		if err != nil {
			return fmt.Errorf("state directory: lock %s: %w", d.own, err)
		}
		if free {
			d.tellStage(stageServing)
			if told > 0 {
				d.log.Info("the other server has ended: its state is taken over", slog.Duration("waited", time.Since(begun)))
			}
			return nil
		}
		who, most := d.holder()
		if told == 0 {
			if err := d.bindable(ctx); err != nil {
				return err
			}
		}
		if most != told {
			d.tellHeld(who, most)
			told = most
		}
		if time.Since(begun) >= most {
			return fmt.Errorf("%w; it was waited for, for %v", d.heldBy(who), most)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return d.heldBy(who)
		}
	}
}

// bindable returns an error if an address of the configuration will be none of this host after the other server's end,
// too.
func (d *daemon) bindable(ctx context.Context) error {
	for _, a := range d.c.Listen {
		if err := bindable(ctx, "listen", a); err != nil {
			return err
		}
	}
	for _, a := range d.c.PortmapListen {
		if err := bindable(ctx, "portmap-listen", a); err != nil {
			return err
		}
	}
	return nil
}

// heldBy is the error of a server whose state another one has.
func (d *daemon) heldBy(who string) error {
	return fmt.Errorf("state directory: another server runs with %s%s: end it, or give this one a --state-dir and ports of its own", d.own, who)
}

// tellHeld says that another server has the state, where the user looks that starts this
// one: on stderr, and in the file of the log if there is one.
func (d *daemon) tellHeld(who string, most time.Duration) {
	logs := []*slog.Logger{d.log}
	if d.c.Log.File != "" {
		logs = append(logs, ops.NewLogs(&d.c.Log, d.w.Log, d.w.Now).Logger())
	}
	for _, log := range logs {
		log.Warn("another server"+who+" has this state; waiting for its end", slog.String("state", d.own), slog.Duration("most", most))
	}
}

// tellStage writes the server's number and stage into the file that it has locked. On a full disk they may be
// missing, and the server runs all the same: another one then waits longer.
func (d *daemon) tellStage(stage string) {
	if d.held != nil && d.held.Truncate(0) == nil {
		_, _ = d.held.WriteAt([]byte(strconv.Itoa(os.Getpid())+" "+stage+"\n"), 0)
	}
}

// holder is the process that has locked the folder, as far as it has said so, and for how long it is waited for.
func (d *daemon) holder() (who string, most time.Duration) {
	most = time.Duration(d.c.DrainTimeout) + handoverTime
	var b [maxHolder]byte
	n, _ := d.held.ReadAt(b[:], 0) // fewer bytes than those are an error, too
	words := strings.Fields(string(b[:n]))
	if len(words) == 0 {
		return "", most
	}
	if pid, err := strconv.ParseUint(words[0], 10, 32); err == nil {
		who = fmt.Sprintf(" (process %d)", pid)
	}
	if len(words) == 2 && words[1] == stageServing {
		most = endingTime
	}
	return who, most
}
