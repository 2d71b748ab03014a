package daemon

import (
	"bytes"

	"github.com/pelletier/go-toml/v2"
)

// TOML is the configuration as a file that means the same.
func (c *Config) TOML() ([]byte, error) {
	var out bytes.Buffer
	if err := toml.NewEncoder(&out).Encode(c); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
