package config

import (
	"reflect"
	"strings"
)

// onTheFly are the keys that a reload changes.
var onTheFly = map[string]bool{"export": true, "slow": true, "log.level": true}

// Keep puts values of c into n where a reload cannot change them, and names the keys that
// differ.
func (c *Config) Keep(n *Config) (differ []string) {
	return keepFields(reflect.ValueOf(c).Elem(), reflect.ValueOf(n).Elem(), "")
}

func keepFields(now, next reflect.Value, prefix string) (differ []string) {
	for field, v := range next.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		key, old := prefix+key, now.FieldByIndex(field.Index)
		switch {
		case onTheFly[key] || reflect.DeepEqual(v.Interface(), old.Interface()):
		case isTable(field):
			differ = append(differ, keepFields(old, v, key+".")...)
		default:
			differ = append(differ, key)
			v.Set(old)
		}
	}
	return differ
}
