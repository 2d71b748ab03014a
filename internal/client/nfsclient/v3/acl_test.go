package v3_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// lists is a server's answer with these lists.
func lists(access, dflt []nfsacl3.Aclent) *nfsacl3.GETACL3res {
	return &nfsacl3.GETACL3res{Resok: nfsacl3.GETACL3resok{Acl: nfsacl3.Secattr{
		Mask: nfsacl3.NA_ACL | nfsacl3.NA_DFACL, Aclcnt: int32(len(access)), Aclent: access, Dfaclcnt: int32(len(dflt)), Dfaclent: dflt,
	}}}
}

// TestACL sets lists and reads them back from a server that keeps what it gets.
func TestACL(t *testing.T) {
	var kept nfsacl3.Secattr
	st := play(t, script{
		nfsacl3.ACLPROC3_GETACL: func(int, *oncrpc.Call) xdr.Appender { return lists(kept.Aclent, kept.Dfaclent) },
		nfsacl3.ACLPROC3_SETACL: func(_ int, c *oncrpc.Call) xdr.Appender {
			var args nfsacl3.SETACL3args
			if args.DecodeXDR(&c.Args) != nil || string(args.Fh.Data) != "dir" || args.Acl.Mask != nfsacl3.NA_ACL|nfsacl3.NA_DFACL {
				return &nfsacl3.SETACL3res{Status: nfsacl3.NFS3ERR_INVAL}
			}
			kept = args.Acl
			return &nfsacl3.SETACL3res{}
		},
	}, v3.Options{})
	want := vfs.ACL{
		Access: []vfs.ACLEntry{
			{Tag: vfs.ACLOther, Perm: 0}, {Tag: vfs.ACLUserObj, Perm: 7}, {Tag: vfs.ACLGroupObj, Perm: 1},
			{Tag: vfs.ACLUser, ID: 42, Perm: 4},
		},
		Default: []vfs.ACLEntry{
			{Tag: vfs.ACLUserObj, Perm: 6}, {Tag: vfs.ACLGroupObj, Perm: 6}, {Tag: vfs.ACLMask, Perm: 4}, {Tag: vfs.ACLOther, Perm: 4},
		},
	}
	power, ok := vfs.As[vfs.ACLer](st.fs)
	if !ok {
		t.Fatal("no power")
	}
	if err := power.SetACL(t.Context(), handle(t, "dir"), want); err != nil {
		t.Fatal(err)
	}
	got, err := power.ACL(t.Context(), handle(t, "dir"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Access, []vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: 7}, {Tag: vfs.ACLUser, ID: 42, Perm: 4}, {Tag: vfs.ACLGroupObj, Perm: 1},
		{Tag: vfs.ACLMask, Perm: 5}, {Tag: vfs.ACLOther, Perm: 0},
	}) || !slices.Equal(got.Default, want.Default) {
		t.Errorf("%+v", got)
	}
	many := vfs.ACL{Access: make([]vfs.ACLEntry, nfsacl3.NFS_ACL_MAX_ENTRIES+1)}
	if err := power.SetACL(t.Context(), handle(t, "dir"), many); !errors.Is(err, vfs.ErrInval) {
		t.Errorf("too many entries: %v", err)
	}
	strange := []vfs.ACLEntry{{Tag: vfs.ACLUserObj, Perm: 0o17}}
	for _, acl := range []vfs.ACL{{Access: strange}, {Access: want.Access, Default: strange}} {
		if err := power.SetACL(t.Context(), handle(t, "dir"), acl); !errors.Is(err, vfs.ErrInval) {
			t.Errorf("rights that do not exist: %v", err)
		}
	}
}

// TestACLReplies believes no entry that cannot be.
func TestACLReplies(t *testing.T) {
	const fromDefault = nfsacl3.NA_ACL_DEFAULT
	for name, tc := range map[string]struct{ access, dflt []nfsacl3.Aclent }{
		"unknown tag":          {access: []nfsacl3.Aclent{{Type: 3}}},
		"a tag too long":       {access: []nfsacl3.Aclent{{Type: 0x101}}},
		"negative":             {access: []nfsacl3.Aclent{{Type: -1}}},
		"default among access": {access: []nfsacl3.Aclent{{Type: nfsacl3.NA_USER_OBJ | fromDefault}}},
		"access among default": {dflt: []nfsacl3.Aclent{{Type: nfsacl3.NA_USER_OBJ}}},
		"unknown rights":       {access: []nfsacl3.Aclent{{Type: nfsacl3.NA_USER_OBJ, Perm: 8}}},
	} {
		t.Run(name, func(t *testing.T) {
			st := play(t, script{nfsacl3.ACLPROC3_GETACL: always(lists(tc.access, tc.dflt))}, v3.Options{})
			_, err := st.fs.ACL(t.Context(), handle(t, "dir"))
			isUntrue(t, err)
		})
	}
}

// TestNoACL asks a server that has no such program once, and not again, whoever wants to know, and of which file.
func TestNoACL(t *testing.T) {
	st := play(t, script{}, v3.Options{})
	for i, name := range []string{"file", "file", "other", "third"} {
		p, ok := vfs.As[vfs.ACLer](st.fs.As(&vfs.Caller{UID: uint32(i)}))
		if !ok {
			t.Fatal("no power")
		}
		if _, err := p.ACL(t.Context(), handle(t, name)); !errors.Is(err, vfs.ErrNotSupp) {
			t.Errorf("%v", err)
		}
		if err := st.fs.SetACL(t.Context(), handle(t, "file"), vfs.ACL{}); !errors.Is(err, vfs.ErrNotSupp) || errors.Is(err, vfs.ErrUnknownOutcome) {
			t.Errorf("%v", err)
		}
	}
	if n := st.rpc.Stats().Calls; n != 1 {
		t.Errorf("%d calls", n)
	}
}
