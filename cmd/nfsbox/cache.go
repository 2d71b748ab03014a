package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/cache/conf"
	"github.com/nfsbox/nfsbox/internal/client/cache/store"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

type cacheCmd struct {
	Do          string   `arg:"" name:"ACTION" enum:"status,ls,verify,flush,pin,unpin,cull,check" help:"status, ls, verify, flush, pin, unpin, cull or check."`
	IDs         []string `arg:"" optional:"" name:"ID" help:"Of flush, pin and unpin: entries, as ls names them."`
	Dir         string   `name:"dir" placeholder:"DIR" type:"path" help:"The cache's directory, as cache=DIR in a URL has it (default: that of fsc)."`
	CacheConfig string   `name:"cache-config" placeholder:"FILE" type:"path" help:"The configuration, as cachefilesd.conf(5) has it (default for root: /etc/cachefilesd.conf)."`
	JSON        bool     `help:"Print one line of JSON for each answer or entry, then a summary."`
}

func (*cacheCmd) Help() string {
	return `Looks at the cache that URLs with fsc or cache=DIR read from, and clears it.

  nfsbox cache status
  nfsbox cache ls --dir /ssd/nfs
  nfsbox cache verify
  nfsbox cache flush
  nfsbox cache check --cache-config /etc/cachefilesd.conf

status shows how much is kept, and what all runs have counted. ls lists the entries: each is one version of one file,
with its ID, what is kept of it, its size, its server, and the name or path by which it was first opened, or else its handle. verify reads all that is
kept, and compares it with its checksums; what is damaged would not have been used, and is read from the server anew.

flush removes the entries with these IDs, or all. cull removes the oldest ones until there is as much room as the
configuration asks for. Both also remove what lies there uncounted. pin keeps entries from being removed to make room, unpin no longer. What is pinned may take half of
size. A changed file's entry is removed all the same. These four need the directory for themselves: while another process has it, they end with status 2.

check reads the configuration, names each line that is wrong, and says what the others mean. Nothing is
opened.

docs/cache.md has more.`
}

// Validate is called by kong.
func (c *cacheCmd) Validate() error {
	switch {
	case (c.Do == "pin" || c.Do == "unpin") && len(c.IDs) == 0:
		return fmt.Errorf("%s what? nfsbox cache ls has the IDs", c.Do)
	case c.Do == "check" && len(c.IDs) > 0:
		return fmt.Errorf("check takes a configuration as --cache-config %s", quoteArg(c.IDs[0]))
	case c.Do != "pin" && c.Do != "unpin" && c.Do != "flush" && len(c.IDs) > 0:
		return fmt.Errorf("%s is about the whole cache, and takes its directory as --dir %s", c.Do, quoteArg(c.IDs[0]))
	}
	_, err := c.ids()
	return err
}

func (c *cacheCmd) ids() ([]uint64, error) {
	ids := make([]uint64, len(c.IDs))
	for i, s := range c.IDs {
		id, err := strconv.ParseUint(s, 16, 64)
		if err != nil || len(s) != 16 {
			return nil, fmt.Errorf("%q is no ID: 16 hexadecimal digits, as nfsbox cache ls has them; the directory of a cache is given as --dir", s)
		}
		ids[i] = id
	}
	return ids, nil
}

// cacheEvent is a line of JSON of status.
type cacheEvent struct {
	Dir     string `json:"dir"`
	InUse   bool   `json:"in_use"`
	Entries int    `json:"entries"`
	Bytes   int64  `json:"bytes"`
	Size    int64  `json:"size"`
	store.Counts
}

// cachedEvent is a line of JSON of ls and verify.
type cachedEvent struct {
	ID       string    `json:"id"`
	Server   string    `json:"server"`
	Mark     string    `json:"mark,omitempty"`
	Label    string    `json:"label,omitempty"`
	Handle   string    `json:"handle"`
	Size     uint64    `json:"size"`
	Modified time.Time `json:"modified"`
	Granules int       `json:"granules"`
	There    int       `json:"there"`
	Bad      int       `json:"bad_checksums"`
	Bytes    int64     `json:"bytes"`
	Pinned   bool      `json:"pinned"`
}

// cacheDoneEvent is a line of JSON of flush, cull, pin and unpin.
type cacheDoneEvent struct {
	ID      string `json:"id,omitempty"`
	Entries int    `json:"entries"`
}

// cacheConfigEvent is a line of JSON of check.
type cacheConfigEvent struct {
	Dir       string   `json:"dir"`
	Tag       string   `json:"tag"`
	Brun      int      `json:"brun"`
	Bcull     int      `json:"bcull"`
	Bstop     int      `json:"bstop"`
	Frun      int      `json:"frun"`
	Fcull     int      `json:"fcull"`
	Fstop     int      `json:"fstop"`
	NoCull    bool     `json:"nocull"`
	Size      int64    `json:"size"`
	Granule   int      `json:"granule"`
	Checksum  bool     `json:"checksum"`
	Pin       []string `json:"pin"`
	StatsFile string   `json:"statsfile"`
	Notes     []string `json:"notes"`
}

func (c *cacheCmd) Run(e *env) error {
	out := newOutput(e, c.JSON)
	if err := e.ctx.Err(); err != nil {
		return out.fail(e, "", err)
	}
	cfg, err := conf.Find(c.CacheConfig, c.Dir)
	if err == nil {
		switch c.Do {
		case "status":
			err = c.status(out, cfg)
		case "ls", "verify":
			err = c.list(e, out, cfg)
		case "check":
			err = c.check(out, cfg)
		default:
			err = c.change(out, cfg)
		}
	} else {
		err = &exitError{status: exitUsage, err: err}
	}
	if wrong, ok := errors.AsType[*store.DirError](err); ok {
		err = &exitError{status: exitUsage, err: wrong}
	}
	if broken, ok := errors.AsType[*outputError](err); ok {
		return broken
	}
	if err != nil {
		return out.fail(e, "", err)
	}
	return out.end(nil)
}

