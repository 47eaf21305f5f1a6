package fakebrokers

import (
	"fmt"
	"testing"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

func TestStoredStart(t *testing.T) {
	broker := Serve(t, "rabbitmq-stream")
	broker.Call("create_stream", Values{"name": "orders"}, nil)
	environment, err := stream.NewEnvironment(stream.NewEnvironmentOptions().SetHost(broker.Host).SetPort(broker.Port))
	if err != nil {
		t.Fatal(err)
	}
	options := stream.NewConsumerOptions().SetConsumerName("shop").
		SetOffset(stream.OffsetSpecification{}.Offset(0)).SetAutoCommit(stream.NewAutoCommitStrategy())
	handle := func(stream.ConsumerContext, *amqp.Message) {}
	consumer, err := environment.NewConsumer("orders", handle, options)
	if err != nil {
		t.Fatal(err)
	}
	consumer.Close() // the stream is empty, so nothing was handled
	offset, err := environment.QueryOffset("shop", "orders")
	fmt.Println("nothing was handled; stored:", offset, err)
}
