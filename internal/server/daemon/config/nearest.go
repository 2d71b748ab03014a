package config

import (
	"reflect"
	"strings"
)

// maxDistance is how many letters a key may be away from one of ours to be proposed
// instead. Beyond it another key is proposed only if the one begins with the other.
const maxDistance = 2

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
	best, least := "", maxDistance+1
	for _, k := range allKeys(reflect.TypeFor[Config](), "") {
		table, name := "", k
		if at := strings.LastIndexByte(k, '.'); at >= 0 {
			table, name = k[:at], k[at+1:]
		}
		d := distance(wrong, name)
		if d > 0 && len(wrong) > 3 && (strings.HasPrefix(name, wrong) || strings.HasPrefix(wrong, name)) {
			d = 1
		}
		if 2*d > len(wrong) {
			continue // most letters would be others
		}
		if d == least && table == in && d <= maxDistance || d < least {
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

// distance is how many letters have to be changed, added, left out or swapped with their
// neighbour to make b of a (Damerau and Levenshtein). It is maxDistance+1 for more.
func distance(a, b string) int {
	const most = maxDistance + 1
	if len(a) > 64 || len(b) > 64 || len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	var before, last, row [65]int
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return min(last[len(b)], most)
}
