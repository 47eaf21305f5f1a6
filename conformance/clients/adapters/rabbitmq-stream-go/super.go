package main

import (
	"bytes"
	"strconv"
	"sync"

	"fakebrokers/kit"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/message"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

const partitionsMax = 1000 // room for what the library tells of partitions while nobody reads

// wishes are the members of a publish that ask for a Producer of another kind.
type wishes struct {
	Routing  struct{ By, Key string }
	Filtered bool
}

func wishesOf(c *kit.Call) (wanted wishes, err error) {
	err = c.Decode(&wanted)
	return wanted, err
}

// routes are the routing keys of messages on their way.
type routes struct{ keys sync.Map }

func (r *routes) of(m message.StreamMessage) string {
	key, _ := r.keys.Load(m)
	text, _ := key.(string)
	return text
}

// declareSuper makes the Producer for a super stream.
func (p *publisher) declareSuper(s *session, target string, wanted wishes) error {
	var strategy stream.RoutingStrategy = stream.NewHashRoutingStrategy(p.routes.of)
	if wanted.Routing.By == "key" {
		strategy = stream.NewKeyRoutingStrategy(p.routes.of)
	}
	options := stream.NewSuperStreamProducerOptions(strategy)
	if wanted.Filtered {
		options = options.SetFilter(stream.NewProducerFilter(filterValueFor))
	}
	producer, err := s.env.NewSuperStreamProducer(target, options)
	if err != nil {
		return err
	}
	closed := producer.NotifyPartitionClose(partitionsMax)
	go func() {
		for one := range closed {
			s.tell(one.Event)
		}
	}()
	batches := producer.NotifyPublishConfirmation(partitionsMax)
	confirms := make(chan []*stream.ConfirmationStatus)
	go func() {
		defer close(confirms)
		for batch := range batches {
			confirms <- batch.ConfirmationStatus
		}
	}()
	go p.confirm(confirms)
	p.super = producer
	return nil
}

// subscribeAll reads all partitions of a super stream.
func subscribeAll(c *kit.Call, s *session, sub *kit.Subscription, wanted subscribeOptions, start stream.OffsetSpecification) error {
	options := stream.NewSuperStreamConsumerOptions().SetOffset(start).
		SetConsumerName(wanted.consumer()).SetFilter(wanted.filter())
	if wanted.isSingle() {
		options.SetSingleActiveConsumer(stream.NewSingleActiveConsumer(
			func(string, bool) stream.OffsetSpecification { return start }))
	}
	consumer, err := s.env.NewSuperStreamConsumer(c.Args.Target, func(context stream.ConsumerContext, m *amqp.Message) {
		sub.Deliver(kit.Message{Body: m.Data, Headers: m.ApplicationProperties,
			Position: strconv.FormatInt(context.Consumer.GetOffset(), 10),
			More:     kit.Fields{"meta": kit.Fields{"partition": context.Consumer.GetStreamName()}}})
	}, options)
	if err != nil {
		return err
	}
	closed := consumer.NotifyPartitionClose(partitionsMax)
	go func() {
		for one := range closed {
			s.tell(one.Event)
		}
	}()
	sub.Handle = consumer
	return nil
}

// filterValueOf is the value of a body: its text up to the first colon, none without one.
func filterValueOf(body [][]byte) string {
	value, _, found := bytes.Cut(bytes.Join(body, nil), []byte(":"))
	if !found {
		return ""
	}
	return string(value)
}

func filterValueFor(m message.StreamMessage) string { return filterValueOf(m.GetData()) }
