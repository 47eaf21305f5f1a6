package fakebrokers

import (
	"fmt"
	"testing"
	"time"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

func TestMissingTune(t *testing.T) {
	broker := Serve(t, "rabbitmq-stream")
	broker.AddFault(`{"match": {"kind": "Tune", "direction": "out"}, "effect": {"type": "drop"}}`)
	connected := make(chan error)
	go func() {
		options := stream.NewEnvironmentOptions().SetHost(broker.Host).SetPort(broker.Port)
		_, err := stream.NewEnvironment(options.SetRPCTimeout(time.Second))
		connected <- err
	}()
	select {
	case err := <-connected:
		fmt.Println("connected, or not:", err)
	case <-time.After(4 * time.Second):
		fmt.Println("the time-out of requests is 1 s; after 4 s NewEnvironment has not returned")
	}
}
