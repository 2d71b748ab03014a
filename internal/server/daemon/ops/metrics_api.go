package ops

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/object/dir"
)

func (w writer) api(s *fileapi.Snapshot) {
	if s == nil {
		return
	}
	label, coded := []string{"procedure"}, []string{"procedure", "code"}
	for name, c := range s.Calls {
		if c.Time.Count == 0 {
			continue
		}
		w.send("api_calls_total", "Calls of the file API that have ended.", prometheus.CounterValue, float64(c.Time.Count), label, name)
		for code, n := range c.Codes {
			if code != fileapi.Code(0).String() {
				w.send("api_errors_total", "Of them, those that failed, by the code of their error.", prometheus.CounterValue, float64(n), coded, name, code)
			}
		}
		w.send("api_received_bytes_total", "Bytes of the bodies of their requests.", prometheus.CounterValue, float64(c.BytesIn), label, name)
		w.send("api_sent_bytes_total", "Bytes of the bodies of their answers.", prometheus.CounterValue, float64(c.BytesOut), label, name)
		w.histogram("api_duration_seconds", "Time that they took, the transfer of their bytes included.", secondsOf(c.Time), label, name)
	}
	for reason, n := range s.Denied {
		w.send("api_refused_total", "Connections and requests turned away: who asks is not known, or there is too much of them.", prometheus.CounterValue, float64(n), []string{"reason"}, reason)
	}
	w.count("api_slow_clients_total", "Calls cut off because their clients sent or took too slowly.", s.Slow)
	w.gauge("api_uploads_in_progress", "Files on their way in.", float64(s.Calls["Upload"].InProgress+s.Calls["Put"].InProgress+s.Calls["HTTP PUT"].InProgress))
	w.gauge("api_searches_in_progress", "Searches of the file API under way.", float64(s.Searches))
	w.count("api_searched_files_total", "Files that searches have read, which have ended.", s.SearchedFiles)
	w.count("api_searched_bytes_total", "Bytes that they have read.", s.SearchedBytes)
	w.count("api_search_matches_total", "Lines that they have found.", s.SearchMatches)
	w.gauge("api_calls_in_progress", "Calls of the file API under way.", float64(s.InProgress))
	w.gauge("api_message_bytes", "Memory that their messages take.", float64(s.Memory))
	w.gauge("api_connections", "Connections to the file API.", float64(s.Conns))
	w.gauge("api_temporaries_left", "Temporaries of uploads that could not be removed, and wait for the next start.", float64(s.Left))
}

func (w writer) store(s *dir.Snapshot) {
	if s == nil {
		return
	}
	w.count("store_puts_total", "Objects stored.", s.Puts)
	w.count("store_put_bytes_total", "Their bytes.", s.PutBytes)
	w.count("store_gets_total", "Objects opened.", s.Gets)
	w.count("store_syncs_total", "Syncs of directories.", s.Syncs)
	w.count("store_syncs_shared_total", "Changes content with a sync that others had asked for.", s.Shared)
	w.count("store_corrupted_total", "Objects found damaged, each time.", s.Corrupted)
	w.gauge("store_readers", "Objects that are being read.", float64(s.OpenReaders))
	failed := 0.0
	if s.Failed {
		failed = 1
	}
	w.gauge("store_failed", "1 when a sync of a directory has failed: nothing is stored any more until a restart.", failed)
}
