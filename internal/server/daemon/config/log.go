package config

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/reqlog"
)

// Log says what is written of the server's life, how and where, and which calls of
// clients are.
type Log struct {
	Level    string   `toml:"level" default:"info" help:"What is logged: debug, info, warn, error."`
	Format   string   `toml:"format" default:"text" help:"How lines look: text, json; those of the log of requests, too."`
	File     string   `toml:"file" placeholder:"FILE" help:"Where the log goes, in the configuration by its absolute path; without it, to stderr."`
	Requests string   `toml:"requests" placeholder:"FILE" help:"Write calls of clients to this file, in the configuration by its absolute path, a line each: who, what, how long, how much."`
	Sample   int      `toml:"sample" default:"100" help:"Of so many of them, one, by chance; 1 is for all."`
	MaxSize  Size     `toml:"max-size" default:"100MiB" help:"Put a file of log aside when it is so large, in whole MiB; 0 leaves it to others, who then send SIGHUP."`
	MaxAge   Duration `toml:"max-age" placeholder:"TIME" help:"And when it is a day old; remove what was put aside so long ago, in whole days (7d); 0 does neither."`
	MaxFiles int      `toml:"max-files" default:"10" help:"How many to keep of those put aside; 0 keeps all."`
	Compress bool     `toml:"compress" help:"Compress those put aside, with gzip."`
}

func defaultLog() Log {
	return Log{Level: "info", Format: "text", Sample: defaultSample, MaxSize: defaultLogSize, MaxFiles: defaultLogFiles}
}

func (l *Log) check(p *problems) {
	p.oneOf("log.level", l.Level, "debug", "info", "warn", "error")
	p.oneOf("log.format", l.Format, "text", "json")
	p.within("log.sample", int64(l.Sample), 1, maxSample)
	p.within("log.max-files", int64(l.MaxFiles), 0, reqlog.MaxKeep)
	if l.MaxSize != 0 && (l.MaxSize < logUnit || l.MaxSize > reqlog.MaxSize || l.MaxSize%logUnit != 0) {
		p.add("log.max-size", "%v is neither 0 nor whole MiB, up to %v", l.MaxSize, Size(reqlog.MaxSize))
	}
	if time.Duration(l.MaxAge)%day != 0 {
		p.add("log.max-age", "%v is not whole days, such as 7d", l.MaxAge)
	}
	for _, x := range []struct{ key, path string }{{"log.file", l.File}, {"log.requests", l.Requests}} {
		if x.path != "" && !filepath.IsAbs(x.path) {
			p.add(x.key, "%q is not an absolute path", x.path)
		}
	}
	if l.Requests != "" && filepath.Clean(l.Requests) == filepath.Clean(l.File) {
		p.add("log.requests", "%s is the file of the server's own log already", l.Requests)
	}
}

// absolute makes paths of the files that the command line has given, relative to where it
// was given. Those of a configuration have to be absolute, wherever the service is started.
func (l *Log) absolute(given map[string]bool) (err error) {
	for flag, path := range map[string]*string{"log-file": &l.File, "log-requests": &l.Requests} {
		if !given[flag] || *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
	}
	return nil
}

// Days is MaxAge in days.
func (l *Log) Days() int { return int(time.Duration(l.MaxAge) / day) }
