// A small client on go-zeromq (https://github.com/go-zeromq/zmq4) behind the adapter protocol.
//
// PZQ has no maintained client library; client.go is what a user makes of its document.
package main

import (
	"context"
	"encoding/json"
	"math/big"
	"strconv"
	"sync"

	"fakebrokers/kit"
)

const zmq = "github.com/go-zeromq/zmq4"

type session struct {
	life      context.Context
	end       context.CancelFunc
	addresses addresses
	producer  *producer

	mutex     sync.Mutex
	consumers []*consumer
}

type addresses struct {
	Receive, Monitor string
	Send             oneOrMore
}

type oneOrMore []string

func (all *oneOrMore) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, (*[]string)(all))
	}
	*all = make(oneOrMore, 1)
	return json.Unmarshal(text, &(*all)[0])
}

// subscribed is what a subscription holds: its consumer, which may deliver before the op has it.
type subscribed struct {
	consumer *consumer
	mutex    sync.Mutex
}

var (
	a = kit.New(kit.Facts{
		Adapter:   "pzq-go",
		Library:   zmq,
		Version:   kit.ModuleVersion(zmq),
		Protocols: []string{"pzq"},
		Roles:     []string{"publisher", "consumer", "monitor"},
		Settles:   "manual",
		Contract:  kit.Fields{"others": false},
		Caps: kit.Fields{"ack_timeout": true, "auto_reconnect": true, "callback_sleep": true, "caller_key": true,
			"clock_offset": true, "endpoints": true, "filter_expired": true, "reentrant": true},
	})
	mutex    sync.Mutex
	sessions = map[string]*session{}
)

func main() {
	a.Clear = clear
	a.Op("connect", connect)
	a.Op("state", state)
	a.Op("close", with(func(s *session, _ *kit.Call) (any, error) {
		s.close()
		return nil, nil
	}))
	a.Op("set_clock", func(c *kit.Call) (any, error) {
		wanted := struct {
			OffsetMS float64 `json:"offset_ms"`
		}{}
		err := c.Decode(&wanted)
		clockOffset.Store(int64(wanted.OffsetMS * 1e6))
		return nil, err
	})
	a.Ordered("publish", with(publish))
	a.Op("subscribe", with(subscribe))
	a.Ordered("settle", settle)
	a.Op("unsubscribe", func(c *kit.Call) (any, error) {
		found, err := subscriptionOf(c)
		if err == nil {
			found.consumer.line.close()
		}
		return nil, err
	})
	a.Op("pzq.monitor", with(func(s *session, c *kit.Call) (any, error) {
		values, err := monitor(s.life, s.addresses.Monitor, c.Timeout)
		return kit.Fields{"values": values}, err
	}))
	a.Run()
}

func with(do func(s *session, c *kit.Call) (any, error)) kit.Op {
	return func(c *kit.Call) (any, error) {
		mutex.Lock()
		found := sessions[c.Args.Session]
		mutex.Unlock()
		if found == nil {
			return nil, kit.Fail("closed", "no session "+strconv.Quote(c.Args.Session)).Surely()
		}
		return do(found, c)
	}
}