func (c *cacheCmd) status(out *output, cfg *conf.Config) error {
	path := store.Path(cfg.Dir, cfg.Tag)
	s, used, err := store.Look(path)
	if err != nil {
		return err
	}
	v := cacheEvent{Dir: path, InUse: used, Entries: s.Entries, Bytes: s.Bytes, Size: cfg.Size, Counts: s.Counts}
	if c.JSON {
		return out.event("cache", v)
	}
	room, use := "", ""
	if v.Size > 0 {
		room = ", of " + progress.Size(uint64(v.Size))
	}
	if used {
		use = "; a process has it open"
	}
	return out.text(fmt.Sprintf(`%s%s
kept            %s, %s%s
hits            %s reads, %s
misses          %s reads, %s of them because the server was quicker than the disk
written         %s
stale           %s entries of which the server had another version
damaged         %s entries, and %s granules with a wrong checksum
culled          %s entries, and no room for %s granules
`, progress.Clean(path), use, filesText(v.Entries), progress.Size(uint64(v.Bytes)), room,
		progress.Count(v.Hits), progress.Size(v.BytesHit), progress.Count(v.Misses), progress.Count(v.Bypassed), progress.Size(v.BytesFilled),
		progress.Count(v.Stale), progress.Count(v.Damaged), progress.Count(v.BadChecksums), progress.Count(v.Culled), progress.Count(v.Refused)))
}

// list prints the entries. What is damaged is an item that failed.
func (c *cacheCmd) list(e *env, out *output, cfg *conf.Config) error {
	path := store.Path(cfg.Dir, cfg.Tag)
	return store.Entries(path, c.Do == "verify", func(f *store.Found) error {
		if err := e.ctx.Err(); err != nil {
			return err
		}
		id := fmt.Sprintf("%016x", f.ID)
		if f.Err != nil {
			out.failed(id, fmt.Errorf("entry %s is not whole: %w", id, f.Err))
			return nil
		}
		if f.Bad > 0 {
			out.failed(id, fmt.Errorf("entry %s: %d of %d granules have a wrong checksum", id, f.Bad, f.There))
		}
		if c.JSON {
			return out.event("cached", cachedEvent{
				ID: id, Server: f.Server, Mark: f.Mark, Label: f.Label, Handle: f.Handle.String(), Size: f.Size, Modified: f.Mtime.UTC(),
				Granules: f.Granules, There: f.There, Bad: f.Bad, Bytes: f.Bytes, Pinned: f.Pinned,
			})
		}
		pin := " "
		if f.Pinned {
			pin = "p"
		}
		return out.text(fmt.Sprintf("%s %s %7s %7s  %s  %s\n", id, pin, progress.Size(uint64(f.Bytes)), progress.Size(f.Size),
			progress.Clean(f.Server), progress.Clean(cmp.Or(f.Label, f.Handle.String()))))
	})
}

func (c *cacheCmd) check(out *output, cfg *conf.Config) error {
	for _, n := range cfg.Notes {
		out.note(n)
	}
	l := cfg.Limits
	if c.JSON {
		return out.event("cache_config", cacheConfigEvent{
			Dir: cfg.Dir, Tag: cfg.Tag, Brun: l.Brun, Bcull: l.Bcull, Bstop: l.Bstop, Frun: l.Frun, Fcull: l.Fcull, Fstop: l.Fstop,
			NoCull: cfg.NoCull, Size: cfg.Size, Granule: cfg.Granule, Checksum: !cfg.NoChecksum,
			Pin: append([]string{}, cfg.Pin...), StatsFile: cfg.StatsFile, Notes: append([]string{}, cfg.Notes...),
		})
	}
	return out.text(fmt.Sprintf("%s: culled below %d%% of the blocks and %d%% of the files, until %d%% and %d%%; nothing is added below %d%% and %d%%\n",
		progress.Clean(store.Path(cfg.Dir, cfg.Tag)), l.Bcull, l.Fcull, l.Brun, l.Frun, l.Bstop, l.Fstop))
}

// change flushes, culls, pins or unpins.
func (c *cacheCmd) change(out *output, cfg *conf.Config) (err error) {
	ids, err := c.ids()
	if err != nil {
		return &exitError{status: exitUsage, err: err}
	}
	if err := store.There(store.Path(cfg.Dir, cfg.Tag)); err != nil {
		return err // and none is made to be emptied
	}
	st, err := store.Open(cfg.Options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	switch c.Do {
	case "flush":
		n, err := st.Flush(ids...)
		return errors.Join(err, c.done(out, "flushed", n))
	case "cull":
		n, err := st.Cull()
		return errors.Join(err, c.done(out, "culled", n))
	}
	for i, id := range ids {
		switch failed := st.Pin(id, c.Do == "pin"); {
		case errors.Is(failed, fs.ErrNotExist):
			out.failed(c.IDs[i], fmt.Errorf("there is no entry %s", c.IDs[i]))
		case failed != nil:
			out.failed(c.IDs[i], fmt.Errorf("entry %s: %w", c.IDs[i], failed))
		case c.JSON:
			err = errors.Join(err, out.event(c.Do+"ned", cacheDoneEvent{ID: c.IDs[i], Entries: 1}))
		}
	}
	return err
}

func (c *cacheCmd) done(out *output, what string, n int) error {
	if c.JSON {
		return out.event(what, cacheDoneEvent{Entries: n})
	}
	return out.text(fmt.Sprintf("%s: %s\n", what, progress.Count(uint64(n))))
}
