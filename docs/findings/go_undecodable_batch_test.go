package fakebrokers

import (
	"testing"
	"time"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/message"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

func TestUndecodableBatch(t *testing.T) {
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
	var orders []message.StreamMessage
	for _, order := range []string{"tea", "milk", "salt"} {
		orders = append(orders, amqp.NewMessage([]byte(order)))
	}
	producer.BatchSend(orders)
	broker.WaitFor("PublishConfirm", 1, time.Minute)

	// one byte of the compressed data is wrong, and the checksum right
	broker.AddFault(`{"match": {"role": "deliver"}, "effect": {"type": "corrupt", "at": -10, "mend": true}}`)
	handle := func(_ stream.ConsumerContext, message *amqp.Message) { t.Logf("got %s", message.GetData()) }
	first := stream.NewConsumerOptions().SetOffset(stream.OffsetSpecification{}.First())
	if _, err := environment.NewConsumer("orders", handle, first); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	t.Log("the process lives")
}
