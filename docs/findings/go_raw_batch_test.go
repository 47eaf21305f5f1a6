package fakebrokers

import (
	"fmt"
	"testing"
	"time"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/message"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

func TestRawBatch(t *testing.T) {
	broker := Serve(t, "rabbitmq-stream")
	broker.Call("create_stream", Values{"name": "orders"}, nil)
	environment, err := stream.NewEnvironment(stream.NewEnvironmentOptions().SetHost(broker.Host).SetPort(broker.Port))
	if err != nil {
		t.Fatal(err)
	}
	options := stream.NewProducerOptions().SetSubEntrySize(10).SetCompression(stream.Compression{}.Gzip())
	producer, err := environment.NewProducer("orders", options)
	if err != nil {
		t.Fatal(err)
	}
	producer.BatchSend([]message.StreamMessage{amqp.NewMessage([]byte("tea"))})
	broker.WaitFor("PublishConfirm", 1, time.Minute)

	// the batch says that its data are packed by a method that came later (6)
	broker.AddFault(`{"match": {"role": "deliver"},
		"effect": {"type": "corrupt", "at": 57, "xor": 112, "mend": true}}`)
	bodies := make(chan []byte, 1)
	handle := func(_ stream.ConsumerContext, message *amqp.Message) { bodies <- message.GetData() }
	first := stream.NewConsumerOptions().SetOffset(stream.OffsetSpecification{}.First())
	if _, err := environment.NewConsumer("orders", handle, first); err != nil {
		t.Fatal(err)
	}
	select {
	case body := <-bodies:
		fmt.Printf("delivered: %q\n", body)
	case <-time.After(time.Minute):
		fmt.Println("nothing is delivered")
	}
}
