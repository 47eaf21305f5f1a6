package main

import (
	"sync"

	"fakebrokers/kit"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/message"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

const (
	timedOut    = 62 // codes of the library's own in a confirmation status
	neverSent   = 63
	subEntryMax = 65535
)

// publisher is a Producer and the messages that wait for their confirm.
type publisher struct {
	turns    kit.Turns
	producer *stream.Producer            // nil until it is declared, in a turn
	super    *stream.SuperStreamProducer // instead, for a super stream
	routes   routes

	mutex   sync.Mutex
	waiting map[message.StreamMessage]chan *stream.ConfirmationStatus
	over    bool
}

// declare makes the Producer, on the first call.
func (p *publisher) declare(s *session, c *kit.Call) (err error) {
	if p.producer != nil || p.super != nil {
		return nil
	}
	wanted, err := wishesOf(c)
	if err != nil {
		return err
	}
	target, name, subentry := c.Args.Target, c.Args.Name, c.Args.Subentry
	if wanted.Routing.By != "" {
		return p.declareSuper(s, target, wanted)
	}
	options := stream.NewProducerOptions().SetProducerName(name)
	if subentry != "" {
		options.SetSubEntrySize(subEntryMax).SetCompression(compressions[subentry])
	}
	if wanted.Filtered {
		options.SetFilter(stream.NewProducerFilter(filterValueFor))
	}
	producer, err := s.env.NewProducer(target, options)
	if err != nil {
		return err
	}
	if s.listen {
		go s.report(producer.NotifyClose())
	}
	go p.confirm(producer.NotifyPublishConfirmation())
	p.producer = producer
	return nil
}

var compressions = map[string]stream.Compression{
	"none": stream.Compression{}.None(), "gzip": stream.Compression{}.Gzip(),
}

// confirm passes confirms on until the library has closed the producer: what is open then has no outcome.
func (p *publisher) confirm(confirms stream.ChannelPublishConfirm) {
	for batch := range confirms {
		for _, status := range batch {
			p.mutex.Lock()
			ended := p.waiting[status.GetMessage()]
			delete(p.waiting, status.GetMessage())
			p.mutex.Unlock()
			if ended != nil {
				ended <- status
			}
		}
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.over = true
	for _, ended := range p.waiting {
		close(ended)
	}
}

// expect makes the channel for the outcome of a message that is about to be sent.
func (p *publisher) expect(m message.StreamMessage) <-chan *stream.ConfirmationStatus {
	ended := make(chan *stream.ConfirmationStatus, 1)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.over {
		close(ended)
	} else {
		p.waiting[m] = ended
	}
	return ended
}

// publish sends messages in their turn; the channels give their outcomes.
func (p *publisher) publish(messages []message.StreamMessage, batch bool, key string) (ends []<-chan *stream.ConfirmationStatus, err error) {
	for _, m := range messages {
		ends = append(ends, p.expect(m))
	}
	if p.super != nil {
		p.routes.keys.Store(messages[0], key)
		defer p.routes.keys.Delete(messages[0])
		return ends, p.super.Send(messages[0])
	}
	if batch {
		return ends, sent(p.producer.BatchSend(messages))
	}
	// Send cuts what is too much for one frame, BatchSend leaves that to the user
	for _, m := range messages {
		if err = sent(p.producer.Send(m)); err != nil && len(messages) == 1 {
			return nil, err
		}
	}
	return ends, nil
}

// sent is the error of Send and BatchSend: there "too large" is the library's own word, not the broker's.
func sent(err error) error {
	if err == stream.FrameTooLarge {
		return kit.Fail("invalid", err.Error())
	}
	return err
}

// outcome is what became of a message; nil: nobody will tell.
func outcome(status *stream.ConfirmationStatus) kit.Fields {
	if status == nil {
		return kit.Fields{"outcome": "unknown", "key": nil, "code": nil}
	}
	fields := kit.Fields{"outcome": "acked", "key": kit.Int(status.GetPublishingId()), "code": nil}
	if !status.IsConfirmed() {
		fields["outcome"], fields["code"] = "nacked", status.GetErrorCode()
		if code := status.GetErrorCode(); code == timedOut || code == neverSent {
			fields["outcome"], fields["code"] = "unknown", nil
		}
	}
	return fields
}

// failure is why a message was not acknowledged, or nil.
func failure(status *stream.ConfirmationStatus) error {
	switch {
	case status == nil:
		return kit.Fail("closed", "the producer was closed before the confirm")
	case status.IsConfirmed():
		return nil
	case status.GetErrorCode() == timedOut:
		return kit.Fail("timeout", status.GetError().Error())
	case status.GetErrorCode() == neverSent:
		return kit.Fail("closed", status.GetError().Error()).Surely()
	}
	return kit.Refused(int(status.GetErrorCode()), status.GetError().Error())
}

func record(body kit.Body, key *kit.Int, headers kit.Fields) message.StreamMessage {
	m := amqp.NewMessage(body.Bytes())
	if key != nil {
		m.SetPublishingId(int64(*key))
	}
	if len(headers) > 0 {
		m.ApplicationProperties = headers
	}
	return m
}
