package sim

// Kernel is the Sys of the running kernel, for tests from outside.
var Kernel Sys = osSys{}