func connect(c *kit.Call) (any, error) {
	s := &session{}
	if err := json.Unmarshal(c.Args.Endpoints, &s.addresses); err != nil {
		return nil, kit.Fail("invalid", err.Error())
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.producer = newProducer(s.addresses.Receive)
	mutex.Lock()
	defer mutex.Unlock()
	sessions[c.Args.Session] = s
	return nil, nil
}

func (s *session) close() {
	s.end()
	s.producer.line.close()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, each := range s.consumers {
		each.line.close()
	}
}

func state(c *kit.Call) (any, error) {
	mutex.Lock()
	found := sessions[c.Args.Session]
	mutex.Unlock()
	if found == nil {
		return kit.Fields{"open": false, "pending": nil}, nil
	}
	return kit.Fields{"open": found.life.Err() == nil, "pending": found.producer.pending()}, nil
}

func publish(s *session, c *kit.Call) (any, error) {
	key, err := c.KeyBytes()
	if err != nil {
		return nil, err
	}
	id, told, err := s.producer.begin(c.Args.Body, key)
	if err != nil {
		return nil, err
	}
	c.Begun()
	if !c.Args.Wait {
		go report(s.producer, c, id, told)
		return kit.Fields{"outcome": "sent", "key": nil, "meta": kit.Fields{}}, nil
	}
	texts, err := s.producer.end(id, told, c.Timeout)
	return kit.Fields{"outcome": "acked", "key": kit.Key(id), "meta": kit.Fields{"texts": texts}}, err
}

// report writes an event for the outcome of a message that nobody waits for.
func report(p *producer, c *kit.Call, id []byte, told chan answer) {
	fields := kit.Fields{"id": c.ID, "outcome": "acked", "key": kit.Key(id), "code": nil}
	if _, err := p.end(id, told, c.Timeout); err != nil {
		failure := kit.Classify(err)
		fields["outcome"], fields["key"], fields["code"] = "unknown", nil, failure.Code
		if failure.Definite {
			fields["outcome"] = "nacked"
		}
	}
	a.Emit("outcome", fields)
}

func subscribe(s *session, c *kit.Call) (any, error) {
	wanted := struct {
		Filter bool `json:"filter_expired"`
	}{}
	if err := c.Options(&wanted); err != nil {
		return nil, err
	}
	sub, err := a.Subscribed(c)
	if err != nil {
		return nil, err
	}
	name, found := c.Args.Sub, &subscribed{}
	sub.Handle = found
	take := func(d delivery) { // by one goroutine
		more := kit.Fields{"body": d.body.Parts(), "meta": meta(d)}
		sub.Deliver(kit.Message{Position: kit.Key(d.id), Native: d, More: more})
	}
	damaged := func(err error) {
		a.Emit("error", kit.Fields{"sub": name, "where": "decode", "error": kit.Classify(err)})
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found.mutex.Lock()
	defer found.mutex.Unlock()
	found.consumer = newConsumer(s.addresses.Send, wanted.Filter, take, damaged)
	s.consumers = append(s.consumers, found.consumer)
	return nil, nil
}

func meta(d delivery) kit.Fields {
	return kit.Fields{"pzq_id": d.pzqID, "sent_us": exact(d.sent), "timeout_us": exact(d.timeout),
		"expired": d.expired()}
}

// exact reports a time of any size.
func exact(us *big.Int) any {
	switch {
	case us == nil:
		return nil
	case us.IsInt64():
		return kit.Int(us.Int64())
	}
	return us.String()
}

func subscriptionOf(c *kit.Call) (*subscribed, error) {
	sub, err := a.Subscription(c.Args.Sub)
	if err != nil {
		return nil, err
	}
	return sub.Handle.(*subscribed), nil
}

func settle(c *kit.Call) (any, error) {
	wanted := struct{ Ref, How string }{How: "ack"}
	if err := c.Decode(&wanted); err != nil {
		return nil, err
	}
	sub, err := a.Subscription(c.Args.Sub)
	if err != nil {
		return nil, err
	}
	message, err := sub.Native(wanted.Ref)
	if err != nil {
		return nil, err
	}
	status := map[string]string{"ack": "1", "nack": "0"}[wanted.How]
	if status == "" {
		return nil, kit.Fail("invalid", "nothing to "+wanted.How)
	}
	found := sub.Handle.(*subscribed)
	found.mutex.Lock()
	settling := found.consumer
	found.mutex.Unlock()
	written := settling.settle(message.(delivery), status)
	c.Begun()
	return nil, <-written
}

// clear ends what is under way; the kit shuts the sockets.
func clear() {
	mutex.Lock()
	defer mutex.Unlock()
	for _, s := range sessions {
		s.close()
	}
	sessions = map[string]*session{}
	clockOffset.Store(0)
}
