package main

import (
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/tools/idmap"
)

// ownerMap are the flags that say which owners a copy has.
type ownerMap struct {
	MapUID []string `name:"map-uid" sep:"none" placeholder:"FROM:TO" help:"What user FROM has in SOURCE is user TO's in DEST, by number; FROM-LAST:TO is a range. May be repeated."`
	MapGID []string `name:"map-gid" sep:"none" placeholder:"FROM:TO" help:"The same for groups."`
}

// ids reads the rules.
func (o *ownerMap) ids() (*idmap.Map, error) {
	m, err := idmap.Parse(o.MapUID, o.MapGID)
	if err != nil {
		return nil, fmt.Errorf("--map-uid, --map-gid: %w", err)
	}
	return &m, nil
}

// errMapNoOwner refuses rules for owners that are not kept.
var errMapNoOwner = errors.New("--map-uid and --map-gid say which owners a copy gets, and --no-owner that it gets none")
