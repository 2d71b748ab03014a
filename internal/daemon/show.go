package daemon

import (
	"bytes"
	"slices"

	"github.com/pelletier/go-toml/v2"
)

// TOML is the configuration as a file that means the same. Whom to squash where
// nobody has said is what follows from Listen; it is root in any case where a
// service manager opens sockets that others can reach.
func (c *Config) TOML() ([]byte, error) {
	shown := *c
	shown.Exports = slices.Clone(c.Exports)
	for i := range shown.Exports {
		shown.Exports[i].Clients = slices.Clone(c.Exports[i].Clients)
	}
	shown.squash(!slices.ContainsFunc(c.Listen, func(a string) bool { return !onLoopback(a) }))
	var out bytes.Buffer
	if err := toml.NewEncoder(&out).Encode(shown); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
