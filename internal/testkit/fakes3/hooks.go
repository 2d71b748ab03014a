package fakes3

import (
	"net/http"
	"strings"
)

// HTML answers as a portal or a proxy does that takes every request for a browser's: with 200 and a page.
func HTML(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte("<!DOCTYPE html><html><head><title>Sign in</title></head><body>Sign in to go on.</body></html>"))
	return true
}

// Endless answers with a body that goes on until the client leaves.
func Endless(w http.ResponseWriter, _ *http.Request) bool {
	for page := []byte(strings.Repeat(" ", 64<<10)); ; {
		if _, err := w.Write(page); err != nil {
			return true
		}
	}
}

// Answer answers with a status and a body of XML.
func Answer(status int, body string) Hook {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
		return true
	}
}

// Fail answers with an error of S3.
func Fail(status int, code, message string) Hook {
	return Answer(status, string(failure(status, code, message).body))
}

// On has h answer the requests of one method alone, as Calls counts them.
func On(method string, h Hook) Hook {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if callOf(r) != method {
			return false
		}
		return h(w, r)
	}
}
