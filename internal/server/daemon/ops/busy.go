package ops

import (
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/view"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// A file is known to the view by its handle, or to the file API by its path. The first byte
// says which.
const (
	byHandle = "h"
	byPath   = "p"
)

// viewCall is a call in the words of the view.
func viewCall(c *oncrpc.Served, about vfs.Handle) view.Call {
	v := view.Call{Client: nfsserver.ClientOf(c.Client), Took: c.Took, BytesIn: uint64(c.BytesIn), BytesOut: uint64(c.BytesOut)}
	if c.HasUID {
		v.User = strconv.FormatUint(uint64(c.UID), 10)
	}
	if !about.IsZero() {
		v.File = byHandle + string(about.Bytes())
	}
	return v
}

func viewCallOfAPI(c *fileapi.Served) view.Call {
	v := view.Call{Client: "local", User: c.Name, Took: c.Took, BytesIn: c.BytesIn, BytesOut: c.BytesOut}
	if c.Client.IsValid() {
		v.Client = c.Client.Addr().Unmap().String()
	}
	if c.Path != "" {
		v.File = byPath + c.Path
	}
	return v
}

// nameFile is what the view shows of a file.
func (l *Logs) nameFile(file string) (name string, ok bool) {
	if path, is := strings.CutPrefix(file, byPath); is {
		return path, true
	}
	h, err := vfs.MakeHandle([]byte(strings.TrimPrefix(file, byHandle)))
	if err != nil { // it was one
		return "", false
	}
	o := &object{Object: nfsserver.Object{Handle: h}, name: l.name}
	_, ok = o.path()
	return o.label(), ok
}

// viewClients are the clients in the words of the view.
func viewClients(clients []nfsserver.ClientInfo) []view.Client {
	out := make([]view.Client, 0, len(clients))
	for i := range clients {
		c := &clients[i]
		user, _, known := strings.Cut(c.Client, "@")
		if !known {
			user = ""
		}
		out = append(out, view.Client{
			Name: c.Client, User: user, Conns: c.Conns, InFlight: c.UnderWay, Calls: c.Calls, BytesIn: c.BytesIn, BytesOut: c.BytesOut,
		})
	}
	return out
}
