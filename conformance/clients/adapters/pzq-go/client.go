package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zeromq/zmq4"

	"fakebrokers/kit"
)

var (
	clockOffset atomic.Int64 // nanoseconds
	digits      = regexp.MustCompile(`^\d+$`)
	figure      = regexp.MustCompile(`(?s)^\s*([^:]*?)\s*:\s*(.*?)\s*$`)
	errClosed   = kit.Fail("closed", "closed before the answer")
)

// producer sends messages; any number may wait for their acknowledgement.
type producer struct {
	line   *line
	prefix string

	mutex   sync.Mutex
	number  int
	waiting map[string]chan answer
}

type answer struct {
	parts [][]byte // the status and what follows it
	err   error
}

func newProducer(endpoint string) *producer {
	random := make([]byte, 6)
	_, _ = rand.Read(random)
	p := &producer{line: open(zmq4.NewDealer, endpoint), prefix: hex.EncodeToString(random),
		waiting: map[string]chan answer{}}
	go p.line.read(p.receive)
	return p
}

// begin hands a message over; wait for what became of it on the channel.
func (p *producer) begin(body kit.Body, id []byte) ([]byte, chan answer, error) {
	if len(body) == 0 {
		return nil, nil, kit.Fail("invalid", "a message has one body part or more")
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.line.life.Err() != nil {
		return nil, nil, kit.Fail("closed", "the producer is closed").Surely()
	}
	if id == nil {
		p.number++
		id = []byte(p.prefix + "-" + strconv.Itoa(p.number))
	}
	if p.waiting[string(id)] != nil {
		return nil, nil, kit.Fail("invalid", "a message with this id waits for its acknowledgement")
	}
	told := make(chan answer, 1)
	p.waiting[string(id)] = told
	p.line.send(append([][]byte{id, {}}, body...), func(err error) {
		if err != nil {
			tell(told, answer{err: err})
		}
	})
	return id, told, nil
}

// tell is for whoever speaks first; nobody reads what comes after it.
func tell(told chan answer, found answer) {
	select {
	case told <- found:
	default:
	}
}

// end waits for the acknowledgement, and gives the broker's texts.
func (p *producer) end(id []byte, told chan answer, timeout time.Duration) ([]string, error) {
	defer func() {
		p.mutex.Lock()
		delete(p.waiting, string(id))
		p.mutex.Unlock()
	}()
	var late <-chan time.Time
	if timeout > 0 {
		late = time.After(timeout)
	}
	select {
	case found := <-told:
		return stored(found)
	case <-late:
		return nil, kit.Fail("timeout", "no acknowledgement within "+timeout.String())
	case <-p.line.life.Done():
		return nil, errClosed
	}
}

func stored(found answer) ([]string, error) {
	if found.err != nil {
		return nil, found.err
	}
	delimiter := slices.IndexFunc(found.parts, isEmpty)
	if delimiter < 1 {
		return nil, kit.Fail("protocol", "an acknowledgement without status or delimiter")
	}
	texts := []string{}
	for _, text := range found.parts[delimiter+1:] {
		texts = append(texts, string(text))
	}
	if status := string(found.parts[0]); status != "1" {
		refused := kit.Fail("refused", strings.Join(texts, "; "))
		refused.Code = status
		return nil, refused
	}
	return texts, nil
}

func isEmpty(part []byte) bool { return len(part) == 0 }

func (p *producer) receive(parts [][]byte) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if told := p.waiting[string(parts[0])]; told != nil {
		tell(told, answer{parts: parts[1:]})
	}
}

func (p *producer) pending() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.waiting)
}

// delivery is a message of the broker; times are microseconds, nil where it sent no number.
type delivery struct {
	pzqID, id     []byte
	sent, timeout *big.Int
	body          kit.Body
}

// consumer hands one message after the other to a callback, of one broker or of several.
type consumer struct {
	line        *line
	skipExpired bool
}

func newConsumer(endpoints []string, skipExpired bool, take func(delivery), damaged func(error)) *consumer {
	c := &consumer{open(zmq4.NewRouter, endpoints...), skipExpired}
	go c.line.read(func(parts [][]byte) {
		found, err := read(parts)
		switch {
		case err != nil:
			damaged(err)
		case !skipExpired || !found.expired():
			take(found)
		}
	})
	return c
}

// read takes the parts of a delivery: who sent it, the broker's id, two times, others, an empty one, the body.
func read(parts [][]byte) (delivery, error) {
	if len(parts) < 4 {
		return delivery{}, kit.Fail("protocol", "a delivery of "+strconv.Itoa(len(parts))+" parts")
	}
	delimiter := 2 + slices.IndexFunc(parts[2:], isEmpty)
	if delimiter < 4 || delimiter == len(parts)-1 {
		return delivery{}, kit.Fail("protocol", "a delivery without delimiter, times or body")
	}
	return delivery{parts[0], parts[1], number(parts[2]), number(parts[3]), parts[delimiter+1:]}, nil
}

func number(part []byte) *big.Int {
	if !digits.Match(part) {
		return nil
	}
	value, _ := new(big.Int).SetString(string(part), 10)
	return value
}

// expired tells whether the broker will send the message again, or has done so.
func (d delivery) expired() bool {
	now := time.Now().Add(time.Duration(clockOffset.Load())).UnixMicro()
	return d.sent != nil && d.timeout != nil && big.NewInt(now).Cmp(new(big.Int).Add(d.sent, d.timeout)) > 0
}

// settle says that a message was processed, or that it was not; the channel tells when that is written.
func (c *consumer) settle(d delivery, status string) <-chan error {
	written := make(chan error, 1)
	c.line.send([][]byte{d.pzqID, d.id, []byte(status)}, func(err error) { written <- err })
	return written
}

// monitor asks for the broker's figures, on a socket of its own: a question may stay unanswered.
func monitor(life context.Context, endpoint string, timeout time.Duration) (kit.Fields, error) {
	ctx, cancel := context.WithCancel(life)
	if timeout > 0 {
		cancel()
		ctx, cancel = context.WithTimeout(life, timeout)
	}
	defer cancel()
	socket := zmq4.NewReq(ctx)
	told := make(chan answer, 1)
	go func() { // neither the handshake nor Recv of this kind of socket looks at the context
		text, err := ask(socket, endpoint)
		told <- answer{[][]byte{text}, err}
	}()
	select {
	case found := <-told:
		_ = socket.Close()
		if found.err != nil {
			return nil, found.err
		}
		return figures(found.parts[0])
	case <-ctx.Done():
		_ = socket.Close()
		if life.Err() != nil {
			return nil, errClosed
		}
		return nil, kit.Fail("timeout", "the monitor did not answer within "+timeout.String())
	}
}

func ask(socket zmq4.Socket, endpoint string) ([]byte, error) {
	if err := socket.Dial(endpoint); err != nil {
		return nil, err
	}
	if err := socket.Send(zmq4.NewMsgString("MONITOR")); err != nil {
		return nil, err
	}
	message, err := socket.Recv()
	return bytes.Join(message.Frames, nil), err
}

func figures(text []byte) (kit.Fields, error) {
	values := kit.Fields{}
	for _, line := range strings.Split(string(text), "\n") {
		found := figure.FindStringSubmatch(line)
		if found == nil || found[1] == "" {
			continue
		}
		if value, err := strconv.ParseInt(found[2], 10, 64); err == nil && digits.MatchString(found[2]) {
			values[found[1]] = kit.Int(value)
		} else {
			values[found[1]] = found[2]
		}
	}
	if len(values) == 0 {
		return nil, kit.Fail("protocol", "not an answer of the monitor")
	}
	return values, nil
}
