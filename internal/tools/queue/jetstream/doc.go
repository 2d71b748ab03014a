// Package jetstream has the queues of package queue on a nats-server with JetStream, 2.9 or later.
//
// A run has a stream of its own, nfsbox_NAME_RUN, in which a dot of the job's name is written "=".
// It lies in the server's memory, keeps each message until it is acknowledged, and holds
// queue.MaxDealt items and maxBytes at most. Its subjects begin with nfsbox.NAME.RUN.:
//
//	job       the job's Spec, as the one message
//	item.ID   an item; a later message with the same ID takes its place
//	ask       questions to the coordinator, by plain request and reply, outside the stream
//
// One durable pull consumer, "workers", leases the items: AckWait is queue.LeaseTime and
// MaxDeliver queue.MaxLeases. A user of the broker needs the subjects nfsbox.>, $JS.API.>,
// $JS.ACK.> and _INBOX.>. Who may publish to the first can forge items: what comes out of a
// stream is judged here by its length and its subject, and by its reader for the rest.
//
// The Spec is a message and not metadata of the stream because servers before 2.10 drop metadata,
// and Debian 12 has 2.9.
//
// nats.go is NATS' own client. It adds nkeys, nuid and golang.org/x/crypto (for credentials), and
// compress. An own client would have to keep pace with the server's JetStream API.
package jetstream
