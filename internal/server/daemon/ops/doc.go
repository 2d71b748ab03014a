// Package ops shows a running server to its operators: metrics, the live page, profiles,
// logs, and the socket by which `nfsbox ctl` lists clients and drops them.
//
// The parts of a server count; nothing is counted again here. Each reader of metrics, and
// the live page every few seconds, asks for a [Scrape], which is then written in
// Prometheus' words or the page's. Nothing that grows with the number of clients has a
// label of its own. What is counted once for each transport is added up.
//
// [Web] serves all that over HTTP. A reader needs no right but to reach the address: it
// sees names of exports and addresses of clients, and changes nothing. On loopback it
// has to ask by an address or as localhost, at each of the servers: a web page whose name
// was pointed there (DNS rebinding) asks by that name, and is refused.
//
// [Logs] writes the server's own log with slog. What its file does not take is lost and
// counted, and no call fails for it. A goroutine of its own logs slow calls, and never
// makes them slower. Calls of the file API that moved many bytes are not slow: their time
// was the network's. The log of requests has a file to itself (package reqlog). Package
// oncrpc asks of each call whether it is wanted, and describes only those that are. The log and
// the view share that question: a call that is picked for either is passed on to each by its
// own chance. What a call was about is named when somebody reads of it, by one readlink of the
// file's descriptor if that is open.
//
// [Controls] answers at a socket in the server's own folder, which nobody else may enter,
// and [Control] asks there: one request of JSON on a line, one answer.
package ops
