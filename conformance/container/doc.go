// Package container runs the built command in containers, as docs/containers.md tells people
// to: a server in a container and its client on the host, and the other way round. Each has a
// network of its own, so that no address is the same at both ends. The two find out all the
// same that they share a host, and leave the network out (LOCALIO). The server is stopped in the
// middle of a copy and started again; the copy goes on, nothing is lost, and LOCALIO is
// found again.
//
//	go test ./conformance/container
//
// # What it needs
//
// Linux, root, podman with runc or crun, and ip of iproute2. No image is fetched: the
// containers' file system is a directory with the command in it. What is missing skips the
// tests, loudly; with NFSBOX_REQUIRE=podman they fail instead.
package container
