package fakebrokers

import (
	"fmt"
	"testing"
	"time"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/message"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

func TestUnfinishedMessage(t *testing.T) {
	broker := Serve(t, "rabbitmq-stream")
	broker.Call("create_stream", Values{"name": "orders"}, nil)
	environment, err := stream.NewEnvironment(stream.NewEnvironmentOptions().SetHost(broker.Host).SetPort(broker.Port))
	if err != nil {
		t.Fatal(err)
	}
	producer, err := environment.NewProducer("orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	producer.BatchSend([]message.StreamMessage{amqp.NewMessage([]byte("tea")), amqp.NewMessage([]byte("milk"))})
	broker.WaitFor("PublishConfirm", 1, time.Minute)

	begun := make(chan int64, 2)
	handle := func(context stream.ConsumerContext, _ *amqp.Message) {
		begun <- context.Consumer.GetOffset()
		if context.Consumer.GetOffset() == 1 {
			select {} // the process is ended before the order is done
		}
	}
	options := stream.NewConsumerOptions().SetConsumerName("shop").
		SetOffset(stream.OffsetSpecification{}.First()).SetAutoCommit(stream.NewAutoCommitStrategy())
	consumer, err := environment.NewConsumer("orders", handle, options)
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	<-begun
	consumer.Close()
	offset, err := environment.QueryOffset("shop", "orders")
	fmt.Println("handled: 0; stored:", offset, err)
}
