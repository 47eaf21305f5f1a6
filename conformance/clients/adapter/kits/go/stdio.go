package kit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/coverage"
	"syscall"
	"time"
)

const (
	goodbye = 1500 * time.Millisecond // what reset may take when stdin has ended: after 2 s the process has to be gone
	ownBug  = 3                       // exit code
)

var stdout = os.Stdout

// Run serves stdin and stdout until the end of the input or `shutdown`; it does not return.
func (a *Adapter) Run() {
	os.Stdout = os.Stderr // what the library prints must not get between the lines
	input := bufio.NewReader(os.Stdin)
	for {
		line, err := input.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		var r request
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "not a request:", err)
			leave(ownBug)
		}
		a.receive(r)
	}
	over := make(chan struct{})
	go func() {
		a.drop()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(goodbye):
	}
	leave(0)
}

// writeCoverage writes down what has been executed since it was last called, where this program is measured: it was
// built with -cover -covermode=atomic, and GOCOVERDIR is set. Otherwise there is nothing to write.
func writeCoverage() {
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		_ = coverage.WriteCountersDir(dir) // an error for a program that is not measured
		_ = coverage.ClearCounters()
	}
}

func leave(code int) { os.Exit(code) }

func (a *Adapter) write(fields Fields) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.lines++
	fields["n"], fields["t"] = a.lines, float64(time.Since(a.begun).Microseconds())/1000
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(fields); err != nil {
		fmt.Fprintln(os.Stderr, "cannot write a line:", err)
		leave(ownBug)
	}
	stdout.Write(line.Bytes())
}

// reset answers what is open with cancelled and drops everything. No goroutine can be ended from outside, but the
// sockets can: whoever waits for one of them goes on with an error.
func (a *Adapter) reset(c *Call) (any, error) {
	a.mutex.Lock()
	var cancelled []*Call
	for id, call := range a.open {
		if id != c.ID {
			cancelled = append(cancelled, call)
		}
	}
	a.mutex.Unlock()
	for _, call := range cancelled {
		a.answer(call, Fields{"ok": false, "error": Fail("cancelled", "")})
	}
	a.drop()
	return nil, nil
}

func (a *Adapter) drop() {
	a.Clear()
	a.mutex.Lock()
	a.subs = map[string]*Subscription{}
	a.armed = map[string]int{}
	a.mutex.Unlock()
	shutSockets()
}

// shutSockets ends every connection of this process, whoever holds it.
func shutSockets() {
	open, _ := os.ReadDir("/dev/fd")
	for _, entry := range open {
		var fd int
		if _, err := fmt.Sscan(entry.Name(), &fd); err == nil && fd > 2 {
			_ = syscall.Shutdown(fd, syscall.SHUT_RDWR) // an error for what is not a socket
		}
	}
}
