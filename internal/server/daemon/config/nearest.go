package config

import (
	"reflect"
	"strings"

	"github.com/nfsbox/nfsbox/internal/base/near"
)

// nearest finds the key of ours that may have been meant, with the table that it is in if
// that is another one; "" if there is none.
func nearest(key []string) string {
	if len(key) == 0 {
		return ""
	}
	wrong := strings.ToLower(key[len(key)-1])
	if here, ok := foreign[wrong]; ok {
		return here
	}
	in := strings.ToLower(strings.Join(key[:len(key)-1], "."))
	best, least := "", near.Far
	for _, k := range allKeys(reflect.TypeFor[Config](), "") {
		table, name := "", k
		if at := strings.LastIndexByte(k, '.'); at >= 0 {
			table, name = k[:at], k[at+1:]
		}
		if d := near.Distance(wrong, name); d < least || d == least && table == in && d < near.Far {
			best, least = name, d
			if table != in {
				best = place(table, name)
			}
		}
	}
	return best
}

// place says where a key belongs.
func place(table, name string) string {
	switch table {
	case "":
		return name + ", above all tables"
	case "export", "export.clients":
		return name + " in [[" + table + "]]"
	}
	return name + " in [" + table + "]"
}

// allKeys are the keys of a configuration: "listen", "log.level", "export.dir",
// "export.clients.match".
func allKeys(t reflect.Type, prefix string) (all []string) {
	for f := range t.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		switch {
		case f.Anonymous:
			all = append(all, allKeys(f.Type, prefix)...)
			continue
		case key == "":
			continue
		case isTable(f):
			all = append(all, allKeys(f.Type, prefix+key+".")...)
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			all = append(all, allKeys(f.Type.Elem(), prefix+key+".")...)
		}
		all = append(all, prefix+key)
	}
	return all
}
