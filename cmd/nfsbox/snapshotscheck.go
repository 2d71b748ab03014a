package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/upkeep"
)

// readPart is which part of the data is read: 0 is none, 1 is all.
type readPart float64

// IsBool implements kong.BoolMapperValue: the flag alone is all.
func (readPart) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (p *readPart) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		*p = 1
		return nil
	}
	text := fmt.Sprint(ctx.Scan.Pop().Value)
	switch text { // as settings have it
	case "true":
		*p = 1
		return nil
	case "false":
		*p = 0
		return nil
	}
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !percent || !(n > 0 && n <= 100) {
		return fmt.Errorf("%q is no part of the data, such as 5%%", text)
	}
	*p = readPart(n / 100)
	return nil
}

type snapshotsCheckCmd struct {
	Store    string   `arg:"" place:"" name:"STORE" help:"The store."`
	ReadData readPart `name:"read-data" placeholder:"N%" help:"Read all that is stored, or with =N% a random part of it, another one each time, and compare it with its checksums."`
	snapshotsFlags
	progressFlags
}

func (*snapshotsCheckCmd) Help() string {
	return `Looks whether all is there that the snapshots need. All manifests are read, and the sizes of all objects compared with
what these say; with --read-data the contents are, too. Nothing is changed.

Each object that is missing or damaged is named, with each file, directory and snapshot that it hurts: what is below
a directory with a slash at its end cannot be found. Of many, 100 a damage are named, and the others counted. What no
snapshot needs is counted; nfsbox snapshots prune removes it.

nfsbox backup --verify stores again what is missing if the tree has it still. What cannot be mended nfsbox restore
leaves out, and restores all else; nfsbox snapshots forget STORE NAME@ID removes the snapshot.

A check waits for a prune that is under way, and holds back others by a lease in the store. In one that may only be
read there is none, which a note says: what is forgotten and pruned meanwhile may then be told as missing.

  nfsbox snapshots check /backup
  nfsbox snapshots check --read-data=5% /backup
  nfsbox snapshots check --json --read-data /backup | jq -r '.hurts[]?.path'`
}

// checkSummary is the last event of snapshots check.
type checkSummary struct {
	upkeep.CheckSummary
	Errors  uint64  `json:"errors"`
	Seconds float64 `json:"seconds"`
}

func (c *snapshotsCheckCmd) Run(e *env) error {
	var sum checkSummary
	r := summedRun(e, c.JSON, func(errors uint64, seconds float64) any {
		sum.Errors, sum.Seconds = errors, seconds
		return &sum
	})
	o := place.StoreOptions{Reading: readingNoted(e, "snapshots check", func(_, text string) { r.note(text) })}
	return c.lookWith(r, c.Store, o, func(r *storeRun) (err error) {
		t := c.tracker(r)
		sum.CheckSummary, err = upkeep.Check(e.ctx, r.store, upkeep.CheckOptions{
			ReadData: float64(c.ReadData), Rand: randReader(e.rand), Progress: t, Found: func(d upkeep.Damage) { r.damage(&d) },
		})
		err = errors.Join(err, t.Finish(nil))
		if err != nil {
			return aboutStore(r.store, err)
		}
		if !r.json && !c.Quiet {
			r.checked(&sum.CheckSummary)
		}
		return nil
	})
}

// damage prints a damage. It counts as an error.
func (r *storeRun) damage(d *upkeep.Damage) {
	r.mu.Lock()
	r.errors++
	r.mu.Unlock()
	// Flushing returns the error of stdout.
	if r.json {
		_ = r.event("damage", d)
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "damaged: object %s: %s\n", progress.Clean(d.Object), progress.Clean(d.Message))
	for _, h := range d.Hurts {
		path := h.Path
		if len(h.PathBytes) > 0 {
			path = string(h.PathBytes)
		}
		fmt.Fprintf(&b, "  hurts %s: %s\n", h.Snapshot, progress.Clean(path))
	}
	if d.More > 0 {
		fmt.Fprintf(&b, "  hurts %s more\n", progress.Count(d.More))
	}
	_ = r.text(b.String())
}

// checked is the verdict of a check.
func (r *storeRun) checked(s *upkeep.CheckSummary) {
	head := "all is there: "
	if s.Damaged > 0 {
		head = "checked: "
	}
	verdict(r.stderr,
		line{head, text(counted{s.Snapshots, "snapshot|snapshots"}, counted{s.Partials, "partial one|partial ones"}, counted{s.Names, "name|names"},
			counted{s.Objects, "object|objects"}) + sizeText(s.Objects, s.Bytes)},
		line{"read: ", text(counted{s.ReadObjects, "object|objects"}) + sizeText(s.ReadObjects, s.ReadBytes)},
		line{"in no use: ", text(counted{s.Unused, "object|objects"}) + sizeText(s.Unused, s.UnusedBytes)},
		line{"damaged: ", text(counted{s.Damaged, "object|objects"}, counted{s.HurtNames, "name that it hurts|names that they hurt"}, counted{s.HurtSnapshots, "snapshot|snapshots"})},
	)
	if s.Damaged > 0 {
		_, _ = fmt.Fprintln(r.stderr, "nfsbox: "+afterDamage)
	}
}

// sizeText is the size of n objects; "" of none.
func sizeText(n, bytes uint64) string {
	if n == 0 {
		return ""
	}
	return " of " + progress.Size(bytes)
}

// tracker shows how far a command has come.
func (f *progressFlags) tracker(r *storeRun) *progress.Tracker {
	show := f.renderer(r.e, "--json has all")
	if r.json {
		show = unsummed{progress.JSON(lineWriter{r.output})}
		if f.none() {
			show = quiet{show}
		}
	}
	return progress.New(unsummed{show}, time.Now)
}
