//go:build !race

package nfsserver_test

const race = false
