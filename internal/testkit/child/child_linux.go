package child

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts cmd, which gets sig when this process ends. ended is closed when cmd has ended; cmd.ProcessState says
// how then. The caller must not call cmd.Wait.
func Start(cmd *exec.Cmd, sig syscall.Signal) (ended <-chan struct{}, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = sig
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // cmd.ProcessState has it
		}
	}()
	return done, <-started
}
