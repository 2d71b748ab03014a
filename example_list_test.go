package nfsbox_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log"

	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// List a directory of any size in constant memory, stop, and go on later: the
// token can be kept in a file, and outlives the program and the server.
func Example_resumeListing() {
	tree, unmount := mount()
	defer unmount()
	for i := range 5 {
		if err := tree.MkdirAll(fmt.Sprintf("queue/job-%d", i), 0o755); err != nil {
			log.Fatal(err)
		}
	}

	var token []byte // none: from the beginning
	for {
		var from iofs.Pos
		if err := from.UnmarshalText(token); err != nil {
			log.Fatal(err)
		}
		var batch []string
		for e, err := range tree.EntriesFrom("queue", from) {
			if err != nil {
				log.Fatal(err)
			}
			batch = append(batch, e.Name())
			if token, err = e.Next().MarshalText(); err != nil {
				log.Fatal(err)
			}
			if len(batch) == 2 {
				break // enough for now
			}
		}
		if len(batch) == 0 {
			break
		}
		fmt.Println(batch)
	}
	// Output:
	// [job-0 job-1]
	// [job-2 job-3]
	// [job-4]
}

// Act for several users over one connection, each with their own rights.
func Example_callers() {
	tree, unmount := mount()
	defer unmount()
	ann := tree.As(&vfs.Caller{UID: 1001, GID: 100})
	bob := tree.As(&vfs.Caller{UID: 1002, GID: 100})

	if err := ann.WriteFile("diary", []byte("Dear diary"), 0o600); err != nil {
		log.Fatal(err)
	}
	_, err := bob.ReadFile("diary")
	fmt.Println("bob may not:", errors.Is(err, fs.ErrPermission))
	data, err := ann.ReadFile("diary")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("ann may: %s\n", data)
	// Output:
	// bob may not: true
	// ann may: Dear diary
}
