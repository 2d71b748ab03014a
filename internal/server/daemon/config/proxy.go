package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// IsURL reports whether what is to be served is another server's, and not a directory.
func IsURL(what string) bool { return strings.HasPrefix(what, "nfs://") }

// checkFrom is of an export that stands for another server's.
func (e *Export) checkFrom(key string, p *problems) {
	if e.Dir != "" {
		p.add(key+".from", "an export is a directory (dir) or another server's (from), and this one is to be both")
	}
	if !IsURL(e.From) {
		p.add(key+".from", "%q is no URL of an export, such as nfs://server/export", e.From)
	}
	p.oneOf(key+".handles", e.Handles, "auto", "verbatim")
	p.none(key, "for a directory of this host, and this is another server's", []unfit{
		{"crossmnt", e.CrossMounts}, {"mountpoint", e.MountPoint}, {"local-writers", e.LocalWriters},
	})
	if e.Offline != 0 {
		p.positive(key+".offline", e.Offline)
		if !e.Cached() {
			p.add(key+".offline", "there is no cache to read from while the other server does not answer: name a directory with cache")
		}
	}
}

// checkProxies finds what is wrong with exports of other servers beside one another.
func (c *Config) checkProxies(p *problems) {
	caches := make(map[string]int)
	for i := range c.Exports {
		e, key := &c.Exports[i], fmt.Sprintf("export[%d]", i)
		if e.Handles == "verbatim" && len(c.Exports) > 1 {
			p.add(key+".handles", "verbatim handles do not say which export they are of: that goes for an export that is the only one")
		}
		if e.From == "" || !e.Cached() {
			continue
		}
		where := e.CacheConfig
		if e.Cache != "" {
			where = filepath.Clean(e.Cache)
		}
		if first, ok := caches[where]; ok {
			p.add(key+".cache", "%q is the cache of export[%d] already; each has a directory of its own", where, first)
		}
		caches[where] = i
	}
}

// unfit is a key that may have been set in vain.
type unfit struct {
	key string
	set bool
}

// none refuses keys that are not for this export.
func (p *problems) none(of, why string, keys []unfit) {
	for _, k := range keys {
		if k.set {
			p.add(of+"."+k.key, "it is %s", why)
		}
	}
}
