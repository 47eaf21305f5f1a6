package main

import (
	"context"
	"sync"

	"github.com/go-zeromq/zmq4"

	"fakebrokers/kit"
)

// line is a socket that connects in the background, and anew when its connection is lost; both are the library's
// work. What is sent is queued, and written by one goroutine in the order of the calls.
type line struct {
	socket zmq4.Socket
	life   context.Context
	end    context.CancelFunc

	mutex  sync.Mutex
	queue  []outgoing
	filled chan struct{} // holds one while there may be something in the queue
	broken error         // the library has given the connecting up
}

type outgoing struct {
	parts [][]byte
	done  func(error)
}

type newSocket func(context.Context, ...zmq4.Option) zmq4.Socket

func open(kind newSocket, endpoints ...string) *line {
	life, end := context.WithCancel(context.Background())
	l := &line{life: life, end: end, filled: make(chan struct{}, 1),
		socket: kind(life, zmq4.WithAutomaticReconnect(true), zmq4.WithDialerMaxRetries(-1))}
	go func() {
		for _, each := range endpoints {
			if err := l.socket.Dial(each); err != nil {
				l.fail(kit.Fail("connection", err.Error())) // what failed has no type: the address, or the handshake
				return
			}
		}
		l.write()
	}()
	return l
}

// fail ends what is queued and what comes after it.
func (l *line) fail(err error) {
	l.mutex.Lock()
	l.broken = err
	left := l.queue
	l.queue = nil
	l.mutex.Unlock()
	for _, each := range left {
		each.done(l.told(err))
	}
}

// told is what an error of the library means, where the line itself has not ended it.
func (l *line) told(err error) error {
	if err != nil && l.life.Err() != nil {
		return kit.Fail("closed", "the socket is closed")
	}
	return err
}

func (l *line) write() {
	for {
		select {
		case <-l.life.Done():
			l.fail(l.life.Err())
			return
		case <-l.filled:
		}
		l.mutex.Lock()
		batch := l.queue
		l.queue = nil
		l.mutex.Unlock()
		for _, each := range batch {
			each.done(l.told(l.socket.SendMulti(zmq4.NewMsgFrom(each.parts...))))
		}
	}
}

// send queues a message; done is told what the library said.
func (l *line) send(parts [][]byte, done func(error)) {
	l.mutex.Lock()
	broken := l.broken
	if broken == nil {
		l.queue = append(l.queue, outgoing{parts, done})
	}
	l.mutex.Unlock()
	if broken != nil {
		done(l.told(broken))
		return
	}
	select {
	case l.filled <- struct{}{}:
	default:
	}
}

// read hands over what comes until the line is closed. A connection that is lost is an error of Recv, and the
// library is making the next one by then.
func (l *line) read(take func(parts [][]byte)) {
	for l.life.Err() == nil {
		if message, err := l.socket.Recv(); err == nil && l.life.Err() == nil { // Recv has both to choose from
			take(message.Frames)
		}
	}
}

func (l *line) close() {
	l.end()
	_ = l.socket.Close()
}
