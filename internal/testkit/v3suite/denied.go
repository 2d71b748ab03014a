package v3suite

import "github.com/nfsbox/nfsbox/proto/nfs3"

// readOnlyTests make every change in an export that refuses changes, which holds
// a directory and a file in it.
func readOnlyTests() []test {
	changes := map[string]bool{"setattr": true, "write": true}
	var all []test
	for i := range operations {
		op := &operations[i]
		if !changes[op.name] && (!op.names || op.name == "lookup") {
			continue
		}
		all = append(all, test{name: op.name, needs: needsReadOnly, run: func(e *env) {
			e.dir = e.find(e.mount(e.target.ReadOnly), "dir")
			file := e.find(e.dir, "file")
			before := e.attr(file)
			e.gotStatus(e.runReadOnly(op, file), nfs3.NFS3ERR_ROFS)
			if after := e.attr(file); settled(after) != settled(before) {
				e.Errorf("%+v has become %+v", before, after)
			}
		}})
	}
	return append(all, test{name: "reading", needs: needsReadOnly, run: func(e *env) {
		dir := e.find(e.mount(e.target.ReadOnly), "dir")
		file := e.find(dir, "file")
		e.ok(e.read(file, 0, 10).Status)
		res := e.access(file, accessAll)
		e.ok(res.Status)
		if got := res.Resok.Access; got&(nfs3.ACCESS3_MODIFY|nfs3.ACCESS3_EXTEND) != 0 {
			e.Errorf("rights %#x where nothing can be written", got)
		}
	}})
}

// runReadOnly runs an operation on the file, or on a name in the directory.
func (e *env) runReadOnly(op *operation, file handle) nfs3.Nfsstat3 {
	switch op.name {
	case "remove":
		return e.remove(e.dir, "file").Status
	case "rename-from":
		return e.rename(e.dir, "file", e.dir, "to").Status
	case "rename-to":
		return e.rename(e.dir, "file", e.dir, "file2").Status
	case "link-dir":
		return e.link(file, e.dir, "to").Status
	case "rmdir":
		return e.rmdir(e.mount(e.target.ReadOnly), "dir").Status
	}
	h := e.dir
	if !op.dir {
		h = file
	}
	return op.run(e, h, "new")
}

// deniedTests make each operation as a caller without the right to it.
func deniedTests() []test {
	var all []test
	for i := range operations {
		op := &operations[i]
		if !op.dir && op.name != "read" && op.name != "write" {
			continue
		}
		all = append(all, test{name: op.name, needs: needsIdentities, run: func(e *env) {
			e.file(e.dir, "source", "")
			dir := e.mustMkdir(e.dir, "closed")
			e.file(dir, "name", "data")
			e.mustMkdir(dir, "empty")
			file := e.file(e.dir, "secret", "data")
			e.ok(e.setattr(file, mode(0o600)).Status)
			e.ok(e.setattr(dir, mode(closedMode(op))).Status)
			before := e.attr(dir)
			e.as(alice)
			h, name := dir, "new"
			switch op.name {
			case "read", "write":
				h = file
			case "remove", "lookup", "rename-from":
				name = "name"
			case "rmdir":
				name = "empty"
			}
			e.gotStatus(op.run(e, h, name), nfs3.NFS3ERR_ACCES)
			e.asOwner()
			e.unchanged("a denied "+op.name, before, dir)
			e.content("after a denied "+op.name, file, "data")
		}})
	}
	return all
}

// closedMode is that of a directory on which an operation wants what it denies.
func closedMode(op *operation) uint32 {
	switch op.name {
	case "readdir", "readdirplus":
		return 0o711
	case "lookup":
		return 0o744
	}
	return 0o755
}
