//go:build race

package server

const race = true
